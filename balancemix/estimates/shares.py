"""Shares of answers: an interval that holds near 0 and 1 too."""

from __future__ import annotations

from math import sqrt

from balancemix.estimates.estimate import ENOUGH, Estimate

_Z = 1.959963984540054  # the 97.5 % quantile of the normal distribution


def wilson(hits: int, count: int) -> Estimate | None:
    """Estimate a share from `hits` of `count` answers, with Wilson's (1927) interval.

    Returns None without answers. It is rough while fewer than 20 answers went either way.

    >>> found = wilson(84, 100)
    >>> found.value, round(found.low, 3), round(found.high, 3)
    (0.84, 0.756, 0.899)
    """
    if count == 0:
        return None
    share, z2 = hits / count, _Z**2
    centre = (hits + z2 / 2) / (count + z2)
    reach = _Z / (count + z2) * sqrt(count * share * (1 - share) + z2 / 4)
    rough = min(hits, count - hits) < ENOUGH
    return Estimate(share, centre - reach, centre + reach, rough).within(0.0, 1.0)
