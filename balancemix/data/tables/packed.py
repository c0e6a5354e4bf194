"""Lines of 0 and 1, many at once by NumPy: a file of a gigabyte has 500 million of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from balancemix.data.tables.text import TextSheet
from balancemix.progress import Show

LINES = 2048  # at once
Array = np.ndarray[tuple[int, ...], np.dtype[np.int8]]


@dataclass(frozen=True)
class Part:
    """Some records with their numbers; where `plain`, the digits are in `digits` and not cells."""

    records: list[tuple[int, list[str]]]
    plain: list[bool]
    digits: Array | None


def read(sheet: TextSheet, first: int, count: int, show: Show) -> Iterator[Part]:
    """Read records of which `count` cells from the column `first` on are mostly 0 and 1.

    A plain line has no quote, and single digits there. Its other cells are where they are in the
    record, the digits are blank. Blank lines are left out.
    """
    texts = sheet.texts(show)
    record = 0
    while lines := list(islice(texts, LINES)):
        yield _part(sheet, lines, record, first, count)
        record += len(lines)


def _part(sheet: TextSheet, lines: list[str], record: int, first: int, count: int) -> Part:
    mark, width = sheet.dialect.delimiter, len(sheet.header)
    wide, after = 2 * count - 1, width - first - count
    split: list[tuple[list[str], str, str] | None] = []
    for line in lines:
        if '"' in line:
            split.append(None)
            continue
        cells = line.rstrip("\r\n").split(mark, first)
        rest = cells.pop()
        tail = rest[wide:]
        fits = len(cells) == first and len(rest) >= wide and tail.count(mark) == after
        split.append((cells, rest[:wide], tail) if fits and tail[:1] in (mark, "") else None)
    runs = "".join(each[1] for each in split if each is not None)
    text = np.frombuffer(runs.encode("ascii", "replace"), np.uint8).reshape(-1, wide)
    digits = text[:, ::2] - ord("0")
    good = (digits < 2).all(1) & (text[:, 1::2] == ord(mark)).all(1)
    flags = iter(good.tolist())
    records, plain = [], []
    blank = [""] * count
    for i, (line, each) in enumerate(zip(lines, split, strict=True)):
        is_plain = each is not None and next(flags)
        if is_plain and each is not None:
            cells = each[0] + blank + each[2].split(mark)[1:]
        else:
            cells = sheet.cells(line)
        if is_plain or any(map(str.strip, cells)):
            records.append((record + i, cells))
            plain.append(is_plain)
    values = digits.view(np.int8)
    return Part(records, plain, values if good.all() else values[good])
