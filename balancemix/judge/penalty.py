"""Penalty: how a penalty of ridge regression is searched for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

GRID = tuple(2.0**power for power in range(-3, 8))
_WIDER = 8  # steps by which the grid may grow on each side


@dataclass(frozen=True)
class Penalty:
    """A penalty chosen by leave-one-out error."""

    best: float
    grid: list[float]
    errors: list[float]  # for each of the grid
    low_enough: bool = field(default=False, compare=False)  # smaller would be worse

    @classmethod
    def of(cls, errors: Mapping[float, float], few: Mapping[float, float] | None = None) -> Penalty:
        """Choose the penalty with the least error; for `few`, see `growing`."""
        grid = sorted(errors)
        each = [errors[value] for value in grid]
        return cls(least(errors), grid, each, is_low_enough(errors, few))

    @property
    def at_edge(self) -> bool:
        """Whether a penalty beyond the grid might be better."""
        return self.best in (*self.grid[: 0 if self.low_enough else 1], *self.grid[-1:])


def least(errors: Mapping[float, float]) -> float:
    """Return the penalty with the least error.

    >>> least({1.0: 0.5, 2.0: 0.4})
    2.0
    """
    return min(errors, key=errors.__getitem__)


def is_low_enough(errors: Mapping[float, float], few: Mapping[float, float] | None) -> bool:
    """Say whether `few` rows show that a penalty below the least of those tried would be worse.

    More rows bear a larger penalty, as a rule. It is so here if, from the best penalty of few rows
    to its double, the error of all rows rises no more steeply than that of the few.

    >>> is_low_enough({1.0: 60.0, 2.0: 60.3}, {0.5: 75.0, 1.0: 70.0, 2.0: 71.0})
    True
    >>> is_low_enough({1.0: 60.0, 2.0: 65.0}, {0.5: 75.0, 1.0: 70.0, 2.0: 71.0})
    False
    """
    low = min(errors, default=0.0)
    if not few or low != least(few) or not {low / 2, low * 2} <= few.keys():
        return False
    return errors[low * 2] * few[low] <= few[low * 2] * errors[low]


def growing(
    errors: Mapping[float, float], few: Mapping[float, float] | None = None
) -> Iterator[list[float]]:
    """List the grid, then one more penalty at a time beyond an edge that is the best so far.

    `few` are the errors of some of the rows, by which the grid begins: see `is_low_enough`.
    """
    yield list(errors)
    while True:
        best, low, high = least(errors), min(errors), max(errors)
        if best == low and low > GRID[0] / 2**_WIDER and not is_low_enough(errors, few):
            yield [low / 2]
        elif best == high and high < GRID[-1] * 2**_WIDER:
            yield [high * 2]
        else:
            return
