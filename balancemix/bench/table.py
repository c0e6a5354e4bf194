"""A table before it is rendered: numbers with standard errors, best and second best, headings."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import mean, stdev
from typing import Literal, NamedTuple, Self

Mark = Literal["", "best", "second"]


@dataclass(frozen=True)
class Cell:
    """The values of a number, one for each seed; none is a dash. note: text after the number."""

    values: tuple[float, ...] = ()
    note: str = ""
    digits: int = 1

    @classmethod
    def of(cls, *values: float | None, note: str = "", digits: int = 1) -> Self:
        """Make a cell of the values that are known, which None and NaN are not."""
        known = (value for value in values if value is not None and not math.isnan(value))
        return cls(tuple(known), note, digits)

    @property
    def mean(self) -> float | None:
        """The mean over seeds."""
        return mean(self.values) if self.values else None

    @property
    def error(self) -> float | None:
        """The standard error of the mean, if there are several seeds.

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

    @property
    def text(self) -> str:
        """All of it: mean ± standard error, and the note.

        >>> Cell((80.0, 82.0), "(+1.0)").text, Cell().text
        ('81.0 ± 1.0 (+1.0)', '–')
        """
        number = f"{self.number} ± {self.spread}" if self.spread else self.number
        return f"{number} {self.note}" if self.note else number


@dataclass(frozen=True)
class Row:
    """A line of cells."""

    category: str
    label: str
    cells: tuple[Cell, ...]


class Line(NamedTuple):
    """A row as it is written: its category, if the table has any, its label, and its marked cells.

    first: whether it is the first row of its category; only that one names the category.
    """

    names: list[str]
    cells: list[tuple[Cell, Mark]]
    first: bool


@dataclass(frozen=True)
class Table:
    """Rows of cells. name: of its files. row_headings: over categories and labels. columns: the
    group and heading of each; a group of several columns has one heading over them. marked: whether
    the best of each column stands out. visible: whether it is printed at the end of a bench.
    """

    name: str
    title: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    row_headings: tuple[str, str] = ("Category", "Method")
    marked: bool = True
    visible: bool = False

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The groups of columns, each with its number of columns."""
        return [
            (name, len(list(members))) for name, members in groupby(self.columns, lambda c: c[0])
        ]

    @property
    def headings(self) -> list[str]:
        """The heading of each column, after its group's if there are several groups."""
        if len({group for group, _ in self.columns}) == 1:
            return [heading for _, heading in self.columns]
        return [f"{group} {heading}".strip() for group, heading in self.columns]

    @property
    def name_headings(self) -> Sequence[str]:
        """The headings over the names of rows, with the categories' if there are any."""
        return (
            self.row_headings if any(row.category for row in self.rows) else self.row_headings[1:]
        )

    def lines(self) -> list[Line]:
        """Return the rows as every renderer writes them."""
        lines, before = list[Line](), None
        for row, marks in zip(self.rows, self.marks(), strict=True):
            first = row.category != before
            names = [row.category if first else "", row.label][-len(self.name_headings) :]
            lines.append(Line(names, list(zip(row.cells, marks, strict=True)), first))
            before = row.category
        return lines

    def marks(self) -> list[list[Mark]]:
        """Mark the best and second best of each column, by the numbers as written, with ties."""
        marks: list[list[Mark]] = [[""] * len(self.columns) for _ in self.rows]
        if not self.marked or len(self.rows) < 2:
            return marks
        for column in range(len(self.columns)):
            cells = [row.cells[column] for row in self.rows]
            written = {float(cell.number) for cell in cells if cell.values}
            order = sorted(written, reverse=True)[:2]
            for line, cell in zip(marks, cells, strict=True):
                if cell.values and float(cell.number) in order:
                    place = order.index(float(cell.number))
                    line[column] = "second" if place else "best"
        return marks

    def without(self, groups: Collection[str]) -> Self:
        """Leave out the columns of some groups."""
        kept = [i for i, (group, _) in enumerate(self.columns) if group not in groups]
        rows = tuple(replace(row, cells=tuple(row.cells[i] for i in kept)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[i] for i in kept), rows=rows)
