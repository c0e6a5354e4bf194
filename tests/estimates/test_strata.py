"""Single labels by rank: how they are divided, drawn and counted."""

from itertools import pairwise

import numpy as np
import pytest

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
    assert first.sum() == min(total // 3, sum(sizes))
    answers = [np.arange(n) % 2 for n in first]
    both = first + second_phase(answers, sizes, total)
    assert both.sum() == min(total, sum(sizes))
    assert (both <= sizes).all()


def test_the_second_phase_goes_where_it_is_uncertain_and_large():
    answers = [np.r_[np.ones(3), np.zeros(3)], np.zeros(6), np.zeros(6)]
    more = second_phase(answers, [1000, 1000, 4000], 198)
    spread = np.array(
        [1000 * 0.5, 1000 * np.sqrt(0.5 / 7 * 6.5 / 7), 4000 * np.sqrt(0.5 * 6.5) / 7]
    )
    np.testing.assert_allclose(more, 180 * spread / spread.sum(), atol=1)


def test_the_total_is_that_of_the_strata():
    answers = [np.r_[np.ones(8), np.zeros(2)], np.r_[np.ones(1), np.zeros(19)]]
    found = from_strata(answers, [100, 1000])
    assert found.value == pytest.approx(0.8 * 100 + 0.05 * 1000)
    assert 9 <= found.low < found.value < found.high <= 1100 - 21


def test_labels_that_were_all_looked_at_are_known():
    found = from_strata([np.ones(5), np.r_[1.0, 0.0]], [5, 2])
    assert (found.low, found.value, found.high) == (6, 6, 6)
