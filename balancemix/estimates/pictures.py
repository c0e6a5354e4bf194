"""Whole pictures, drawn at random and settled: how many labels are wrong or missing in all."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from balancemix.errors import InputError
from balancemix.estimates.estimate import ENOUGH, Estimate, Floats
from balancemix.estimates.few import exact_count, gamma_interval
from balancemix.estimates.regression import left_out_totals, regression_total


def from_pictures(errors: npt.ArrayLike, sums: npt.ArrayLike, all_sums: npt.ArrayLike) -> Estimate:
    """Estimate the errors of one side in all N pictures from those of n pictures.

    `errors` (n) counts the errors of each settled picture, `sums` (n×2) are the judge's expected
    errors and disagreements of these, `all_sums` (N×2) of all pictures. The estimate is rough
    while fewer than 20 pictures have an error; say `pictures_with_errors` beside it then.

    >>> from_pictures([0.0] * 49 + [2.0], np.zeros((50, 2)), np.zeros((5000, 2))).value
    200.0
    """
    y, x, every = (np.asarray(each, dtype=np.float64) for each in (errors, sums, all_sums))
    if not len(y):
        raise InputError("no picture has been settled; settle at least one")
    few = is_rough(y)
    total = gamma_interval(y, len(every)) if few else regression_total(y, x, every)
    return total.within(float(y.sum()), np.inf)


def is_rough(errors: Floats) -> bool:
    """Tell whether fewer than 20 units have an error."""
    return int((errors > 0).sum()) < ENOUGH


def pictures_with_errors(errors: npt.ArrayLike, size: int) -> Estimate:
    """Estimate how many of `size` pictures have an error, by an exact interval."""
    y = np.asarray(errors, dtype=np.float64)
    return exact_count(int((y > 0).sum()), len(y), size)


def without_each(errors: Floats, sums: Floats, all_sums: Floats) -> Floats:
    """Estimate the total n times, each time without one of the pictures: n."""
    if is_rough(errors):
        others = float(errors.sum()) - errors
        return others * (len(all_sums) / (len(errors) - 1))
    return left_out_totals(errors, sums, all_sums)
