"""Intervals that hold while few errors are seen: none seen means at most so many, not none."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache
from math import log1p

from scipy.optimize import brentq
from scipy.special import gammainc, gammaincinv
from scipy.stats import hypergeom

from balancemix.estimates.estimate import ENOUGH, HIGH, LOW, Estimate, Floats


def gamma_interval(errors: Floats, size: int) -> Estimate:
    """Estimate all errors of `size` units from the numbers of those drawn at random.

    T = w·Σ y, with w units for each one drawn, is taken as a weighted Poisson count. Errors come in
    clumps: their variance is φ ≥ 1 times as large.

    >>> import numpy as np
    >>> none = gamma_interval(np.zeros(50), 5000)
    >>> none.low, round(none.high)
    (0.0, 298)
    """
    share = len(errors) / size
    mean, spread = float(errors.mean()), float(((errors - errors.mean()) ** 2).sum())
    clumps = max(1.0, spread / (mean * (len(errors) - 1))) if mean > 0 and len(errors) > 1 else 1.0
    variance = clumps * (1 - share) * float(errors.sum()) / share**2
    return gamma_ends(mean * size, variance, clumps * unseen_weight(share))


def gamma_ends(total: float, variance: float, weight: float) -> Estimate:
    """Find both ends of the interval of a weighted count.

    Fay and Feuer (1997) take the lower end from a gamma distribution with the mean and variance of
    the total, the upper end from that of the total and one more error of the given weight. Fay and
    Kim (2017) take both from the mean of the two distributions (mid-p), which is less wide and
    covers 95 % on average.
    """
    shape, scale = _gamma(total, variance)
    more, wide = _gamma(total + weight, variance + weight**2)

    def miss(x: float, level: float) -> float:
        fewer = float(gammainc(shape, x / scale)) if scale > 0 else float(x >= total)
        return (fewer + float(gammainc(more, x / wide))) / 2 - level

    if weight == 0:  # all was looked at
        return Estimate(total, total, total, True)
    least = scale * float(gammaincinv(shape, LOW)) if scale > 0 else total
    most = wide * float(gammaincinv(more, HIGH))
    low = float(brentq(miss, least, most, (LOW,))) if scale > 0 else total
    return Estimate(total, low, float(brentq(miss, low, most, (HIGH,))), True)


def _gamma(mean: float, variance: float) -> tuple[float, float]:
    """Compute the shape and scale of a gamma distribution; no scale where nothing varies."""
    return (mean**2 / variance, variance / mean) if variance > 0 else (1.0, 0.0)


def unseen_weight(share: float) -> float:
    """Say how many errors one that was just not seen stands for, if a share was looked at.

    Departure: 1/share in the paper. A draw without replacement misses all of m errors with
    probability (1 − share)^m, so that with none seen the upper end is the m of 5 %.
    """
    return -1 / log1p(-share) if share < 1 else 0.0


@lru_cache(maxsize=2**16)
def exact_count(hits: int, drawn: int, size: int) -> Estimate:
    """Estimate how many of `size` units have a property, from `hits` of those drawn at random.

    The interval of Clopper and Pearson (1934), of draws without replacement: all counts that
    would show so few, or so many, with more than 2.5 % probability. It covers at least 95 %.

    >>> exact_count(3, 50, 5000)
    Estimate(value=300.0, low=64.0, high=824.0, rough=True)
    """
    least, most = hits, size - drawn + hits
    low, high = least, most
    if hits > 0:
        low = _first(least, most, lambda m: bool(hypergeom.sf(hits - 1, size, m, drawn) > LOW))
    if hits < drawn:
        high = _first(least, most, lambda m: bool(hypergeom.cdf(hits, size, m, drawn) <= LOW)) - 1
    return Estimate(size * hits / drawn, float(low), float(high), hits < ENOUGH)


def _first(least: int, most: int, holds: Callable[[int], bool]) -> int:
    """Find the first number from which on it holds; one more than `most` if it never does."""
    return least + bisect_left(range(least, most + 1), True, key=holds)
