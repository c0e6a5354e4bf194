"""One column a class: 1 or 0 in each row, or words for them; blank is unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import torch

from balancemix.data.splits import check_classes
from balancemix.data.tables import packed
from balancemix.data.tables.edits import Edits
from balancemix.data.tables.layout import Asked, Change, Labels
from balancemix.data.tables.rows import RowReader
from balancemix.data.tables.sheet import Sheet
from balancemix.data.tables.text import TextSheet
from balancemix.data.tables.words import BLANK, MINUS, OTHER, is_number, value_of, word_for
from balancemix.errors import InputError, listing
from balancemix.options import ReadOptions

SAMPLE = 1000  # records that show what a column holds
Array = np.ndarray[tuple[int, ...], np.dtype[np.int8]]


@dataclass(frozen=True)
class Columns:
    """The column of each class; `minus` is what −1 means, if it occurs."""

    columns: Sequence[int]
    minus: int | None = None

    def edits(self, sheet: Sheet, change: Change) -> Edits:
        """Change the cells of other labels, in the words of their column."""
        rows = change.rows()
        wanted = {change.records[i]: change.columns(i) for i in rows}
        place = {change.records[i]: i for i in rows}
        words = {k: list[str]() for ks in wanted.values() for k in ks}
        for cells in islice(sheet.records(), SAMPLE if words else 0):
            for k in words if len(cells) == len(sheet.header) else ():
                words[k].append(cells[self.columns[k]])
        cells_ = {}
        for record, cells in enumerate(sheet.records() if words else ()):
            for k in wanted.get(record, ()):
                value = int(change.after[place[record], k])
                column = self.columns[k]
                near = (cells[column], *words[k])
                cells_[record, column] = word_for(value, near, self.minus)
        return Edits(cells_)


@dataclass
class Tally:
    """How often a column has another value than a label's, and the first one."""

    count: int = 0
    record: int = 0
    text: str = ""


@dataclass
class Matrix:
    """The values of columns, row by row; it grows as rows come."""

    columns: list[int]
    rows: int = 0
    values: Array = field(default_factory=lambda: np.empty((0, 0), np.int8))
    others: dict[int, Tally] = field(default_factory=dict)

    def reserve(self, more: int) -> Array:
        """Make room for more rows, and return it."""
        if self.rows + more > len(self.values):
            size = max(1024, self.rows + more, int(len(self.values) * 1.2))
            if self.values.size:
                # Where it is, so that there are never two of half a gigabyte.
                self.values.resize((size, len(self.columns)), refcheck=False)
            else:
                self.values = np.empty((size, len(self.columns)), np.int8)
        self.rows += more
        return self.values[self.rows - more : self.rows]

    def add(self, record: int, cells: list[str]) -> None:
        """Add a row, cell by cell."""
        row = [value_of(cells[column]) for column in self.columns]
        self.reserve(1)[0] = row
        if OTHER in row:
            for k, value in enumerate(row):
                if value == OTHER:
                    text = cells[self.columns[k]].strip()
                    self.others.setdefault(k, Tally(0, record, text)).count += 1

    def filled(self, value: int) -> list[bool]:
        """Say of each column whether it has another value than this one."""
        found = np.zeros(len(self.columns), dtype=bool)
        for start in range(0, self.rows, 4096):
            found |= (self.values[start : min(start + 4096, self.rows)] != value).any(0)
        return [bool(each) for each in found]


def read(asked: Asked, known: Sequence[int] = (), minus: str | None = None) -> Labels:
    """Read a table with a column for each class; `known` are the classes' columns, if a format
    has them, and `minus` is what −1 means there.
    """
    header, file = asked.sheet.header, asked.sheet.file
    if asked.listed is not None and set(asked.listed) <= set(header):
        known = [header.index(name) for name in asked.listed]
    columns = sorted(known) or _candidates(asked)
    if len(columns) < 2:
        raise InputError(
            f"{file} row 1: no column has labels, and fewer than two hold 0 and 1 in "
            f"{listing([repr(name) for name in header])}; pass --label-column"
        )
    rows, matrix = RowReader(asked.sheet, asked.roles), Matrix(columns)
    if not _read_packed(asked, rows, matrix):
        for record, cells in enumerate(asked.sheet.records(asked.show)):
            if rows.check(record, cells):
                rows.take(record, cells)
                matrix.add(record, cells)
    rows.check_rows()
    kept = _classes(asked, rows, matrix, bool(known))
    matrix.values.resize((matrix.rows, len(columns)), refcheck=False)
    values = matrix.values if len(kept) == len(columns) else matrix.values[:, kept].copy()
    classes = [header[columns[k]] for k in kept]
    check_classes(str(file), classes)
    notes = [f"{len(classes)} columns of 0 and 1 are the classes (--label-column names one column)"]
    extra = [header[k] for k in asked.roles.others if k not in {columns[j] for j in kept}]
    if extra:
        notes.append(f"other columns are kept and not read: {listing([repr(n) for n in extra])}")
    meaning = _resolve_minus(asked, values, classes, minus, notes)
    notes.append(_resolve_blank(values, asked.options))
    if asked.listed is not None:
        order = _order(asked, classes)
        values, classes = values[:, order].copy(), asked.listed
        kept = [kept[k] for k in order]
    layout = Columns([columns[k] for k in kept], meaning)
    verified = rows.verified(classes, None)
    return rows.labels(layout, classes, torch.from_numpy(values), verified, notes)


def _candidates(asked: Asked) -> list[int]:
    """List the columns of which most cells at the beginning are labels, or blank."""
    header = asked.sheet.header
    open_ = [k for k in asked.roles.others if header[k]]
    good: Counter[int] = Counter()
    bad: Counter[int] = Counter()
    fractions: Counter[int] = Counter()
    for cells in islice(asked.sheet.records(), SAMPLE):
        for k in open_ if len(cells) == len(header) else ():
            value = value_of(cells[k])
            (bad if value == OTHER else good)[k] += value != BLANK
            fractions[k] += value == OTHER and _is_share(cells[k])
    found = [k for k in open_ if good[k] >= bad[k]]
    sharing = [k for k in open_ if fractions[k] and fractions[k] + good[k] >= bad[k]]
    if sum(good[k] > 0 for k in found) < 2 and sharing:
        raise InputError(
            f"{asked.sheet.file}: column {header[sharing[0]]!r} has shares between 0 and 1; a "
            "label is 1 (present), 0 (absent) or blank (unknown): round them, blank where unsure"
        )
    return found


def _is_share(text: str) -> bool:
    return is_number(text) and 0 < float(text) < 1


def _read_packed(asked: Asked, rows: RowReader, matrix: Matrix) -> bool:
    """Read a text file with classes side by side by NumPy; False if it is another one."""
    columns = matrix.columns
    together = columns == list(range(columns[0], columns[-1] + 1))
    if not together or not isinstance(asked.sheet, TextSheet):
        return False
    roles = (asked.roles.image, asked.roles.split, asked.roles.group, asked.roles.verified)
    if any(k is not None and columns[0] <= k <= columns[-1] for k in roles):
        return False
    for part in packed.read(asked.sheet, columns[0], len(columns), asked.show):
        _add_part(part, rows, matrix)
    return True


def _add_part(part: packed.Part, rows: RowReader, matrix: Matrix) -> None:
    """Add the rows of a part: digits as they are, others cell by cell."""
    if part.digits is not None and len(part.digits) == len(part.records):
        for record, cells in part.records:
            rows.take(record, cells)
        matrix.reserve(len(part.records))[:] = part.digits
        return
    digits: Iterator[Array] = iter(() if part.digits is None else part.digits)
    for (record, cells), plain in zip(part.records, part.plain, strict=True):
        if plain:
            rows.take(record, cells)
            matrix.reserve(1)[0] = next(digits)
        elif rows.check(record, cells):
            rows.take(record, cells)
            matrix.add(record, cells)


def _classes(asked: Asked, rows: RowReader, matrix: Matrix, known: bool) -> list[int]:
    """List the columns that are classes; one with a few other values is refused by its place."""
    header = asked.sheet.header
    filled = matrix.filled(BLANK)
    kept = []
    for k, column in enumerate(matrix.columns):
        tally = matrix.others.get(k)
        if tally is not None:
            labels = int((matrix.values[: matrix.rows, k] >= MINUS).sum())
            blank = int((matrix.values[: matrix.rows, k] == BLANK).sum())
            if not known and tally.count > labels - blank:
                continue
            hint = (
                "a share is no label: round it, or leave it blank if unsure"
                if _is_share(tally.text)
                else "write 1, 0 or nothing"
            )
            raise InputError(
                f"{rows.where(tally.record)}, column {header[column]!r}: {tally.text!r} is not a "
                f"label; {hint}"
            )
        if filled[k] or known:
            kept.append(k)
    return kept


def _resolve_minus(
    asked: Asked, values: Array, classes: Sequence[str], minus: str | None, notes: list[str]
) -> int | None:
    """Replace −1 by what it means; refuses it if nobody says so."""
    found = np.zeros(len(classes), dtype=bool)
    for start in range(0, len(values), 4096):
        found |= (values[start : start + 4096] == MINUS).any(0)
    if not found.any():
        return None
    meaning = asked.options.minus_one or minus
    if meaning is None:
        name = classes[int(found.argmax())]
        raise InputError(
            f"{asked.sheet.file}: column {name!r} has -1, which is absent in some files and "
            "unknown in others; pass --minus-one absent or --minus-one unknown"
        )
    value = 0 if meaning == "absent" else BLANK
    values[values == MINUS] = value
    notes.append(f"-1 is {meaning} (--minus-one)")
    return value


def _resolve_blank(values: Array, options: ReadOptions) -> str:
    """Replace blank cells if they are absent; say what they mean."""
    if options.unlabelled == "absent":
        values[values == BLANK] = 0
        return "a blank cell is absent, as --unlabelled says"
    return (
        "a blank cell is unknown: it is neither trained nor scored on; if it means no, pass "
        "--unlabelled absent"
    )


def _order(asked: Asked, classes: Sequence[str]) -> list[int]:
    """Find the column of each class of classes.txt."""
    place = {name: k for k, name in enumerate(classes)}
    for name in asked.listed or ():
        if name not in place:
            raise InputError(
                f"{asked.list_file}: class {name!r} has no column in {asked.sheet.file.name}"
            )
    for name in classes:
        asked.check_listed(f"{asked.sheet.file} row 1", name, set(asked.listed or ()))
    return [place[name] for name in asked.listed or ()]
