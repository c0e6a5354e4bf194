"""Tables as text: CSV, TSV and semicolons, in UTF-8 or UTF-16; written back byte for byte."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

from balancemix.data.tables.dialect import opened, sniff
from balancemix.data.tables.edits import Edits
from balancemix.data.tables.sheet import Stamp
from balancemix.errors import InputError
from balancemix.files import write_whole
from balancemix.progress import Show, silence

EVERY = 1000  # records after which the progress moves
SAMPLE = 1000  # records that show whether the cells of a column are quoted


class TextSheet:
    """A table in a text file.

    A record is a line, or several if a quoted cell holds line ends. Quotes are strict, since an
    unbalanced one would otherwise make one cell of the rest of the file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.stamp = Stamp.of(file)
        try:
            self.dialect = sniff(file)
            self._top = next(self._all(silence), "")
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror})") from error
        self.header = [name.strip() for name in self.cells(self._top)]

    def records(self, show: Show = silence) -> Iterator[list[str]]:
        """Read record by record."""
        return map(self.cells, self.texts(show))

    def texts(self, show: Show = silence) -> Iterator[str]:
        """Read the text of each record below the header, with its line end."""
        return islice(self._all(show), 1, None)

    def cells(self, text: str) -> list[str]:
        """Take the text of a record apart."""
        if '"' in text:
            return next(csv.reader([text], delimiter=self.dialect.delimiter, strict=True), [])
        line = text.rstrip("\r\n")
        return line.split(self.dialect.delimiter) if line else []

    def write(self, out: Path, edits: Edits) -> None:
        """Write the file with some cells changed; every other byte stays as it is."""
        self.stamp.check(self.file)
        write_whole(out, lambda draft: self._save(draft, edits))

    def _all(self, show: Show) -> Iterator[str]:
        """Read the text of each record, from the header on."""
        with (
            opened(self.file, self.dialect) as (text, raw),
            show(f"read {self.file.name}", self.stamp.size) as bar,
        ):
            if self.dialect.preamble:
                next(text)
            before = 0
            for row, record in enumerate(self._joined(text), start=1):
                yield record
                if row % EVERY == 0:
                    before, done = raw.tell(), raw.tell() - before
                    bar.advance(done)
            bar.advance(raw.tell() - before)

    def _joined(self, lines: Iterator[str]) -> Iterator[str]:
        """Join the lines of each record."""
        limit = csv.field_size_limit()
        for row, line in enumerate(lines, start=1):
            if '"' not in line and len(line) <= limit:
                yield line
                continue
            taken: list[str] = []
            more = (taken.append(each) or each for each in chain([line], lines))  # type: ignore[func-returns-value]
            try:
                next(csv.reader(more, delimiter=self.dialect.delimiter, strict=True))
            except csv.Error as error:
                raise InputError(
                    f"{self.file} row {row}: not CSV ({error}); check its quotes"
                ) from error
            yield "".join(taken)

    def _save(self, draft: Path, edits: Edits) -> None:
        changed = edits.by_record
        columns = {column for cells in changed.values() for column in cells}
        if edits.added:
            columns = set(range(len(self.header)))
        pen = _Pen(self.dialect.delimiter, self._quoted(columns))
        end = self._top[len(self._top.rstrip("\r\n")) :] or "\n"
        with draft.open("wb") as raw:
            raw.write(self.dialect.mark)
        with draft.open("a", encoding=self.dialect.encoding, newline="") as out:
            out.write(self.dialect.preamble + self._top)
            if -1 in edits.added:
                _append(out, pen, self._top, end, edits.added[-1])
            for i, text in enumerate(self.texts()):
                kept = "" if i in edits.dropped else text
                out.write(pen.changed(kept, changed[i]) if kept and i in changed else kept)
                if i in edits.added:
                    _append(out, pen, text if kept else end, end, edits.added[i])

    def _quoted(self, columns: set[int]) -> set[int]:
        """Find the columns of which every cell that is not blank is quoted."""
        if not columns:
            return set()
        plain: set[int] = set()
        quoted: set[int] = set()
        for text in islice(self.texts(), SAMPLE):
            for k, cell in enumerate(split_raw(text, self.dialect.delimiter)[0]):
                if cell:
                    (quoted if cell.startswith('"') else plain).add(k)
        return columns & (quoted - plain)


class _Pen:
    """Writes cells; those of `quoted` columns with quotes, others where they need them."""

    def __init__(self, delimiter: str, quoted: set[int]) -> None:
        self.delimiter, self.quoted = delimiter, quoted

    def cell(self, text: str, before: str, column: int) -> str:
        """Write a cell in the way of the one before, or of its column where that one was blank."""
        like = before.startswith('"') if before else column in self.quoted and bool(text)
        if like or any(mark in text for mark in (self.delimiter, '"', "\r", "\n")):
            return '"' + text.replace('"', '""') + '"'
        return text

    def changed(self, record: str, cells: dict[int, str]) -> str:
        """Change some cells of a record."""
        raw, end = split_raw(record, self.delimiter)
        for k, text in cells.items():
            raw[k] = self.cell(text, raw[k], k)
        return self.delimiter.join(raw) + end

    def new(self, cells: Sequence[str]) -> str:
        """Write a new record, without a line end."""
        return self.delimiter.join(self.cell(text, "", k) for k, text in enumerate(cells))


def _append(out: TextIO, pen: _Pen, text: str, end: str, added: Sequence[list[str]]) -> None:
    """Write new records after `text`; if the file does not end in a line end, it will not."""
    last = text[len(text.rstrip("\r\n")) :]
    lines = [pen.new(cells) for cells in added]
    out.write("".join(line + last for line in lines) if last else "".join(end + s for s in lines))


def split_raw(text: str, delimiter: str) -> tuple[list[str], str]:
    """Split the text of a record into its cells as they are written, and its line end.

    >>> split_raw('a.jpg,"x, y",\\r\\n', ",")
    (['a.jpg', '"x, y"', ''], '\\r\\n')
    """
    mark = re.escape(delimiter)
    pattern = re.compile(rf'("(?:[^"]|"")*"|[^{mark}\r\n]*)({mark}|\r\n|\r|\n|$)')
    cells: list[str] = []
    place = 0
    while (match := pattern.match(text, place)) is not None:
        cells.append(match[1])
        place = match.end()
        if match[2] != delimiter:
            return cells, match[2]
    raise ValueError(f"not a record: {text!r}")
