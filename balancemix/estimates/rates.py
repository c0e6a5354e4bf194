"""Shares: of the given positives that are wrong, and of the true positives that are missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from balancemix.estimates.estimate import HIGH, Estimate, Floats
from balancemix.estimates.pictures import from_pictures, is_rough, without_each


@dataclass(frozen=True)
class Side:
    """Errors of one side (wrong or missing) in settled pictures, and the judge's sums."""

    errors: Floats  # n
    sums: Floats  # n×2
    all_sums: Floats  # N×2

    def total(self) -> Estimate:
        """Estimate the errors of all pictures."""
        return from_pictures(self.errors, self.sums, self.all_sums)


def wrong_rate(total: Estimate, given: int) -> Estimate:
    """Divide the number of wrong labels by the given positives, which are known.

    >>> wrong_rate(Estimate(50, 20, 300, True), 200)
    Estimate(value=0.25, low=0.1, high=1.0, rough=True)
    """
    return total.times(1 / max(given, 1)).within(0.0, 1.0)


def missing_rate(wrong: Side, missing: Side, given: int) -> Estimate:
    """Estimate missing ÷ (given − wrong + missing), the share of the true positives not given.

    The interval is a jackknife's: the rate is estimated again without each of the pictures
    (Quenouille 1956, Tukey 1958). While few pictures miss a label, it has the ends of both totals:
    where labels were exchanged, wrong and missing ones are many or few together.
    """
    w, m = wrong.total(), missing.total()
    rate = _rate(w.value, m.value, given)
    if is_rough(missing.errors):
        low, high = _rate(w.low, m.low, given), _rate(w.high, m.high, given)
        return Estimate(rate, min(low, rate), max(high, rate), True)
    n, size = len(missing.errors), len(missing.all_sums)
    each = _rates(
        without_each(wrong.errors, wrong.sums, wrong.all_sums),
        without_each(missing.errors, missing.sums, missing.all_sums),
        given,
    )
    error = np.sqrt((n - 1) / n * float(((each - each.mean()) ** 2).sum()) * (1 - n / size))
    half = float(stdtrit(n - 3, HIGH)) * error
    return Estimate(rate, rate - half, rate + half, False).within(0.0, 1.0)


def _rate(wrong: float, missing: float, given: int) -> float:
    return float(_rates(np.float64(wrong), np.float64(missing), given))


def _rates(wrong: Floats | np.float64, missing: Floats | np.float64, given: int) -> Floats:
    right = np.maximum(given - wrong, 0)
    return np.asarray(missing / np.maximum(right + missing, 1e-12), dtype=np.float64)
