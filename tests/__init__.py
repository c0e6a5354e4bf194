"""Tests of balancemix."""

from hypothesis import HealthCheck, settings

# A busy machine is no failure. Here, since settings count from where a test is decorated on.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
