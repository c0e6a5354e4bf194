"""Estimate: a number with its 95 % interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LOW, HIGH = 0.025, 0.975
ENOUGH = 20  # units with an error, from which on an estimate is not rough


@dataclass(frozen=True)
class Estimate:
    """A number and the ends of its 95 % interval; `rough` where few errors were seen."""

    value: float
    low: float
    high: float
    rough: bool

    def times(self, factor: float) -> Estimate:
        """Express the estimate in another unit."""
        return Estimate(factor * self.value, factor * self.low, factor * self.high, self.rough)

    def within(self, least: float, most: float) -> Estimate:
        """Cut off what is known to be impossible."""
        value, low, high = (min(max(x, least), most) for x in (self.value, self.low, self.high))
        return Estimate(value, low, high, self.rough)


def both_ways(
    estimate: Callable[[Floats], Estimate], errors: npt.ArrayLike, unsure: npt.ArrayLike
) -> tuple[Estimate, Estimate]:
    """Estimate with unsure answers counted as right, and again with each one as an error.

    `errors` and `unsure` are the numbers of both in each unit that was looked at.

    >>> from balancemix.estimates.pictures import pictures_with_errors
    >>> right, error = both_ways(lambda y: pictures_with_errors(y, 50), [1, 0] * 25, [0, 1] * 25)
    >>> right.value, error.value
    (25.0, 50.0)
    """
    seen = np.asarray(errors, dtype=np.float64)
    return estimate(seen), estimate(seen + np.asarray(unsure, dtype=np.float64))
