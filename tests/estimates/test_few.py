"""Few errors: against the formulae written out, and against counting every possibility."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.stats import gamma

from balancemix.estimates.few import exact_count, gamma_interval


def slow_gamma(y, size):
    """Fay and Kim's mid-p interval of a population without end, its quantiles by trying."""
    w = size / len(y)
    total = w * sum(y)
    clumped, spread = sum((v - np.mean(y)) ** 2 for v in y), np.mean(y) * (len(y) - 1)
    phi = max(1, clumped / spread) if spread else 1
    v, w = phi * w**2 * sum(y), phi * w
    x = np.linspace(0, total + 10 * np.sqrt(v + w**2), 200_001)
    fewer = gamma.cdf(x, total**2 / v, scale=v / total) if total else np.ones(len(x))
    more = gamma.cdf(x, (total + w) ** 2 / (v + w**2), scale=(v + w**2) / (total + w))
    ends = np.searchsorted((fewer + more) / 2, [0.025, 0.975])
    return total, *x[ends]


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.02, 0.0])
def test_the_interval_of_a_huge_population_is_that_of_fay_and_kim(rate):
    y = np.random.default_rng(0).poisson(rate, 40).astype(float)
    found = gamma_interval(y, 10**9)
    expected = slow_gamma(y, 10**9)
    ends = (found.value, found.low, found.high)
    np.testing.assert_allclose(ends, expected, rtol=1e-3, atol=1e4)
    assert found.rough


def test_clumps_widen_the_interval_and_keep_the_estimate():
    single = gamma_interval(np.array([1.0] * 10 + [0.0] * 90), 10_000)
    clumps = gamma_interval(np.array([5.0] * 2 + [0.0] * 98), 10_000)
    assert clumps.value == pytest.approx(single.value)
    assert clumps.low < single.low < single.high < clumps.high


@pytest.mark.parametrize(("n", "size"), [(50, 5000), (50, 100), (200, 5794), (99, 100)])
def test_none_seen_is_at_most_what_such_a_draw_would_miss(n, size):
    found = gamma_interval(np.zeros(n), size)
    assert found.value == found.low == 0
    assert found.high <= 3.7 * size / n
    missed = (1 - n / size) ** found.high  # each error is left out with this probability
    assert missed == pytest.approx(0.05)


def test_what_was_looked_at_whole_is_known():
    found = gamma_interval(np.array([1.0, 0.0, 2.0]), 3)
    assert (found.value, found.low, found.high) == (3, 3, 3)


def slow_exact(hits, drawn, size):
    """Try every count, with exact fractions."""

    def chance(count, x):
        return Fraction(comb(count, x) * comb(size - count, drawn - x), comb(size, drawn))

    held = []
    for count in range(hits, size - drawn + hits + 1):
        least = sum(chance(count, x) for x in range(hits, min(count, drawn) + 1))
        most = sum(chance(count, x) for x in range(max(0, drawn - size + count), hits + 1))
        if least > Fraction(1, 40) and most > Fraction(1, 40):
            held.append(count)
    return min(held), max(held)


@pytest.mark.parametrize(("drawn", "size"), [(1, 1), (5, 5), (7, 30), (12, 60)])
def test_the_exact_interval_is_that_of_counting_every_possibility(drawn, size):
    for hits in range(drawn + 1):
        found = exact_count(hits, drawn, size)
        assert (found.low, found.high) == slow_exact(hits, drawn, size), hits
        assert found.value == pytest.approx(size * hits / drawn)
