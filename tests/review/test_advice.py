"""When it pays to go on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balancemix.estimates.estimate import Estimate
from balancemix.review.advice import advise, in_order, stops_after


def ahead(*parts):
    return np.concatenate([np.full(count, q) for count, q in parts])


@given(st.lists(st.floats(0, 1), max_size=200), st.floats(0.01, 0.5))
def test_it_stops_paying_at_the_first_fifty_that_fix_too_few(q, stop):
    slow = next(
        (i for i in range(max(len(q) - 50, 0) + 1) if sum(q[i : i + 50]) < 50 * stop - 1e-9), None
    )
    found = stops_after(np.array(q), stop)
    assert found == slow or sum(q[found : found + 50]) == pytest.approx(50 * stop)


def test_before_fifty_answers_nothing_is_said():
    assert advise(49, 40, ahead((500, 0.9)), None, None, 5.0).kind == "early"


def test_it_is_worth_going_on_while_answers_fix_labels():
    found = advise(60, 40, ahead((100, 0.6), (500, 0.01)), None, None, 4.8)
    assert found.kind == "go"
    assert found.fixes == pytest.approx(30)
    assert found.minutes == pytest.approx(4)
    assert 90 < found.more < 100


@pytest.mark.parametrize(("before", "kind"), [(None, "go"), (6.0, "go"), (4.0, "stop")])
def test_it_is_time_to_stop_after_two_poor_forecasts_in_a_row(before, kind):
    assert advise(200, 150, ahead((500, 0.05)), before, None, 5.0).kind == kind


@pytest.mark.parametrize(("high", "kind"), [(9.0, "stop"), (11.0, "go")])
def test_it_is_time_to_stop_when_hardly_anything_can_be_left(high, kind):
    left = Estimate(3.0, 0.0, high, True)
    assert advise(300, 200, ahead((100, 0.5)), 25.0, left, 5.0).kind == kind


def test_no_more_is_promised_than_is_left():
    assert advise(300, 10, ahead((100, 0.9)), 40.0, Estimate(3.0, 0.0, 9.0, True), 5.0).fixes == 9


def test_without_anything_open_it_is_over():
    assert advise(300, 200, np.zeros(0), 3.0, None, 5.0).kind == "over"


def test_findings_are_asked_picture_by_picture_the_surest_first():
    q = in_order([7, 3], np.array([3, 7, 3, 7]), np.array([0.9, 0.2, 0.95, 0.3]))
    assert q.tolist() == [0.3, 0.2, 0.95, 0.9]
