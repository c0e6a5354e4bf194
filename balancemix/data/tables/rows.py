"""What all layouts read of a record: its image, split, group and verified classes."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence

import torch
from torch import Tensor

from balancemix.data.splits import check_split
from balancemix.data.tables.layout import Labels, Layout
from balancemix.data.tables.roles import SPLIT_WORDS, Roles
from balancemix.data.tables.separators import DEFAULT, LIST, MARKS, items_of, labels_of
from balancemix.data.tables.sheet import Sheet
from balancemix.errors import InputError, suggest

WHOLE_ROW = "*"  # in the column verified


class RowReader:
    """Collects rows; `records` are the numbers of their records."""

    def __init__(self, sheet: Sheet, roles: Roles) -> None:
        self.sheet, self.roles = sheet, roles
        self.names: list[str] = []
        self.records = array("q")
        self.splits: list[str] | None = None if roles.split is None else []
        self.groups: list[str] | None = None if roles.group is None else []
        self.verified_cells: list[str] | None = None if roles.verified is None else []
        self._first: dict[str, int] = {}

    def where(self, record: int) -> str:
        """Name the place of a record, as a spreadsheet counts rows."""
        return f"{self.sheet.file} row {record + 2}"

    def check(self, record: int, cells: list[str]) -> bool:
        """Check the form of a record; False if it is blank, as spreadsheets leave some."""
        if not any(map(str.strip, cells)):
            return False
        if len(cells) != len(self.sheet.header):
            raise InputError(
                f"{self.where(record)}: has {len(cells)} cells where the header has "
                f"{len(self.sheet.header)}; separate labels by | and quote cells that hold a comma"
            )
        return True

    def image(self, record: int, cells: list[str]) -> str:
        """Read the name of the image."""
        name = cells[self.roles.image].strip()
        if not name:
            raise InputError(f"{self.where(record)}: the image cell is empty; name a file")
        self.check_line(record, "image", name)
        return name

    def check_line(self, record: int, what: str, text: str) -> None:
        """Refuse a cell with a line break, which an unbalanced quote makes."""
        if "\n" in text or "\r" in text:
            raise InputError(
                f"{self.where(record)}: the {what} cell has a line break; check its quotes"
            )

    def row(self, record: int, cells: list[str]) -> int:
        """Find the row of a record's image, however its path is written, or add one."""
        row = self._first.get(path_of(self.image(record, cells)))
        if row is not None:
            self._check_same(record, cells, row)
            return row
        self.take(record, cells)
        return len(self.names) - 1

    def take(self, record: int, cells: list[str]) -> None:
        """Add a row; refuses an image that has one."""
        name = self.image(record, cells)
        first = self._first.setdefault(path_of(name), len(self.names))
        if first != len(self.names):
            raise InputError(
                f"{self.where(record)}: image {name!r} is also in row {self.records[first] + 2}; "
                "put all its labels into one row; if each row is one label, pass --separator whole"
            )
        self.names.append(name)
        self.records.append(record)
        for values, column in (
            (self.groups, self.roles.group),
            (self.verified_cells, self.roles.verified),
        ):
            if values is not None and column is not None:
                values.append(cells[column].strip())
        if self.splits is not None and self.roles.split is not None:
            word = cells[self.roles.split].strip()
            split = word if word in SPLIT_WORDS else word.lower()
            if split not in SPLIT_WORDS:
                check_split(self.where(record), word)
            self.splits.append(SPLIT_WORDS[split])

    def _check_same(self, record: int, cells: list[str], row: int) -> None:
        """Refuse another split or group than that of the image's first row; join what is verified.

        `*` in one of its rows is for the whole image.
        """
        roles = self.roles
        for what, values, column in (
            ("split", self.splits, roles.split),
            ("group", self.groups, roles.group),
        ):
            if values is None or column is None:
                continue
            text = cells[column].strip()
            if (SPLIT_WORDS.get(text.lower(), text) if what == "split" else text) != values[row]:
                raise InputError(
                    f"{self.where(record)}: {what} {text!r}, but row {self.records[row] + 2} of "
                    f"the same image has {values[row]!r}; give it one"
                )
        if self.verified_cells is not None and roles.verified is not None:
            both = self.verified_cells[row], cells[roles.verified].strip()
            whole = WHOLE_ROW in both
            self.verified_cells[row] = WHOLE_ROW if whole else DEFAULT.join(filter(None, both))

    def labels(
        self,
        layout: Layout,
        classes: list[str],
        given: Tensor,
        verified: Tensor | None,
        notes: list[str],
    ) -> Labels:
        """Put the rows together with their labels."""
        return Labels(
            layout, self.names, classes, given, self.records, self.splits, self.groups, verified,
            notes,
        )  # fmt: skip

    def check_rows(self) -> None:
        """Refuse a table without rows."""
        if not self.names:
            raise InputError(
                f"{self.sheet.file}: has no rows below its header; add one for each image"
            )

    def verified(self, classes: Sequence[str], mark: str | None) -> Tensor | None:
        """Read which labels are verified: names of classes joined by `mark`, or `*` for all.

        A list may also have a 0 or 1 for each class, as in a column of Parquet.
        """
        if self.verified_cells is None:
            return None
        column = {name: k for k, name in enumerate(classes)}
        marks = torch.zeros(len(self.names), len(classes), dtype=torch.bool)
        for i, cell in enumerate(self.verified_cells):
            for name in verified_names(cell, classes, mark):
                if name not in column:
                    raise InputError(
                        f"{self.where(self.records[i])}: verified {name!r} is not a class; "
                        f"write names of classes, or {WHOLE_ROW} for all of the row; "
                        f"{suggest(name, list(classes))}"
                    )
                marks[i, column[name]] = True
        return marks


def verified_names(cell: str, classes: Sequence[str], mark: str | None) -> Sequence[str]:
    """Read the names in a cell of the column verified, joined by `mark`, or by any if it is None.

    >>> verified_names("*", ["cat", "dog"], "|"), verified_names("dog;cat", ["cat", "dog"], None)
    (['cat', 'dog'], ['dog', 'cat'])
    """
    if cell == WHOLE_ROW:
        return classes
    return _known(cell, classes) if mark in (None, LIST) else labels_of(cell, mark)


def are_marks(items: Sequence[str], classes: Sequence[str]) -> bool:
    """Tell whether the items of a list are a 0 or 1 for each class, and not names.

    >>> are_marks(["1", "0"], ["cat", "dog"]), are_marks(["1"], ["0", "1"])
    (True, False)
    """
    fits = len(items) == len(classes) and set(items) <= {"0", "1"}
    return fits and not set(items) <= set(classes)


def _known(cell: str, classes: Sequence[str]) -> list[str]:
    """Take a cell apart by the mark that gives names of classes."""
    items = items_of(cell)
    if items is not None:
        if are_marks(items, classes):
            return [name for name, item in zip(classes, items, strict=True) if item == "1"]
        return items
    if not cell:
        return []
    known = set(classes)
    readings = (labels_of(cell, mark) for mark in MARKS)
    return next((names for names in readings if set(names) <= known), labels_of(cell, DEFAULT))


def path_of(name: str) -> str:
    """Write the path of an image in one way.

    >>> path_of("./a.jpg")
    'a.jpg'
    """
    path = os.path.normpath(name)
    return name if path == name else path  # one text, not two, for a million names
