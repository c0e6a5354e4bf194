"""How good a list is: of its first m labels, so many are errors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from balancemix.estimates.estimate import ENOUGH, HIGH, LOW, Estimate

LEAST = 10  # listed labels that were looked at, below which nothing is said


def among_top(errors: npt.ArrayLike, listed: npt.ArrayLike, most: int) -> Estimate | None:
    """Estimate how many of the first `most` labels of a list are errors; None with too little.

    `listed` counts, in each picture drawn at random, the labels that stand among the first `most`,
    `errors` those of them that are errors. Labels of a picture are not independent: the interval
    of Clopper and Pearson is computed for as many independent labels as tell the same (Korn and
    Graubard 1998), the number looked at divided by the variance that pictures add.

    >>> round(among_top([1, 0] * 20, [1, 1] * 20, 500).value)
    250
    """
    y, c = (np.asarray(each, dtype=np.float64) for each in (errors, listed))
    n, seen, wrong = len(y), float(c.sum()), float(y.sum())
    if seen < LEAST:
        return None
    rate = wrong / seen
    plain = rate * (1 - rate) / seen
    pictures = float(((y - rate * c) ** 2).sum()) * n / max(n - 1, 1) / seen**2
    effect = max(1.0, pictures / plain) if plain > 0 else max(1.0, float((c**2).sum()) / seen)
    hits, count = wrong / effect, seen / effect
    low = float(betaincinv(hits, count - hits + 1, LOW)) if wrong > 0 else 0.0
    high = float(betaincinv(hits + 1, count - hits, HIGH)) if wrong < seen else 1.0
    estimate = Estimate(rate, low, high, wrong < ENOUGH).times(most)
    return estimate.within(wrong, most - (seen - wrong))
