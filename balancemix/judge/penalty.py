"""Penalty: how a penalty of ridge regression is searched for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

GRID = tuple(2.0**power for power in range(-3, 8))
_WIDER = 8  # steps by which the grid may grow on each side


@dataclass(frozen=True)
class Penalty:
    """A penalty chosen by leave-one-out error."""

    best: float
    grid: list[float]
    errors: list[float]  # for each of the grid

    @classmethod
    def of(cls, errors: Mapping[float, float]) -> Penalty:
        """Choose the penalty with the least error."""
        grid = sorted(errors)
        return cls(least(errors), grid, [errors[value] for value in grid])

    @property
    def at_edge(self) -> bool:
        """Whether a penalty beyond the grid might be better."""
        return self.best in (*self.grid[:1], *self.grid[-1:])


def least(errors: Mapping[float, float]) -> float:
    """Return the penalty with the least error.

    >>> least({1.0: 0.5, 2.0: 0.4})
    2.0
    """
    return min(errors, key=errors.__getitem__)


def growing(errors: Mapping[float, float]) -> Iterator[list[float]]:
    """List the grid, then one more penalty at a time beyond an edge that is the best so far."""
    yield list(errors)
    while True:
        best, low, high = least(errors), min(errors), max(errors)
        if best == low and low > GRID[0] / 2**_WIDER:
            yield [low / 2]
        elif best == high and high < GRID[-1] * 2**_WIDER:
            yield [high * 2]
        else:
            return
