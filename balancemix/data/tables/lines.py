"""One row a label: an image has as many rows as labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
from balancemix.data.tables.roles import plain
from balancemix.data.tables.rows import RowReader, path_of
from balancemix.data.tables.sheet import Sheet
from balancemix.errors import InputError

# Columns that say more of a label than that it is there.
STRENGTH = ("confidence", "value", "present", "score", "probability")


@dataclass(frozen=True)
class Lines:
    """A label in each row; an image without any has one row with a blank label."""

    image: int
    column: int
    kept: tuple[int, ...]  # columns that a new row of an image has from its other rows
    texts: Sequence[str]  # of each class
    unlabelled: int = 0

    def edits(self, sheet: Sheet, change: Change) -> Edits:
        """Drop the rows of removed labels, and add a row for each new one."""
        rows = change.rows()
        check_sayable(sheet.file, change, rows, self.unlabelled)
        place = {path_of(change.names[i]): i for i in rows}
        records: dict[int, list[tuple[int, list[str]]]] = {i: [] for i in rows}
        for record, cells in enumerate(sheet.records() if place else ()):
            if len(cells) > max(self.image, self.column) and cells[self.image].strip():
                i = place.get(path_of(cells[self.image].strip()))
                if i is not None:
                    records[i].append((record, cells))
        cells_, dropped, added = {}, set(), {}
        for i, lines in records.items():
            columns = change.columns(i)
            new = [self.texts[k] for k in columns if change.after[i, k] == 1]
            gone = {self.texts[k] for k in columns if change.after[i, k] != 1}
            out = [r for r, cells in lines if cells[self.column].strip() in gone]
            blank = [r for r, cells in lines if not cells[self.column].strip()]
            free = blank if new else []
            if len(out) == len(lines) and not new:  # the image stays, without a label
                cells_[out.pop(0), self.column] = ""
            for record in free:
                cells_[record, self.column] = new.pop(0)
                break
            dropped |= set(out)
            if new:
                last, cells = lines[-1]
                added[last] = [self._record(cells, text) for text in new]
        return Edits(cells_, dropped, added)

    def _record(self, like: list[str], text: str) -> list[str]:
        cells = [cell if k in self.kept else "" for k, cell in enumerate(like)]
        cells[self.column] = text
        return cells


def read(asked: Asked) -> Labels:
    """Read a table with a row for each label of an image."""
    roles, column = asked.roles, asked.roles.label
    assert column is not None
    rows, of_row = RowReader(asked.sheet, roles), list[dict[str, int]]()
    strength = next((k for k in roles.others if plain(asked.sheet.header[k]) in STRENGTH), None)
    for record, cells in enumerate(asked.sheet.records(asked.show)):
        if not rows.check(record, cells):
            continue
        label = cells[column].strip()
        rows.check_line(record, "labels", label)
        if strength is not None and cells[strength].strip() not in ("", "1", "1.0"):
            raise InputError(
                f"{rows.where(record)}: column {asked.sheet.header[strength]!r} has "
                f"{cells[strength]!r}, and a row here is a label that is there; keep the rows with "
                "1, or write a column of 0 and 1 for each class"
            )
        i = rows.row(record, cells)
        if i == len(of_row):
            of_row.append({})
        if label in of_row[i] or (of_row[i] and not label) or "" in of_row[i]:
            first = next(iter(of_row[i].values())) if label not in of_row[i] else of_row[i][label]
            raise InputError(
                f"{rows.where(record)}: image {rows.image(record, cells)!r} has "
                f"{label or 'no label'!r} here and "
                f"{next(t for t, r in of_row[i].items() if r == first) or 'no label'!r} in row "
                f"{first + 2}; leave one of them out"
            )
        of_row[i][label] = record
    rows.check_rows()
    names = name_classes(asked, {text for each in of_row for text in each} - {""})
    given = filled(len(of_row), len(names.classes), asked.options)
    known = set(names.column)
    for i, each in enumerate(of_row):
        for text, record in each.items():
            if text:
                asked.check_listed(rows.where(record), text, known)
                given[i, names.column[text]] = 1
    layout = Lines(roles.image, column, roles.of_image, names.texts, unnamed(asked.options))
    name = asked.sheet.header[column]
    notes = [f"each row has one label, in column {name!r}: images have several rows (--separator)"]
    verified = rows.verified(names.classes, None)
    notes += [*names.notes, note_on_names(asked.options)]
    return rows.labels(layout, names.classes, given, verified, notes)
