"""How far two people agree beyond chance: Cohen's kappa."""

from __future__ import annotations

from math import sqrt

import numpy as np
import numpy.typing as npt

from balancemix.estimates.estimate import ENOUGH, Estimate

_Z = 1.959963984540054  # the 97.5 % quantile of the normal distribution


def kappa(first: npt.ArrayLike, second: npt.ArrayLike) -> Estimate | None:
    """Compute Cohen's (1960) κ of two people's answers, yes or no, about the same labels.

    κ is 1 where they always agree and 0 where they agree as often as chance would have it. The
    interval is that of Fleiss, Cohen and Everitt (1969), for many labels. None where both always
    gave the same one answer: chance alone would make them agree.

    >>> found = kappa([1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 1])
    >>> round(found.value, 3)
    0.467
    """
    a, b = (np.asarray(each, dtype=bool) for each in (first, second))
    n = len(a)
    if n == 0:
        return None
    cells = np.array([[(~a & ~b).sum(), (~a & b).sum()], [(a & ~b).sum(), (a & b).sum()]]) / n
    rows, columns = cells.sum(1), cells.sum(0)
    seen, chance = float(np.trace(cells)), float(rows @ columns)
    if chance == 1:
        return None
    value = (seen - chance) / (1 - chance)
    spread = 0.0
    for i in range(2):
        for j in range(2):
            if i == j:
                term = 1 - (rows[i] + columns[i]) * (1 - value)
            else:
                term = (1 - value) * (columns[i] + rows[j])
            spread += float(cells[i, j]) * float(term) ** 2
    spread -= (value - chance * (1 - value)) ** 2
    reach = _Z * sqrt(max(spread, 0.0) / n) / (1 - chance)
    apart = n - round(seen * n)
    return Estimate(value, value - reach, value + reach, apart < ENOUGH).within(-1.0, 1.0)
