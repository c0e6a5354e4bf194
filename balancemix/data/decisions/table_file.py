"""Open a table that a person filled in, whatever program saved it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from balancemix.data.tables import open_sheet
from balancemix.data.tables.dialect import MARKS
from balancemix.errors import InputError
from balancemix.progress import Show, silence


def records_of(file: Path, show: Show = silence) -> tuple[list[str], Iterator[list[str]]]:
    """Read the header of a table, and its rows one by one; a blank row may have no cells.

    A file of commas that is not UTF-8 is read as well, since names of images may have such bytes.
    """
    if file.suffix.lower() == ".csv" and (text := _odd_text(file)) is not None:
        rows = _rows(file, text)
        return next(rows, []), rows
    sheet = open_sheet(file)
    return sheet.header, sheet.records(show)


def _odd_text(file: Path) -> str | None:
    """Read a text that is not UTF-8, with its odd bytes; None if it is."""
    try:
        raw = file.read_bytes()
    except OSError:
        return None  # which the sheet explains
    if any(raw.startswith(mark) for mark in MARKS):
        return None
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "surrogateescape")
    return None


def _rows(file: Path, text: str) -> Iterator[list[str]]:
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        yield from lines
    except csv.Error as error:
        raise InputError(
            f"{file} line {lines.line_num}: not CSV ({error}); check its quotes"
        ) from error
