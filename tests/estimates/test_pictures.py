"""Pictures: regression against fits written out, and what must hold of every estimate."""

import numpy as np
import pytest
from scipy.stats import t

from balancemix.errors import InputError
from balancemix.estimates.estimate import Estimate, both_ways
from balancemix.estimates.pictures import from_pictures, pictures_with_errors, without_each
from balancemix.estimates.rates import Side, missing_rate, wrong_rate


def drawn(n=40, size=400, seed=0):
    generator = np.random.default_rng(seed)
    every = generator.gamma(1.0, 2.0, (size, 2))
    y = generator.poisson(0.3 + every[:n].sum(1)).astype(float)
    return y, every[:n], every


def fit(y, x, every):
    """Fit by lstsq, capped at the 99th percentile, and predict the mean of all."""
    cap = np.percentile(every, 99, axis=0)
    design = np.c_[np.ones(len(x)), np.minimum(x, cap)]
    beta = np.linalg.lstsq(design, y, rcond=None)[0]
    return np.r_[1, np.minimum(every, cap).mean(0)] @ beta


def test_the_regression_is_least_squares_with_leave_one_out_residuals():
    y, x, every = drawn()
    n, size = len(y), len(every)
    found = from_pictures(y, x, every)
    # The mean is linear in y: its weights are the estimates of unit vectors.
    weight = np.array([fit(unit, x, every) for unit in np.eye(n)])
    cap = np.percentile(every, 99, axis=0)
    design = np.c_[np.ones(n), np.minimum(x, cap)]
    left_out = []
    for i in range(n):
        rest = np.arange(n) != i
        beta = np.linalg.lstsq(design[rest], y[rest], rcond=None)[0]
        left_out.append(y[i] - design[i] @ beta)
    variance = (weight**2 * np.square(left_out)).sum() * n / (n - 1) * (1 - n / size)
    half = t.ppf(0.975, n - 3) * np.sqrt(variance)
    middle = fit(y, x, every)
    assert not found.rough
    expected = size * middle, size * (middle - half), size * (middle + half)
    np.testing.assert_allclose((found.value, found.low, found.high), expected)


@pytest.mark.parametrize("rare", [False, True])
def test_leaving_out_a_picture_is_estimating_without_it(rare):
    y, x, every = drawn()
    y = y * (np.arange(len(y)) < 5) if rare else y
    rest = [np.arange(len(y)) != i for i in range(len(y))]
    if rare:
        slow = [len(every) * y[keep].mean() for keep in rest]
    else:
        slow = [len(every) * fit(y[keep], x[keep], every) for keep in rest]
    np.testing.assert_allclose(without_each(y, x, every), slow)


def test_sums_that_explain_the_errors_shorten_the_interval_and_others_hardly_widen_it():
    y, x, every = drawn(n=100, size=1000)
    useful, useless = from_pictures(y, x, every), from_pictures(y, 0 * x, 0 * every)
    plain = t.ppf(0.975, 99) * y.std(ddof=1) / 10 * np.sqrt(0.9) * 1000
    assert useful.high - useful.low < 0.9 * (useless.high - useless.low)
    assert useless.value == pytest.approx(1000 * y.mean())
    assert (useless.high - useless.low) / 2 == pytest.approx(plain, rel=0.03)


@pytest.mark.parametrize("errors", [0, 3, 19, 20, 50])
def test_an_estimate_is_rough_until_twenty_pictures_have_an_error(errors):
    y = np.r_[np.ones(errors), np.zeros(50 - errors)]
    found = from_pictures(y, np.zeros((50, 2)), np.zeros((500, 2)))
    assert found.rough == (errors < 20)
    assert found.value == pytest.approx(10 * errors)
    assert found.low <= found.value <= found.high
    assert found.low >= errors * (errors > 0)
    assert pictures_with_errors(y, 500).value == pytest.approx(10 * errors)


def test_a_data_set_that_was_settled_whole_is_known():
    y, x, every = drawn(n=400)
    found = from_pictures(y, x, every)
    assert found.low == pytest.approx(y.sum())
    assert found.high == pytest.approx(y.sum())


def test_no_picture_says_nothing():
    with pytest.raises(InputError, match="no picture has been settled"):
        from_pictures([], np.zeros((0, 2)), np.zeros((9, 2)))


def test_unsure_answers_are_counted_both_ways():
    y, x, every = drawn()
    unsure = (np.arange(len(y)) % 7 == 0).astype(float)
    right, error = both_ways(lambda e: from_pictures(e, x, every), y, unsure)
    assert right == from_pictures(y, x, every)
    assert error == from_pictures(y + unsure, x, every)


def test_the_wrong_rate_is_of_the_given():
    assert wrong_rate(Estimate(30, 20, 40, False), 100) == Estimate(0.3, 0.2, 0.4, False)


def test_the_missing_rate_is_that_of_leaving_out_each_picture():
    y, x, every = drawn()
    wrong, given = np.minimum(y, 1.0), 2000
    found = missing_rate(Side(wrong, x, every), Side(y, x, every), given)

    def rate(keep):
        w, m = (len(every) * fit(e[keep], x[keep], every) for e in (wrong, y))
        return m / (given - w + m)

    n, size = len(y), len(every)
    each = [rate(np.arange(n) != i) for i in range(n)]
    error = np.sqrt((n - 1) ** 2 / n * np.var(each, ddof=1) * (1 - n / size))
    middle = rate(np.full(n, True))
    half = t.ppf(0.975, n - 3) * error
    np.testing.assert_allclose((found.value, found.low, found.high),
                               (middle, middle - half, middle + half))  # fmt: skip


@pytest.mark.parametrize("missing", [0, 1, 5])
def test_the_missing_rate_of_few_errors_follows_the_total(missing):
    y = np.r_[np.ones(missing), np.zeros(50 - missing)]
    none = Side(np.zeros(50), np.zeros((50, 2)), np.zeros((5000, 2)))
    side = Side(y, none.sums, none.all_sums)
    found, total = missing_rate(none, side, 10_000), side.total()
    assert found.rough
    assert found.value == pytest.approx(total.value / (10_000 + total.value))
    assert found.low == pytest.approx(total.low / (10_000 + total.low))
    most = none.total().high
    assert found.high == pytest.approx(total.high / (10_000 - most + total.high))
