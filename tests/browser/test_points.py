"""Every point that a real browser must show has a test."""

import pytest

from tests.browser.points import MEASURED, POINTS, SLOW, shown
from tests.conftest import ROOT


@pytest.mark.parametrize("point", POINTS)
def test_every_point_is_shown(point):
    if point in MEASURED:
        assert (ROOT / MEASURED[point]).is_file()
        return
    tests = [each for each in shown() if each.point == point]
    assert tests, f"no test is marked with pytest.mark.point({point}): {POINTS[point]}"
    assert point in SLOW or not all(each.slow for each in tests), "must run in `make test`"


def test_no_other_point_is_claimed():
    assert {each.point for each in shown()} <= set(POINTS)
