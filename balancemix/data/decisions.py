"""What people decided about labels: `photos.balancemix/decisions.csv` beside `photos/`.

A line is image,class,verdict; further columns are ignored, and of two lines about one label the
last one counts. The verdict is present, absent or unsure. On reading data, it replaces the given
label, which is then verified; "unsure" changes nothing.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from balancemix.data.beside import folder_beside
from balancemix.data.source import Source
from balancemix.errors import InputError, listing, suggest
from balancemix.files import restore

COLUMNS = ("image", "class", "verdict")
VERDICTS = {"present": 1, "absent": 0, "unsure": -1}


class Decision(NamedTuple):
    """A line of the file, which counts like a spreadsheet, from the header as row 1."""

    row: int
    image: str
    class_: str
    verdict: int


def decisions_file(data: Path) -> Path | None:
    """Find the decisions about a data set, if there are any.

    >>> decisions_file(Path("nowhere"))
    """
    folder = folder_beside(data)
    file = None if folder is None else folder / "decisions.csv"
    return file if file is not None and file.is_file() else None


def decide(source: Source) -> Source:
    """Replace given labels by what people decided about them; the file's are kept.

    Decisions about images that are gone are left out with a warning. A class that is not there is
    refused.
    """
    file = decisions_file(source.path)
    if file is None:
        return source
    place = {name: i for i, name in enumerate(source.names)}
    column = {name: k for k, name in enumerate(source.classes)}
    given = source.given.clone()
    verified = _verified(source)
    gone: dict[str, None] = {}
    for line in read_decisions(file):
        if line.class_ not in column:
            raise InputError(
                f"{file} row {line.row}: {line.class_!r} is not a class of {source.path}; "
                f"{suggest(line.class_, source.classes)}"
            )
        if line.image not in place:
            gone[repr(line.image)] = None
            continue
        i, k = place[line.image], column[line.class_]
        sure = line.verdict >= 0  # else as in the file, also if an earlier line decided it
        given[i, k] = line.verdict if sure else source.given[i, k]
        verified[i, k] = sure or (source.verified is not None and source.verified[i, k])
    if gone:
        warnings.warn(
            f"{file}: images that {source.path} does not have ({len(gone)}): "
            f"{listing(list(gone), 3)}; their decisions are left out",
            stacklevel=2,
        )
    return replace(source, given=given, verified=verified, file_given=source.given)


def read_decisions(file: Path) -> Iterator[Decision]:
    """Read the lines of a file of decisions, in its order."""
    try:
        text = file.read_bytes().decode("utf-8-sig", "surrogateescape")
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from error
    lines, row = csv.reader(io.StringIO(text, newline=""), strict=True), 0
    try:
        header, row = [name.strip() for name in next(lines, [])], 1
        for name in COLUMNS:
            if header.count(name) != 1:
                raise InputError(
                    f"{file} row 1: needs one column {name!r}; begin it with {','.join(COLUMNS)}"
                )
        for row, cells in enumerate(lines, start=2):
            if any(cell.strip() for cell in cells):
                yield _decision(f"{file} row {row}", row, header, cells)
    except csv.Error as error:
        raise InputError(f"{file} row {row + 1}: not CSV ({error}); check its quotes") from error


def _decision(where: str, row: int, header: list[str], cells: list[str]) -> Decision:
    if len(cells) != len(header):
        raise InputError(
            f"{where}: has {len(cells)} cells where the header has {len(header)}; quote cells that "
            "hold a comma"
        )
    values = dict(zip(header, map(restore, cells), strict=True))
    verdict = values["verdict"].strip()
    if verdict not in VERDICTS:
        options = suggest(verdict, list(VERDICTS))
        raise InputError(f"{where}: verdict {verdict!r}; {options}")
    return Decision(row, values["image"], values["class"], VERDICTS[verdict])


def _verified(source: Source) -> Tensor:
    if source.verified is not None:
        return source.verified.clone()
    return torch.zeros(source.given.shape, dtype=torch.bool)
