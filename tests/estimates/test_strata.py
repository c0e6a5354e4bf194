"""Single labels by rank: how they are divided, drawn and counted."""

from itertools import pairwise

import numpy as np
import pytest

from balancemix.errors import InputError
from balancemix.estimates.few import gamma_ends
from balancemix.estimates.strata import draw_strata, first_phase, from_strata, second_phase


def test_strata_are_ranks_and_hold_every_label_once():
    doubt = np.random.default_rng(0).normal(size=1003)
    parts = draw_strata(doubt, np.random.default_rng(1))
    assert sorted(np.concatenate(parts).tolist()) == list(range(1003))
    for before, after in pairwise(parts):
        assert doubt[before].min() >= doubt[after].max()
    again = draw_strata(doubt, np.random.default_rng(1))
    assert all((a == b).all() for a, b in zip(parts, again, strict=True))


@pytest.mark.parametrize("sizes", [[100] * 10, [3, 100, 100], [5]])
@pytest.mark.parametrize("total", [0, 30, 200, 5000])
def test_both_phases_together_ask_for_the_number_planned(sizes, total):
    first = first_phase(sizes, total)
    assert first.sum() <= total / 3
    assert (first == np.minimum(first.max(), sizes)).all()
    answers = [np.arange(n) % 2 for n in first]
    both = first + second_phase(answers, sizes, total)
    assert both.sum() == min(total, sum(sizes))
    assert (both <= sizes).all()


def test_the_second_phase_goes_where_it_is_uncertain_and_large():
    answers = [np.r_[np.ones(3), np.zeros(3)], np.zeros(6), np.zeros(6)]
    sizes = np.array([1000, 1000, 4000])
    more = second_phase(answers, sizes.tolist(), 198)
    rate = np.array([3 + 1.5 + 0.5, 1.5 + 0.5, 0.5]) / (6 + 6 + 1)  # half of each neighbour's
    spread = sizes * np.sqrt(rate * (1 - rate))
    np.testing.assert_allclose(more + 6, 198 * spread / spread.sum(), atol=1)


def test_the_total_is_that_of_the_strata():
    answers = [np.r_[np.ones(8), np.zeros(2)], np.r_[np.ones(1), np.zeros(19)]]
    found = from_strata(answers, [100, 1000])
    assert found.value == pytest.approx(0.8 * 100 + 0.05 * 1000)
    assert 9 <= found.low < found.value < found.high <= 1100 - 21


def test_labels_that_were_all_looked_at_are_known():
    found = from_strata([np.ones(5), np.r_[1.0, 0.0]], [5, 2])
    assert (found.low, found.value, found.high) == (6, 6, 6)


def test_one_stratum_has_the_gamma_interval_of_binomial_draws():
    y = np.r_[np.ones(6), np.zeros(94)]
    found = from_strata([y], [10**9])
    expected = gamma_ends(6e7, 1e14 * y.var(ddof=1) * 100, 1e7)
    np.testing.assert_allclose(
        (found.value, found.low, found.high), (expected.value, expected.low, expected.high), 1e-5
    )


def test_right_and_wrong_are_alike():
    answers = [np.r_[np.ones(18), np.zeros(2)], np.r_[np.ones(11), np.zeros(9)]]
    found = from_strata(answers, [500, 900])
    mirror = from_strata([1 - y for y in answers], [500, 900])
    assert (found.value, found.low, found.high) == pytest.approx(
        (1400 - mirror.value, 1400 - mirror.high, 1400 - mirror.low)
    )


def test_no_error_in_any_stratum_is_at_most_as_many_as_in_one():
    sizes = [1471] * 6 + [1470] * 4
    first = first_phase(sizes, 200)
    drawn = first + second_phase([np.zeros(n) for n in first], sizes, 200)
    found = from_strata([np.zeros(n) for n in drawn], sizes)
    assert found.low == 0
    assert found.high <= 3.7 * sum(sizes) / 200


def test_a_stratum_without_answers_is_refused():
    with pytest.raises(InputError, match="stratum 2 of 2 has no answers"):
        from_strata([np.ones(3), []], [10, 10])


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_stratum_that_shows_only_errors_is_not_certain(mirrored):
    answers = [np.ones(20), *[np.zeros(20)] * 9]
    found = from_strata([1 - y for y in answers] if mirrored else answers, [1000] * 10)
    assert found.value == pytest.approx(9000 if mirrored else 1000)
    certain = 10_000 - found.high if mirrored else found.low
    assert certain == pytest.approx(1000 * 0.05 ** (1 / 20), rel=0.05)  # mid-p of the stratum alone
