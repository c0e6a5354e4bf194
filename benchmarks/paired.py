"""Paired differences between two methods: intervals over seeds and over test rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

import numpy as np
from scipy.special import stdtrit
from torch import Tensor

from balancemix.evaluation import resampling
from balancemix.evaluation.resampling import Counts, Floats


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences, its standard error, and its 95 % interval.

    With a single pair, error and interval are NaN.
    """

    mean: float
    error: float
    low: float
    high: float


def over_seeds(ours: Sequence[float], others: Sequence[float]) -> Difference:
    """Compare scores of the same seeds, with Student's t.

    >>> over_seeds([3.0, 5.0], [1.0, 2.0]).mean
    2.5
    """
    differences = [a - b for a, b in zip(ours, others, strict=True)]
    if len(differences) < 2:
        return Difference(differences[0], math.nan, math.nan, math.nan)
    centre, error = mean(differences), stdev(differences) / len(differences) ** 0.5
    reach = float(stdtrit(len(differences) - 1, 0.975)) * error
    return Difference(centre, error, centre - reach, centre + reach)


def over_rows(ours: Sequence[Floats], others: Sequence[Floats]) -> tuple[float, float]:
    """Return the 95 % interval of the difference, the mean over seeds, of R draws of test rows.

    Each array holds the mAP of one seed in all draws, which must be the same for both sides.
    """
    differences = np.mean([a - b for a, b in zip(ours, others, strict=True)], axis=0)
    low, high = np.percentile(differences, [2.5, 97.5])
    return float(low), float(high)


def draw_rows(rows: int, draws: int, seed: int = 0) -> Counts:
    """Draw `rows` of as many rows with replacement: how often each row comes in each draw, N×R."""
    return resampling.draw_rows(rows, draws, np.random.default_rng(seed))


def mean_ap(truth: Tensor, logits: Tensor, counts: Counts) -> Floats:
    """Compute the mAP in percent, as `evaluate` does, of each draw of rows: R numbers.

    A class without positives in a draw is left out of the mean, and so is a truth of −1.
    """
    total, classes = np.zeros(counts.shape[1]), np.zeros(counts.shape[1])
    for scores, labels in zip(logits.T.numpy(), truth.T.numpy(), strict=True):
        each = resampling.ap_of_draws(scores, labels, counts)
        total += np.nan_to_num(each)
        classes += ~np.isnan(each)
    return 100 * total / classes
