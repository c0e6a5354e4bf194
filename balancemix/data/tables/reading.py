"""Read the labels of a table: which layout it has, and what it says in that layout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol

from balancemix.data.tables import columns, joined, lines
from balancemix.data.tables.known import read_known
from balancemix.data.tables.layout import Asked, Labels
from balancemix.data.tables.roles import find_roles, plain
from balancemix.data.tables.rows import path_of
from balancemix.data.tables.separators import MARKS, WHOLE, items_of
from balancemix.data.tables.sheet import Sheet
from balancemix.errors import InputError
from balancemix.options import ReadOptions
from balancemix.progress import Show, silence


class Reader(Protocol):
    """A module that reads a layout."""

    def read(self, asked: Asked) -> Labels:
        """Read a table of this layout."""


HEADER = "begin it with image,labels or image,labels,split"


def read_labels(
    sheet: Sheet,
    options: ReadOptions,
    listed: list[str] | None = None,
    list_file: Path | None = None,
    show: Show = silence,
) -> Labels:
    """Read a table; `listed` are the names in `list_file`, if there is a classes.txt."""
    if not any(sheet.header) and not any(any(map(str.strip, cells)) for cells in sheet.records()):
        raise InputError(f"{sheet.file}: is empty; {HEADER}")
    roles = find_roles(sheet, options)
    asked = Asked(sheet, roles, options, listed, list_file, show)
    labels = read_known(asked)
    if labels is None:
        labels = _layout(asked).read(asked)
    return replace(labels, notes=[*roles.notes, *labels.notes], roles=roles)


def _layout(asked: Asked) -> Reader:
    """Choose the layout: by --separator, or by the columns and what they hold."""
    if asked.roles.label is None:
        return columns
    whole = asked.options.separator == WHOLE
    return lines if whole or (asked.options.separator is None and _is_lines(asked)) else joined


def _is_lines(asked: Asked) -> bool:
    """Tell whether a column named for one label has one in each row, and images have several."""
    image, column = asked.roles.image, asked.roles.label
    if column is None or not _is_singular(plain(asked.sheet.header[column])):
        return False
    listed, seen, repeated = set(asked.listed or ()), set[str](), False
    for cells in asked.sheet.records():
        if len(cells) <= max(image, column) or not cells[image].strip():
            continue
        label = cells[column].strip()
        several = any(mark in label for mark in MARKS) or items_of(label) is not None
        if several and label not in listed:
            return False
        name = path_of(cells[image].strip())
        repeated = repeated or name in seen
        seen.add(name)
    return repeated


def _is_singular(name: str) -> bool:
    return name.endswith("class") or not name.endswith("s")
