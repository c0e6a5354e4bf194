"""Intervals that hold while few errors are seen: none seen means at most so many, not none."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from math import log1p

from scipy.special import gammaincinv
from scipy.stats import hypergeom

from balancemix.estimates.estimate import ENOUGH, HIGH, LOW, Estimate, Floats


def gamma_interval(errors: Sequence[Floats], sizes: Sequence[int]) -> Estimate:
    """Estimate all errors of N_h units from those of n_h units drawn at random, by strata h.

    Fay and Feuer (1997): T = Σ_h w_h Σ_i y_i with w_h = N_h/n_h is taken as a sum of weighted
    Poisson counts. φ ≥ 1 widens the interval where errors come in clumps.

    Departure: a finite population. The variance of a stratum shrinks by 1 − n_h/N_h, and the
    weight of an error that was just not seen is −1/log(1 − n_h/N_h) instead of N_h/n_h: with no
    error seen, the upper end is the largest number that draws without replacement would miss
    with 2.5 % probability. Errors of strata that were looked at whole are counted, not estimated.

    >>> import numpy as np
    >>> none = gamma_interval([np.zeros(50)], [5000])
    >>> none.low, round(none.high)
    (0.0, 367)
    """
    total = variance = weight = clumped = spread = 0.0
    for y, size in zip(errors, sizes, strict=True):
        seen, share = len(y), len(y) / size
        total += float(y.sum()) / share
        variance += (1 - share) * float(y.sum()) / share**2
        weight = max(weight, -1 / log1p(-share) if share < 1 else 0.0)
        clumped += float(((y - y.mean()) ** 2).sum())
        spread += float(y.mean()) * (seen - 1)
    clumps = max(1.0, clumped / spread) if spread > 0 else 1.0
    return _gamma(total, clumps * variance, clumps * weight)


def _gamma(total: float, variance: float, weight: float) -> Estimate:
    """Find both ends: quantiles of gamma distributions with the mean and variance of the total."""
    low = high = total
    if variance > 0:
        low = variance / total * float(gammaincinv(total**2 / variance, LOW))
    if weight > 0:
        mean, spread = total + weight, variance + weight**2
        high = spread / mean * float(gammaincinv(mean**2 / spread, HIGH))
    return Estimate(total, low, high, True)


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
