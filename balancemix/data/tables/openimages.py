"""OpenImages' labels of images: a row for each label that was looked for, with a Confidence.

1 is present and 0 is absent, as people found; what has no row is unknown. Where `Source` says that
people looked, a label is verified. A fraction is a machine's guess, and refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from balancemix.data.tables.edits import Edits
from balancemix.data.tables.layout import Asked, Change, Labels, check_sayable, filled, unnamed
from balancemix.data.tables.names import name_classes
from balancemix.data.tables.rows import RowReader, path_of
from balancemix.data.tables.sheet import Sheet
from balancemix.data.tables.words import value_of, word_for
from balancemix.errors import InputError

COLUMNS = ("ImageID", "LabelName", "Confidence")
SOURCE = "Source"
PEOPLE = ("verification", "crowdsource-verification")


@dataclass(frozen=True)
class Looked:
    """The columns of image, label, confidence and source; `texts` is the name of each class."""

    image: int
    column: int
    confidence: int
    source: int | None
    texts: Sequence[str]
    kept: tuple[int, ...]  # columns that a new row of an image has from its other rows
    unlabelled: int = -1

    def edits(self, sheet: Sheet, change: Change) -> Edits:
        """Change the confidence of a label, or add a row for one that had none."""
        rows = change.rows()
        if self.unlabelled == 0:
            check_sayable(sheet.file, change, rows, self.unlabelled)
        place = {path_of(name): i for i, name in enumerate(change.names)}
        column = {text: k for k, text in enumerate(self.texts)}
        changed = {i: set(change.columns(i)) for i in rows}
        cells_: dict[tuple[int, int], str] = {}
        last: dict[int, tuple[int, list[str]]] = {}
        dropped: dict[int, list[int]] = {}
        stays, seen = set[int](), set[tuple[int, int]]()
        for record, cells in enumerate(sheet.records()):
            i = place.get(path_of(cells[self.image].strip())) if any(cells) else None
            if i is None:
                continue
            last[i] = record, cells
            k = column.get(cells[self.column].strip())
            if k is None or (k in changed.get(i, ()) and change.after[i, k] < 0):
                dropped.setdefault(i, []).append(record)
                continue
            stays.add(i)
            seen.add((i, k))
            if k in changed.get(i, ()):
                before, value = cells[self.confidence], int(change.after[i, k])
                cells_[record, self.confidence] = word_for(value, [before], None)
            if self._is_news(change, i, k, cells) and self.source is not None:
                cells_[record, self.source] = PEOPLE[0]
        added: dict[int, list[list[str]]] = {}
        for i, (record, cells) in last.items():
            new = [k for k in sorted(changed.get(i, ())) if (i, k) not in seen]
            new = [k for k in new if change.after[i, k] != self.unlabelled]
            if new:
                added[record] = [self._record(change, i, k, cells) for k in new]
            elif i not in stays and i in changed:  # the image stays, without a label
                cells_ |= {(record, each): "" for each in (self.column, self.confidence)}
                dropped[i].remove(record)
        gone = {record for i in changed for record in dropped.get(i, ())}
        return Edits(cells_, gone, added)

    def _is_news(self, change: Change, i: int, k: int, cells: list[str]) -> bool:
        """Tell whether people looked at a label since the file was written."""
        verified = change.verified is not None and bool(change.verified[i, k])
        return verified and self.source is not None and cells[self.source].strip() not in PEOPLE

    def _record(self, change: Change, i: int, k: int, like: list[str]) -> list[str]:
        cells = [cell if j in self.kept else "" for j, cell in enumerate(like)]
        cells[self.column], cells[self.confidence] = self.texts[k], str(int(change.after[i, k]))
        if self.source is not None and change.verified is not None and change.verified[i, k]:
            cells[self.source] = PEOPLE[0]
        return cells


def is_openimages(asked: Asked) -> bool:
    """Tell whether a table has OpenImages' columns."""
    header, label = asked.sheet.header, asked.roles.label
    return set(COLUMNS) <= set(header) and label == header.index("LabelName")


def read(asked: Asked) -> Labels:
    """Read a table with a row for each label that was looked for."""
    header, roles = asked.sheet.header, asked.roles
    confidence = header.index("Confidence")
    source = header.index(SOURCE) if SOURCE in header else None
    assert roles.label is not None
    rows = RowReader(asked.sheet, roles)
    found: list[dict[str, tuple[int, int, bool]]] = []  # label → value, record, by people
    for record, cells in enumerate(asked.sheet.records(asked.show)):
        if not rows.check(record, cells):
            continue
        label = cells[roles.label].strip()
        rows.check_line(record, "label", label)
        value = value_of(cells[confidence])
        if label and value not in (0, 1):
            raise InputError(
                f"{rows.where(record)}: Confidence {cells[confidence]!r} is a machine's guess; "
                "keep the rows with 1 (present) and 0 (absent), which people looked at"
            )
        i = rows.row(record, cells)
        if i == len(found):
            found.append({})
        if not label:
            continue
        people = source is not None and cells[source].strip() in PEOPLE
        before = found[i].get(label, (value, record, False))
        if before[0] != value:
            raise InputError(
                f"{rows.where(record)}: {label!r} is {value} here and {before[0]} in row "
                f"{before[1] + 2} of the same image; keep one of them"
            )
        found[i][label] = value, before[1], people or before[2]
    rows.check_rows()
    options = replace(asked.options, unlabelled=asked.options.unlabelled or "unknown")
    names = name_classes(asked, {label for each in found for label in each})
    given = filled(len(found), len(names.classes), options)
    verified = rows.verified(names.classes, None)
    verified = torch.zeros(given.shape, dtype=torch.bool) if verified is None else verified
    for i, each in enumerate(found):
        for label, (value, record, people) in each.items():
            asked.check_listed(rows.where(record), label, set(names.column))
            given[i, names.column[label]] = value
            verified[i, names.column[label]] |= people
    unlabelled, kept = unnamed(options), roles.of_image
    layout = Looked(roles.image, roles.label, confidence, source, names.texts, kept, unlabelled)
    notes = ["it is OpenImages', by its columns: Confidence 1 is present, 0 is absent"]
    if source is not None:
        notes.append(f"labels that people looked at ({' or '.join(PEOPLE)}) are verified")
    word = "unknown" if unlabelled < 0 else "absent"
    notes.append(f"a class without a row of the image is {word} (--unlabelled)")
    looked = verified if bool(verified.any()) else None
    return rows.labels(layout, names.classes, given, looked, [*notes, *names.notes])
