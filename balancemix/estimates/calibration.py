"""Probabilities that fit what people said: one slope learned, the sum as measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit

from balancemix.estimates.estimate import Estimate, Floats

_BINS = 2000
_SPREAD = 0.5  # standard deviation of the logarithm of the slope around the modelled one
_SLOPES = (-3.0, 1.5)  # logarithms of the least and the largest


@dataclass(frozen=True)
class Calibration:
    """P(error | doubt) of one side: a logistic curve, rising with doubt."""

    intercept: float
    slope: float

    def probability(self, doubt: npt.ArrayLike) -> Floats:
        """Compute the probability of an error of any array of doubts; 0 for −inf."""
        x = np.asarray(doubt, dtype=np.float64)
        return np.asarray(expit(self.intercept + self.slope * x), dtype=np.float64)


def calibrate(
    doubt: npt.ArrayLike,
    is_error: npt.ArrayLike,
    modelled: npt.ArrayLike,
    all_doubt: npt.ArrayLike,
    total: Estimate,
) -> Calibration:
    """Learn P(error | doubt) of one side from m labels that people settled.

    `doubt`, `is_error` and `modelled` (the probability before) are of the settled labels,
    `all_doubt` of all labels of the side, `total` the measured number of errors among them. For
    every slope there is one intercept with which the probabilities of all labels sum to the
    total. The slope is the likeliest one, with a prior around that of the modelled probabilities:
    a normal distribution of its logarithm.
    """
    x, p = (np.asarray(each, dtype=np.float64) for each in (doubt, modelled))
    wrong = np.asarray(is_error, dtype=np.float64)
    every, counts = _binned(np.asarray(all_doubt, dtype=np.float64))
    seen = np.isfinite(x)
    x, p, wrong = x[seen], p[seen], wrong[seen]
    # None seen is not none: then as if half an error had been.
    errors = total.value if total.value > 0 else total.high / 7.4
    errors = min(max(errors, 1e-3), counts.sum() - 1e-3)

    def curve(log_slope: float, goal: float, at: Floats, weight: Floats) -> Calibration:
        slope = float(np.exp(log_slope))
        reach = 40 + slope * float(np.abs(at).max(initial=0))
        found = brentq(lambda a: float(weight @ expit(a + slope * at)) - goal, -reach, reach)
        return Calibration(float(found), slope)

    def modelled_loss(log_slope: float) -> float:
        goal = min(max(float(p.sum()), 1e-3), len(p) - 1e-3)
        return _loss(curve(log_slope, goal, x, np.ones(len(x))), x, p)

    def loss(log_slope: float) -> float:
        prior = (log_slope - centre) ** 2 / (2 * _SPREAD**2)
        return prior + _loss(curve(log_slope, errors, every, counts), x, wrong)

    centre = float(minimize_scalar(modelled_loss, bounds=_SLOPES, method="bounded").x)
    best = float(minimize_scalar(loss, bounds=_SLOPES, method="bounded").x)
    return curve(best, errors, every, counts)


def _loss(calibration: Calibration, doubt: Floats, target: Floats) -> float:
    """Compute the cross-entropy of the probabilities of labels, summed."""
    logit = calibration.intercept + calibration.slope * doubt
    return float(np.logaddexp(0, logit).sum() - target @ logit)


def _binned(doubt: Floats) -> tuple[Floats, Floats]:
    """Summarise many doubts by the means and counts of narrow bins; −inf cannot be an error."""
    x = doubt[np.isfinite(doubt)]
    edges = np.linspace(x.min(), x.max(), _BINS + 1)[1:-1]
    where = np.searchsorted(edges, x)
    counts = np.bincount(where, minlength=_BINS).astype(np.float64)
    sums = np.bincount(where, weights=x, minlength=_BINS)
    kept = counts > 0
    return sums[kept] / counts[kept], counts[kept]
