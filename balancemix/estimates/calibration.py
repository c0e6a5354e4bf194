"""Probabilities that fit what people said: a rising curve of doubt with the sum as measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit

from balancemix.estimates.estimate import Estimate, Floats

# Normal priors (mean, standard deviation) of log slope; of the log-odds of the ceiling above those
# of an average label; of the log-odds of the share of errors that lie on the floor. They were
# chosen on simulated errors (docs/estimates.md). The ceiling of wrong labels is low: the judge
# also overlooks objects that are there.
_PRIORS = {
    "wrong": ((0.2, 0.4), (2.7, 0.7), (-2.5, 1.5)),
    "missing": ((0.2, 0.4), (7.5, 1.5), (-2.5, 1.5)),
}
_BINS = 2000
_MOST = 0.98  # of the labels of a side can be errors


@dataclass(frozen=True)
class Calibration:
    """P(error | doubt) of one side: floor + (ceiling − floor)·σ(intercept + slope·doubt)."""

    intercept: float
    slope: float
    floor: float
    ceiling: float

    def probability(self, doubt: npt.ArrayLike) -> Floats:
        """Compute the probability of an error for doubts; 0 for −inf, which is not judged."""
        x = np.asarray(doubt, dtype=np.float64)
        rise = expit(self.intercept + self.slope * x)
        level = self.floor + (self.ceiling - self.floor) * rise
        return np.where(np.isneginf(x), 0.0, level)


def calibrate(
    doubt: npt.ArrayLike,
    is_error: npt.ArrayLike,
    side: Literal["wrong", "missing"],
    all_doubt: npt.ArrayLike,
    total: Estimate,
) -> Calibration:
    """Learn P(error | doubt) of one side from m labels that people settled.

    `doubt` and `is_error` are of the settled labels of the side, `all_doubt` of all its labels, and
    `total` the measured number of errors among these. Slope, ceiling and floor are the likeliest,
    with priors; the intercept is the one with which the probabilities of all labels sum to the
    total, or to 1 where no error was seen.
    """
    x, wrong = (np.asarray(each, dtype=np.float64) for each in (doubt, is_error))
    judged = np.isfinite(x)
    every, counts = _binned(np.asarray(all_doubt, dtype=np.float64))
    size = float(counts.sum())
    # Errors of labels that are not judged cannot be listed.
    goal = total.value * float(wrong[judged].sum()) / max(float(wrong.sum()), 1.0)
    goal = min(max(goal, 1.0), _MOST * size)
    x, wrong = x[judged], wrong[judged]
    mean, spread = np.array(_PRIORS[side]).T

    def loss(point: Floats) -> float:
        curve = _curve(point, every, counts, goal)
        if curve is None:
            return np.inf
        p = np.clip(curve.probability(x), 1e-12, 1 - 1e-12)
        likelihood = float(wrong @ np.log(p) + (1 - wrong) @ np.log1p(-p))
        return float((((point - mean) / spread) ** 2).sum()) / 2 - likelihood

    start = np.vstack([mean, mean + np.diag(spread)])
    found = minimize(
        loss, mean, method="Nelder-Mead",
        options={"initial_simplex": start, "xatol": 0.01, "fatol": 0.01, "maxfev": 400},
    )  # fmt: skip
    curve = _curve(found.x, every, counts, goal)
    assert curve is not None
    return curve


def lower(curve: Calibration, all_doubt: npt.ArrayLike, total: Estimate) -> Calibration:
    """Lower a curve until the probabilities of all labels sum to the lower end of the total.

    The slope stays. Ceiling and floor fall as they would in `calibrate` with fewer errors: the
    ceiling's odds with those of an average label, the floor with the sum. This stays at 1 or more.
    """
    every, counts = _binned(np.asarray(all_doubt, dtype=np.float64))
    size, before = float(counts.sum()), float(counts @ curve.probability(every))
    share = total.low / total.value if total.value > 0 else 0.0
    goal = min(max(share * before, 1.0), before)
    ceiling = float(expit(logit(curve.ceiling) + logit(goal / size) - logit(before / size)))
    return _summing(every, counts, goal, curve.slope, curve.floor * goal / before, ceiling) or curve


def _curve(point: Floats, doubt: Floats, counts: Floats, goal: float) -> Calibration | None:
    """Find the curve of three parameters that sums to the goal; None if there is none."""
    size = float(counts.sum())
    slope, share = float(np.exp(point[0])), float(expit(point[2]))
    ceiling = float(expit(point[1] + logit(goal / size)))
    return _summing(doubt, counts, goal, slope, share * goal / size, ceiling)


def _summing(
    doubt: Floats, counts: Floats, goal: float, slope: float, floor: float, ceiling: float
) -> Calibration | None:
    """Find the intercept with which the probabilities sum to the goal; None if there is none."""
    size = float(counts.sum())
    reach = 60 + slope * float(np.abs(doubt).max())

    def excess(intercept: float) -> float:
        rise = float(counts @ expit(intercept + slope * doubt))
        return floor * size + (ceiling - floor) * rise - goal

    if excess(reach) <= 0:  # the ceiling is too low
        return None
    intercept = float(brentq(excess, -reach, reach, xtol=1e-6))
    return Calibration(intercept, slope, floor, ceiling)


def _binned(doubt: Floats) -> tuple[Floats, Floats]:
    """Summarise doubts by the means and counts of narrow bins, without those of −inf."""
    x = doubt[np.isfinite(doubt)]
    if not len(x):
        return np.zeros(1), np.ones(1)
    edges = np.linspace(x.min(), x.max(), _BINS + 1)[1:-1]
    where = np.searchsorted(edges, x)
    counts = np.bincount(where, minlength=_BINS).astype(np.float64)
    sums = np.bincount(where, weights=x, minlength=_BINS)
    kept = counts > 0
    return sums[kept] / counts[kept], counts[kept]
