"""Is it worth going on? What the next answers should fix, and when too few will change anything."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from balancemix.estimates.estimate import Estimate
from balancemix.review.order import Floats, Ints

NEXT = 50  # answers that are looked ahead
STOP = 0.1  # fixes an answer, below which it stops paying
ENOUGH = 50  # answers, before which nothing is said
FEW = 0.05  # of what was fixed: where at most so much is left, it is time to stop

Kind = Literal["early", "go", "stop", "over"]


def in_order(rows: list[int], row: Ints, q: Floats) -> Floats:
    """Put the probabilities of open findings in the order in which they will be asked."""
    place = {each: i for i, each in enumerate(rows)}
    turn = np.array([place[int(each)] for each in row], dtype=np.int64)
    return q[np.lexsort((-q, turn))] if len(q) else q


def fixes_ahead(ahead: Floats, start: int = 0) -> float:
    """Sum up what the next 50 answers from `start` on should fix."""
    return float(ahead[start : start + NEXT].sum())


def stops_after(ahead: Floats, stop: float = STOP) -> int | None:
    """Find after how many answers the next 50 fix too few; None if they never do.

    >>> stops_after(np.array([0.5] * 60 + [0.0] * 60))
    51
    """
    total = np.concatenate([[0.0], ahead.cumsum()])
    starts = np.arange(max(len(ahead) - NEXT, 0) + 1)
    fixes = total[np.minimum(starts + NEXT, len(ahead))] - total[starts]
    low = np.flatnonzero(fixes < stop * NEXT)
    return int(low[0]) if len(low) else None


class Advice(NamedTuple):
    """Whether to go on, and what the next answers would fix."""

    kind: Kind
    fixes: float
    minutes: float
    more: int | None = None  # answers after which it stops paying


def advise(
    answered: int,
    fixed: int,
    ahead: Floats,
    before: float | None,
    left: Estimate | None,
    seconds: float,
    stop: float = STOP,
) -> Advice:
    """Say whether to go on.

    `ahead` are the probabilities of what will be asked, `before` is what the next 50 should have
    fixed 50 answers ago, `seconds` an answer's time. It is time to stop when the next 50 fix too
    few twice in a row, or when hardly anything can be left.
    """
    fixes, count = fixes_ahead(ahead), min(NEXT, len(ahead))
    if left is not None:
        fixes = min(fixes, left.high)  # no more than are left
    facts = (fixes, count * seconds / 60)
    if not count:
        return Advice("over", *facts)
    if answered < ENOUGH:
        return Advice("early", *facts)
    limit = stop * NEXT
    too_few = fixes < limit and before is not None and before < limit
    hardly = left is not None and left.high < FEW * fixed
    return Advice("stop" if too_few or hardly else "go", *facts, stops_after(ahead, stop))
