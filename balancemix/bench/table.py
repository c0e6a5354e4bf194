"""A table before it is Markdown, CSV or LaTeX: numbers with their errors, best and second best."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import mean, stdev
from typing import Literal

Mark = Literal["", "best", "second"]


@dataclass(frozen=True)
class Cell:
    """A number with one value a seed; without any it is a dash. note: text behind the number."""

    values: tuple[float, ...] = ()
    note: str = ""
    digits: int = 1

    @property
    def mean(self) -> float | None:
        """The mean over seeds."""
        return mean(self.values) if self.values else None

    @property
    def error(self) -> float | None:
        """The standard error of the mean, where there are several seeds.

        >>> Cell((1.0, 3.0)).error
        1.0
        """
        return stdev(self.values) / len(self.values) ** 0.5 if len(self.values) > 1 else None

    @property
    def number(self) -> str:
        """The number as it is written."""
        return "–" if self.mean is None else f"{self.mean:.{self.digits}f}"

    @property
    def spread(self) -> str:
        """The standard error as it is written."""
        return "" if self.error is None else f"{self.error:.{self.digits}f}"


@dataclass(frozen=True)
class Row:
    """A line of cells."""

    category: str
    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """name: of its files. corner: headings of category and label. columns: (group, heading) of
    each column; a group of several columns has one heading over them. best: which end is marked
    in each column. shown: also printed at the end of a bench.
    """

    name: str
    title: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    corner: tuple[str, str] = ("Category", "Method")
    best: Literal["highest", "lowest", "none"] = "highest"
    shown: bool = False

    @property
    def categorised(self) -> bool:
        """Whether any row has a category."""
        return any(row.category for row in self.rows)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The groups of columns, each with its number of columns."""
        return [(name, len(list(own))) for name, own in groupby(self.columns, lambda c: c[0])]

    def marks(self) -> list[list[Mark]]:
        """Find the best and second best of each column, by the numbers as written; equals share."""
        found: list[list[Mark]] = [[""] * len(self.columns) for _ in self.rows]
        if self.best == "none" or len(self.rows) < 2:
            return found
        for column in range(len(self.columns)):
            cells = [row.cells[column] for row in self.rows]
            written = {float(cell.number) for cell in cells if cell.values}
            order = sorted(written, reverse=self.best == "highest")[:2]
            for line, cell in zip(found, cells, strict=True):
                if cell.values and float(cell.number) in order:
                    place = order.index(float(cell.number))
                    line[column] = "second" if place else "best"
        return found

    def without_empty(self, groups: Collection[str]) -> Table:
        """Leave out those of the groups that have no number at all: no class belongs to them."""
        filled = {
            group
            for row in self.rows
            for (group, _), cell in zip(self.columns, row.cells, strict=True)
            if cell.values
        }
        if not filled:  # nothing has run yet
            return self
        return self.without(set(groups) - filled)

    def without(self, groups: Collection[str]) -> Table:
        """Leave out the columns of some groups."""
        kept = [i for i, (group, _) in enumerate(self.columns) if group not in groups]
        rows = tuple(replace(row, cells=tuple(row.cells[i] for i in kept)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[i] for i in kept), rows=rows)


def ranks(values: Sequence[float]) -> list[int]:
    """Rank numbers, the highest first; equals have the same rank.

    >>> ranks([50.0, 70.0, 60.0, 70.0])
    [4, 1, 3, 1]
    """
    return [1 + sum(other > value for other in values) for value in values]


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Correlate the ranks of paired numbers, equals by their mean rank; none where it is undefined.

    >>> spearman([1, 2, 3], [10, 30, 20])
    0.5
    """
    pairs = [_mean_ranks(one), _mean_ranks(other)]
    first, second = ([rank - mean(ranks) for rank in ranks] for ranks in pairs)
    scale = sum(a * a for a in first) * sum(b * b for b in second)
    if not scale:
        return None
    return float(sum(a * b for a, b in zip(first, second, strict=True)) / scale**0.5)


def _mean_ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other > value for other in values) + (1 + sum(other == value for other in values)) / 2
        for value in values
    ]
