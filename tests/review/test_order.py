"""The order of pictures: against a slow version that follows the formulae word by word."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balancemix.review.order import Pace, corrected, need, picture_order, positives, worth_of
from tests.review.listed import listed

ENDS = (0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.01)


def slow_corrected(side, p, error):
    q = []
    for given_, chance in zip(side, p, strict=True):
        band = next((a, b) for a, b in pairwise(ENDS) if a <= chance < b)
        same = [
            (x, e)
            for g, x, e in zip(side, p, error, strict=True)
            if g == given_ and band[0] <= x < band[1] and e >= 0
        ]
        n, e = len(same), sum(e for _, e in same)
        mean = sum(x for x, _ in same) / n if n else chance
        q.append(min(1, (e + 2 * mean) / (n + 2) * chance / mean) if mean else 0)
    return q


def slow_order(findings, open_, error, counts, pace, gamma):
    q = slow_corrected(findings.given, findings.p, error)
    n = list(map(float, counts))
    for i, k in enumerate(findings.column):
        sign = -1 if findings.given[i] > 0 else 1
        n[k] += sign * (error[i] if error[i] >= 0 else q[i])
    n = [max(each, 0) for each in n]
    mean = sum(n) / len(n)
    score = {}
    for row in sorted(set(findings.row[open_].tolist())):
        inside = [i for i in np.flatnonzero(open_) if findings.row[i] == row]
        worth = sum(q[i] * ((mean + 10) / (n[findings.column[i]] + 10)) ** gamma for i in inside)
        score[row] = worth / (pace.picture + pace.question * len(inside))
    return score


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_order_is_that_of_the_formulae(gamma, seed):
    findings = listed(seed=seed, unknown=True)
    generator = np.random.default_rng(seed)
    open_ = generator.random(200) < 0.6
    error = np.where(open_, -1, generator.integers(-1, 2, 200))
    counts, pace = generator.integers(0, 100, 6), Pace(3.0, 1.5)
    rows = picture_order(findings, open_, error, counts, pace, gamma)
    score = slow_order(findings, open_, error, counts, pace, gamma)
    assert sorted(rows) == sorted(score)
    falling = [score[row] for row in rows]
    assert falling == pytest.approx(sorted(falling, reverse=True))


LABEL = st.tuples(st.integers(-1, 1), st.floats(1e-6, 1), st.integers(-1, 1))


@given(st.lists(LABEL, min_size=1, max_size=40))
def test_corrected_probabilities_are_those_of_the_formula_and_stay_probabilities(labels):
    side, p, error = zip(*labels, strict=True)
    q = corrected(side, p, error)
    assert ((q >= 0) & (q <= 1)).all()
    np.testing.assert_allclose(q, slow_corrected(side, p, error), atol=1e-9)


def test_what_promised_nothing_stays_at_nothing():
    assert corrected([1, 1], [0.0, 5e-324], [1, 1]).max() < 1e-9


def test_without_answers_the_probabilities_stay_as_they_are():
    p = np.linspace(0, 1, 50)
    np.testing.assert_allclose(corrected(np.zeros(50), p, np.full(50, -1)), p)


def test_answers_on_one_side_say_nothing_of_the_other():
    q = corrected([1, 1, 0, -1], [0.7] * 4, [0, 0, -1, -1])
    assert q[1] < 0.7
    assert q[2:].tolist() == [0.7, 0.7]


def test_many_errors_make_a_band_surer():
    q = corrected([0] * 21, [0.55] * 21, [1] * 20 + [-1])
    assert q[-1] > 0.9


def test_rare_classes_need_more():
    weight = need([0, 90, 900], gamma=0.5)
    assert weight[0] > weight[1] > weight[2]
    assert need([5, 50], gamma=0.0).tolist() == [1.0, 1.0]


def test_positives_are_given_ones_less_wrong_and_more_missing_ones():
    findings = listed(3, rows=3, classes=1)._replace(
        given=np.array([1, 0, 0]), p=np.array([0.9, 0.8, 0.5]), column=np.zeros(3, dtype=int)
    )
    error = np.array([1, 0, -1])
    assert positives(findings, findings.p, error, [10]).tolist() == [10 - 1 + 0 + 0.5]


def test_a_picture_with_many_sure_findings_comes_before_one_with_a_single_sure_one():
    findings = listed(4, rows=9, classes=9)._replace(
        row=np.array([5, 5, 5, 2]), p=np.array([0.9, 0.9, 0.9, 0.95])
    )
    nothing = np.full(4, -1)
    assert picture_order(findings, np.ones(4, dtype=bool), nothing, [5] * 9) == [5, 2]
    assert picture_order(findings, np.zeros(4, dtype=bool), nothing, [5] * 9) == []
    only = np.array([False, False, True, True])
    assert picture_order(findings, only, nothing, [5] * 9) == [2, 5]


def test_worth_is_q_unless_need_is_asked_for():
    findings = listed()
    error = np.full(200, -1)
    np.testing.assert_allclose(worth_of(findings, error, [1] * 6), findings.p)
