"""The top of a list, single classes, and probabilities that fit what people said."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import beta

from balancemix.estimates.calibration import calibrate
from balancemix.estimates.classes import by_class
from balancemix.estimates.estimate import Estimate
from balancemix.estimates.few import exact_count
from balancemix.estimates.top import among_top


def test_one_label_a_picture_gives_the_interval_of_clopper_and_pearson():
    y = np.r_[np.ones(30), np.zeros(10)]
    found = among_top(y, np.ones(40), 100_000)
    effect = 40 / 39  # n/(n − 1)
    hits, count = 30 / effect, 40 / effect
    low, high = beta.ppf(0.025, hits, count - hits + 1), beta.ppf(0.975, hits + 1, count - hits)
    assert found.value == pytest.approx(75_000)
    np.testing.assert_allclose((found.low, found.high), (1e5 * low, 1e5 * high))


def test_pictures_that_are_all_right_or_all_wrong_widen_the_interval():
    single = among_top([1, 0] * 20, [1] * 40, 1000)
    clumps = among_top([10, 0, 10, 0], [10] * 4, 1000)
    assert clumps.value == single.value
    assert clumps.low < single.low < single.high < clumps.high


def test_too_few_listed_labels_say_nothing():
    assert among_top([1] * 9, [1] * 9, 500) is None


def test_a_class_is_estimated_where_enough_was_seen_whatever_was_seen():
    for errors in (0, 7):
        found = by_class([errors] * 3, [40, 19, 40], [400, 190, 4000], [400, 190, 300])
        assert found == [exact_count(errors, 40, 400), None, None]


def labels(seed, size=20_000, slope=0.8):
    generator = np.random.default_rng(seed)
    doubt = generator.normal(-3, 2, size)
    return doubt, generator.random(size) < expit(slope * doubt - 0.5)


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_rise_with_doubt_and_sum_to_the_total(seed):
    doubt, wrong = labels(seed)
    total = Estimate(wrong.sum(), 0, 0, False)
    found = calibrate(doubt[:1000], wrong[:1000], expit(doubt[:1000]), doubt, total)
    probability = found.probability(np.sort(doubt))
    assert (np.diff(probability) > 0).all()
    assert probability.sum() == pytest.approx(wrong.sum(), rel=1e-3)
    assert found.probability(-np.inf) == 0


def test_many_answers_find_the_slope_whatever_was_modelled():
    doubt, wrong = labels(0)
    total = Estimate(wrong.sum(), 0, 0, False)
    found = calibrate(doubt, wrong, expit(3 * doubt), doubt, total)
    assert found.slope == pytest.approx(0.8, rel=0.1)


def test_without_answers_the_slope_is_the_modelled_one():
    doubt, _ = labels(0)
    few = doubt[:300]
    found = calibrate(few, np.zeros(300), expit(1.7 * few), doubt, Estimate(0, 0, 250, True))
    assert found.slope > 0
    listed = found.probability(doubt).sum()
    assert 0 < listed < 250


def test_verified_labels_cannot_be_errors():
    doubt, wrong = labels(1)
    every = np.r_[doubt, np.full(500, -np.inf)]
    total = Estimate(wrong.sum(), 0, 0, False)
    found = calibrate(doubt[:999], wrong[:999], expit(doubt[:999]), every, total)
    assert found == calibrate(doubt[:999], wrong[:999], expit(doubt[:999]), doubt, total)
    assert np.isfinite(logit(found.probability(doubt))).all()
