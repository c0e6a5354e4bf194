"""Small CSV files beside data that balancemix reads and people may edit."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from balancemix.errors import InputError
from balancemix.files import restore


def read_small_table(file: Path, columns: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Read the cells of some columns row by row, each row with its place; skips blank rows.

    Other columns are ignored. The apostrophe before what a spreadsheet would compute is taken off.
    """
    try:
        text = file.read_bytes().decode("utf-8-sig", "surrogateescape")
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from error
    lines, row = csv.reader(io.StringIO(text, newline=""), strict=True), 0
    try:
        header, row = [name.strip() for name in next(lines, [])], 1
        for name in columns:
            if header.count(name) != 1:
                raise InputError(
                    f"{file} row 1: needs one column {name!r}; begin it with {','.join(columns)}"
                )
        places = [header.index(name) for name in columns]
        for row, cells in enumerate(lines, start=2):
            if len(cells) == len(header):
                if any(cell.strip() for cell in cells):
                    yield f"{file} row {row}", [restore(cells[place]) for place in places]
            elif cells:
                raise InputError(
                    f"{file} row {row}: has {len(cells)} cells where the header has {len(header)}; "
                    "quote cells that hold a comma"
                )
    except csv.Error as error:
        raise InputError(f"{file} row {row + 1}: not CSV ({error}); check its quotes") from error
