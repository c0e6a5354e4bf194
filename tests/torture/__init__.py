"""An adversary for balancemix: damaged inputs, flags, kills and disks, all drawn from one seed.

`python -m tests.torture --help` runs it; docs/reliability.md shows its figures.
"""
