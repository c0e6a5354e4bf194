"""The pilot: a short training whose rows are not those that it judges."""

from balancemix.training import pilot
from tests import together


def test_a_pilot_judges_rows_that_it_was_not_trained_on():
    rows = together.make_rows(203)
    kept, seen = pilot._split(rows, 0)
    assert len(kept) == 20
    assert not set(kept.names) & set(seen.names)
    assert set(kept.names) | set(seen.names) == set(rows.names)
