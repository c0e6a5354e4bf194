"""One row an image: its labels in one cell, joined by a mark or as a list."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from balancemix.data.tables.edits import Edits
from balancemix.data.tables.layout import (
    Asked,
    Change,
    Labels,
    check_sayable,
    filled,
    note_on_names,
    unnamed,
)
from balancemix.data.tables.names import name_classes
from balancemix.data.tables.rows import RowReader
from balancemix.data.tables.separators import (
    DEFAULT,
    LIST,
    Separator,
    UndecidedError,
    decide,
    items_of,
    labels_of,
    several_words,
)
from balancemix.data.tables.sheet import Sheet
from balancemix.errors import InputError

SAMPLE = 1000  # records that show how labels are joined


@dataclass(frozen=True)
class Joined:
    """Labels in the cells of one column; `nothing` is the text of a row without any."""

    column: int
    mark: str
    texts: Sequence[str]  # of each class
    nothing: str = ""
    unlabelled: int = 0

    def edits(self, sheet: Sheet, change: Change) -> Edits:
        """Change the cells of rows with other labels; labels that stay keep their order."""
        rows = change.rows()
        check_sayable(sheet.file, change, rows, self.unlabelled)
        place = {change.records[i]: i for i in rows}
        if not place:
            return Edits()
        first = islice(sheet.records(), SAMPLE)
        sample = (texts[self.column] for texts in first if len(texts) > self.column)
        glues = {_glue(cell, self.mark) for cell in sample} - {None}
        glue = glues.pop() if len(glues) == 1 else None
        order = {text: k for k, text in enumerate(self.texts)}
        cells = {}
        for record, texts in enumerate(sheet.records()):
            if record in place:
                i = place[record]
                columns = change.columns(i)
                added = [self.texts[k] for k in columns if change.after[i, k] == 1]
                removed = {self.texts[k] for k in columns if change.after[i, k] != 1}
                old = texts[self.column]
                cells[record, self.column] = self.changed(
                    old, removed, added, order, glue or self.mark
                )
        return Edits(cells)

    def changed(
        self, cell: str, removed: set[str], added: list[str], order: dict[str, int], glue: str
    ) -> str:
        """Take labels out of a cell and add others, in its own style; see `order` for the classes.

        >>> order = {"cat": 0, "dog": 1, "owl": 2}
        >>> Joined(1, "|", list(order)).changed("cat | owl", {"cat"}, ["dog"], order, "|")
        'dog | owl'
        """
        kept = [] if cell.strip() == self.nothing else labels_of(cell, self.mark)
        kept = [label for label in kept if label not in removed]
        labels = [*kept, *(label for label in added if label not in kept)]
        numbers = [order.get(label, 0) for label in kept]
        if numbers == sorted(numbers):
            labels.sort(key=lambda label: order.get(label, 0))
        if self.mark == LIST:
            return _list_like(cell, labels)
        return (_glue(cell, self.mark) or glue).join(labels) or self.nothing


def collect(asked: Asked) -> tuple[RowReader, list[str]]:
    """Read all rows and their label cells; of equal cells, one text is kept."""
    column = asked.roles.label
    assert column is not None
    rows, cells, pool = RowReader(asked.sheet, asked.roles), [], dict[str, str]()
    for record, texts in enumerate(asked.sheet.records(asked.show)):
        if rows.check(record, texts):
            cell = texts[column].strip()
            rows.take(record, texts)
            rows.check_line(record, "labels", cell)
            cells.append(pool.setdefault(cell, cell))
    rows.check_rows()
    return rows, cells


def separator_of(asked: Asked, cells: Sequence[str], records: Sequence[int]) -> Separator:
    """Decide what joins labels: by --separator, or by all cells."""
    if asked.options.separator is not None:
        return Separator(asked.options.separator, "--separator says so")
    try:
        return decide(set(cells), asked.listed)
    except UndecidedError as error:
        text, several, one = error.args
        record = next(r for c, r in zip(cells, records, strict=True) if text in c)
        raise InputError(
            f"{asked.sheet.file} row {record + 2}: is {text!r} one label or several? Pass "
            f'--separator "{several}" if it is several, --separator "{one}" if it is one'
        ) from None


def read(asked: Asked, nothing: str = "") -> Labels:
    """Read a table with a cell of labels for each image; `nothing` stands for no label."""
    rows, cells = collect(asked)
    mark, why = separator_of(asked, cells, rows.records)
    if mark == LIST:
        _check_lists(asked, cells, rows)
    else:
        asked.check_mark(mark)
    found: set[str] = set()
    for cell in set(cells) - {nothing}:
        found.update(labels_of(cell, mark))
    names = name_classes(asked, found)
    row, column = array("i"), array("i")
    for i, cell in enumerate(cells):
        for label in labels_of(cell, mark) if cell != nothing else ():
            if label not in names.column:
                asked.check_listed(rows.where(rows.records[i]), label, set(names.column))
            row.append(i)
            column.append(names.column[label])
    verified = rows.verified(names.classes, mark)
    given = filled(len(cells), len(names.classes), asked.options)
    if row:
        given.numpy()[np.asarray(row), np.asarray(column)] = 1
    name = asked.sheet.header[asked.roles.label or 0]
    how = "lists" if mark == LIST else f"joined by {mark!r}"
    notes = [f"labels in column {name!r} are {how}: {why} (--separator)"]
    if mark == DEFAULT and asked.options.separator is None and asked.listed is None:
        notes += _notes_on_words(cells)
    layout = Joined(asked.roles.label or 0, mark, names.texts, nothing, unnamed(asked.options))
    notes += [*names.notes, note_on_names(asked.options)]
    return rows.labels(layout, names.classes, given, verified, notes)


def _notes_on_words(cells: Sequence[str]) -> list[str]:
    """Say that cells of several words may be several labels, where no cell has a mark."""
    different = set(cells)
    text = "" if any(DEFAULT in cell for cell in different) else several_words(different)
    if not text:
        return []
    words = " and ".join(repr(word) for word in text.split()[:2])
    return [
        f"{text!r} is one label here; as other cells have {words}, it may be several: then pass "
        '--separator " "'
    ]


def _check_lists(asked: Asked, cells: Sequence[str], rows: RowReader) -> None:
    for i, cell in enumerate(cells):
        if cell and items_of(cell) is None:
            raise InputError(f"{rows.where(rows.records[i])}: {cell!r} is not a list of labels")


def _glue(cell: str, mark: str) -> str | None:
    """Find what is between the labels of a cell: the mark, perhaps with blanks."""
    if mark == LIST:
        return None
    found = re.search(rf"[^\s](\s*{re.escape(mark)}\s*)[^\s]", cell)
    return found[1] if found else None


def _list_like(cell: str, labels: list[str]) -> str:
    """Write a list in the style of another one: quotes, blanks, numbers."""
    numbers = re.fullmatch(r"\[[\d\s,]*\]", cell.strip() or "[x]") is not None
    numbers = numbers and all(label.isascii() and label.isdigit() for label in labels)
    comma = "," if "," in cell and ", " not in cell else ", "
    if numbers:
        return f"[{comma.join(labels)}]"
    if "'" in cell and '"' not in cell:
        quoted = (label.replace("\\", "\\\\").replace("'", "\\'") for label in labels)
        return "[" + comma.join(f"'{label}'" for label in quoted) + "]"
    return "[" + comma.join(json.dumps(label, ensure_ascii=False) for label in labels) + "]"
