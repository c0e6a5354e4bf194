"""The top of a list, single classes, and probabilities that fit what people said."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import beta

from balancemix.estimates.calibration import calibrate, lower
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


def labels(seed, size=20_000, slope=1.2, ceiling=0.8, floor=0.01):
    generator = np.random.default_rng(seed)
    doubt = generator.normal(-2, 2, size)
    rate = floor + (ceiling - floor) * expit(slope * doubt - 0.5)
    return doubt, generator.random(size) < rate


def known(errors):
    return Estimate(float(errors), float(errors), float(errors), False)


@pytest.mark.parametrize("side", ["wrong", "missing"])
@pytest.mark.parametrize("seed", range(3))
def test_probabilities_rise_with_doubt_and_sum_to_the_total(seed, side):
    doubt, wrong = labels(seed)
    found = calibrate(doubt[:1000], wrong[:1000], side, doubt, known(wrong.sum()))
    probability = found.probability(np.sort(doubt))
    assert (np.diff(probability) > 0).all()
    assert probability.sum() == pytest.approx(wrong.sum(), rel=1e-3)
    assert found.probability(-np.inf) == 0


@pytest.mark.parametrize("side", ["wrong", "missing"])
def test_many_answers_find_the_curve_whatever_the_prior(side):
    doubt, wrong = labels(0, size=100_000)
    found = calibrate(doubt, wrong, side, doubt, known(wrong.sum()))
    assert found.slope == pytest.approx(1.2, rel=0.1)
    assert found.ceiling == pytest.approx(0.8, rel=0.1)
    assert found.floor == pytest.approx(0.01, abs=0.01)


def test_the_answers_of_fifty_pictures_are_enough():
    doubt, wrong = labels(1)
    found = calibrate(doubt[:500], wrong[:500], "wrong", doubt, known(wrong.sum()))
    probability = found.probability(doubt)
    listed = probability >= 0.2
    bins = np.array_split(np.argsort(probability[listed]), 10)
    apart = [abs((probability[listed][b] - wrong[listed][b]).mean()) for b in bins]
    assert np.mean(apart) < 0.1
    brier = np.mean((probability[listed] - wrong[listed]) ** 2)
    assert brier < wrong[listed].var()


def test_where_no_error_was_seen_nearly_nothing_is_listed():
    doubt, _ = labels(0)
    found = calibrate(doubt[:300], np.zeros(300), "wrong", doubt, Estimate(0, 0, 250, True))
    probability = found.probability(doubt)
    assert probability.sum() == pytest.approx(1, rel=1e-3)
    assert (probability >= 0.2).sum() <= 1


@pytest.mark.parametrize("side", ["wrong", "missing"])
def test_the_lower_curve_sums_to_the_lower_end_and_is_nowhere_higher(side):
    doubt, wrong = labels(2)
    total = Estimate(float(wrong.sum()), 0.6 * wrong.sum(), 2.0 * wrong.sum(), False)
    likeliest = calibrate(doubt[:500], wrong[:500], side, doubt, total)
    found = lower(likeliest, doubt, total)
    assert found.probability(doubt).sum() == pytest.approx(total.low, rel=1e-3)
    assert (found.probability(doubt) <= likeliest.probability(doubt)).all()
    assert found.slope == pytest.approx(likeliest.slope)
    same = lower(likeliest, doubt, known(wrong.sum()))
    np.testing.assert_allclose(same.probability(doubt), likeliest.probability(doubt), atol=1e-5)
    none = lower(likeliest, doubt, Estimate(5.0, 0.0, 20.0, True))
    assert none.probability(doubt).sum() == pytest.approx(1, rel=1e-3)
    for few in (np.zeros(3), np.full(3, -np.inf), np.zeros(0)):
        tiny = calibrate([], [], side, few, known(0))
        assert 0 <= lower(tiny, few, known(0)).probability(0.0) <= 1


def test_labels_that_are_not_judged_have_no_part_in_the_curve():
    doubt, wrong = labels(1)
    every = np.r_[doubt, np.full(500, -np.inf)]
    seen, errors = np.r_[doubt[:999], -np.inf], np.r_[wrong[:999], 1]
    found = calibrate(seen, errors, "wrong", every, known(3000))
    share = wrong[:999].sum() / errors.sum()
    assert found == calibrate(doubt[:999], wrong[:999], "wrong", doubt, known(3000 * share))
    assert np.isfinite(logit(found.probability(doubt))).all()


@pytest.mark.parametrize("errors", [0, 5])
def test_tiny_data_has_a_curve(errors):
    wrong = np.arange(5) < errors
    for side in ("wrong", "missing"):
        found = calibrate(np.zeros(5), wrong, side, np.zeros(5), known(errors))
        assert 0 < found.probability(0.0) < 1
        none = calibrate([], [], side, [], known(0))
        assert 0 <= none.probability(0.0) <= 1
