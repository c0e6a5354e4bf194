"""What a layout is: a way to lay out labels in a table, which can be read and changed."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from balancemix.data.splits import check_classes
from balancemix.data.tables.edits import Edits
from balancemix.data.tables.roles import Roles
from balancemix.data.tables.sheet import Sheet
from balancemix.errors import InputError, suggest
from balancemix.labels.chunks import chunks
from balancemix.options import ReadOptions
from balancemix.progress import Show, silence


class Layout(Protocol):
    """Labels as a table has them."""

    def edits(self, sheet: Sheet, change: Change) -> Edits:
        """Say what to change in the table so that it has other labels."""


@dataclass(frozen=True)
class Asked:
    """A table to read, what its columns are, and the classes of classes.txt, if there is one."""

    sheet: Sheet
    roles: Roles
    options: ReadOptions
    listed: list[str] | None = None
    list_file: Path | None = None
    show: Show = silence

    def check_listed(self, where: str, label: str, known: set[str]) -> None:
        """Refuse a label that is not in classes.txt."""
        if self.listed is not None and self.list_file is not None and label not in known:
            raise InputError(
                f"{where}: label {label!r} is not in {self.list_file.name}; "
                f"{suggest(label, self.listed)}"
            )

    def check_mark(self, mark: str) -> None:
        """Refuse a class of classes.txt that no cell can name."""
        for name in self.listed or ():
            if mark in name:
                raise InputError(
                    f"{self.list_file}: class {name!r} holds a {mark}, which separates labels; "
                    "rename it"
                )


@dataclass(frozen=True)
class Labels:
    """What a table says; `records` are the numbers of the rows' records, the first of each."""

    layout: Layout
    names: list[str]
    classes: list[str]
    given: Tensor
    records: array[int]
    split: list[str] | None = None
    groups: list[str] | None = None
    verified: Tensor | None = None
    notes: list[str] = field(default_factory=list)
    roles: Roles | None = None


@dataclass(frozen=True)
class Change:
    """Other labels of some rows: N×K before and after, and the rows' names and records.

    `verified` are the labels that people looked at by now, for layouts that say it.
    """

    names: Sequence[str]
    classes: Sequence[str]
    before: Tensor
    after: Tensor
    records: Sequence[int]
    verified: Tensor | None = None

    def rows(self) -> list[int]:
        """List the rows with a label that changes."""
        changed = torch.zeros(len(self.before), dtype=torch.bool)
        for part in chunks(*self.before.shape):
            changed[part] = (self.before[part] != self.after[part]).any(1)
        return [int(i) for i in changed.nonzero().flatten().tolist()]

    def columns(self, i: int) -> list[int]:
        """List the classes that change in a row."""
        changed = self.before[i] != self.after[i]
        return [int(k) for k in changed.nonzero().flatten().tolist()]


def classes_of(asked: Asked, found: set[str]) -> list[str]:
    """Return the classes of classes.txt, or those that were found, in sorted order."""
    if asked.listed is not None:
        return asked.listed
    classes = sorted(found)
    check_classes(str(asked.sheet.file), classes)
    return classes


def filled(rows: int, classes: int, options: ReadOptions) -> Tensor:
    """Make N×K labels that no list of names mentions: absent, or unknown if the user says so."""
    return torch.full((rows, classes), unnamed(options), dtype=torch.int8)


def unnamed(options: ReadOptions) -> int:
    """Return what a label is that a list of names leaves out."""
    return -1 if options.unlabelled == "unknown" else 0


def note_on_names(options: ReadOptions) -> str:
    """Say what a class means that a list of names leaves out."""
    if options.unlabelled == "unknown":
        return "a class that is not named is unknown (--unlabelled): no row is without a class"
    return (
        "a class that is not named is absent; where it only was not looked for, that teaches the "
        "model to miss it: pass --unlabelled unknown"
    )


def check_sayable(file: Path, change: Change, rows: Sequence[int], unlabelled: int) -> None:
    """Refuse labels that a list of names cannot have: what is not named has one meaning."""
    other = 0 if unlabelled < 0 else -1
    for i in rows:
        if bool((change.after[i, change.columns(i)] == other).any()):
            word = "absent" if other == 0 else "unknown"
            raise InputError(
                f"{file.name} cannot say that a label is {word}; write an .npz instead"
            )
