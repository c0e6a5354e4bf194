"""The column verified of a table, written back: which labels are known to be right by now."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from balancemix.data.tables.columns import Columns
from balancemix.data.tables.edits import Edits
from balancemix.data.tables.joined import Joined
from balancemix.data.tables.layout import Change, Labels
from balancemix.data.tables.rows import WHOLE_ROW, are_marks, path_of, verified_names
from balancemix.data.tables.separators import LIST, MARKS, items_of
from balancemix.data.tables.sheet import Sheet


@dataclass(frozen=True)
class VerifiedColumn:
    """The column, that of the images, and how names of classes are joined in a cell.

    `by_columns` is a table with a column for each class, also for one that no image has.
    """

    column: int
    image: int
    classes: Sequence[str]
    mark: str | None
    by_columns: bool

    @classmethod
    def of(cls, labels: Labels) -> VerifiedColumn | None:
        """Find the column, if a table has one."""
        roles = labels.roles
        if roles is None or roles.verified is None:
            return None
        mark = labels.layout.mark if isinstance(labels.layout, Joined) else None
        by_columns = isinstance(labels.layout, Columns)
        return cls(roles.verified, roles.image, labels.classes, mark, by_columns)

    def added_to(
        self, edits: Edits, sheet: Sheet, change: Change, before: Tensor, after: Tensor
    ) -> Edits:
        """Add the cells that change to the edits of the labels; both are N×K.

        A record that goes takes its cell along; of an image with several, the first that stays says
        what the others do not.
        """
        other = (before != after).any(1).nonzero().flatten().tolist()
        rows = sorted({*other, *change.rows()})
        return self._added(edits, sheet, change, after, rows) if rows else edits

    def _added(
        self, edits: Edits, sheet: Sheet, change: Change, verified: Tensor, rows: list[int]
    ) -> Edits:
        sayable = self._sayable(change.after)
        before = self._records(sheet)
        like = next((cell for cells in before.values() for _, cell in cells if cell), "")
        cells, added = dict(edits.cells), dict(edits.added)
        for i in rows:
            lines = before[path_of(change.names[i])]
            expected = [name for name, v in zip(self.classes, verified[i], strict=True) if v]
            if len(expected) < len(self.classes):  # else * says it
                expected = [name for name in expected if name in sayable]
            left = [(record, cell) for record, cell in lines if record not in edits.dropped]
            says = {record: self._names(cell) for record, cell in left}
            for record, names in says.items():
                if not set(names) <= set(expected):
                    cells[record, self.column], says[record] = "", []
            missing = set(expected) - {name for names in says.values() for name in names}
            if missing and left:
                record, cell = left[0]
                names = [each for each in self.classes if each in {*says[record], *missing}]
                cells[record, self.column] = self._cell(names, cell or like)
            elif missing and lines[-1][0] in added:
                first, *others = added[lines[-1][0]]
                new = [*first[: self.column], self._cell(expected, like), *first[self.column + 1 :]]
                added[lines[-1][0]] = [new, *others]
        return replace(edits, cells=cells, added=added)

    def _sayable(self, given: Tensor) -> set[str]:
        """List the classes that the new file will have; where labels are names, those in use."""
        used = (given == 1).any(0).tolist()
        return {n for n, u in zip(self.classes, used, strict=True) if u or self.by_columns}

    def _records(self, sheet: Sheet) -> dict[str, list[tuple[int, str]]]:
        """Read the records of each image, and their cells in the column."""
        found: dict[str, list[tuple[int, str]]] = {}
        for record, cells in enumerate(sheet.records()):
            if len(cells) > max(self.image, self.column) and cells[self.image].strip():
                records = found.setdefault(path_of(cells[self.image].strip()), [])
                records.append((record, cells[self.column].strip()))
        return found

    def _names(self, cell: str) -> Sequence[str]:
        return verified_names(cell, self.classes, self.mark)

    def _cell(self, names: Sequence[str], like: str) -> str:
        """Write names in the style of a cell: a list stays a list."""
        items = items_of(like) if self.mark in (None, LIST) else None
        if items is not None:
            if are_marks(items, self.classes):
                return json.dumps([int(each in names) for each in self.classes])
            return json.dumps(list(names), ensure_ascii=False)
        if len(names) == len(self.classes):
            return WHOLE_ROW
        mark = next(self._free_marks(), None)
        return mark.join(names) if mark else json.dumps(list(names), ensure_ascii=False)

    def _free_marks(self) -> Iterator[str]:
        """List the marks that can join names."""
        if self.mark not in (None, LIST):
            yield self.mark or ""
        for mark in MARKS:
            if not any(mark in name for name in self.classes):
                yield mark
