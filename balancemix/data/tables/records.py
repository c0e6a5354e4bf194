"""Tables of JSON: a list of objects (.json), or an object on each line (.jsonl).

Records keep their text; one that changes is written again in the style that it had.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from balancemix.data.tables.cells import text_of, value_like
from balancemix.data.tables.edits import Edits
from balancemix.data.tables.json_style import style_of
from balancemix.data.tables.sheet import Stamp
from balancemix.errors import InputError
from balancemix.files import json_at, write_bytes
from balancemix.progress import Show, silence

BLANK = " \t\r\n"
LINES = ".jsonl"
EVERY = 1000  # records after which the progress moves


class Piece(NamedTuple):
    """A record and its place in the text."""

    start: int
    end: int
    content: dict[str, Any]


class RecordsSheet:
    """A table in a .json or .jsonl file; its columns are all keys, in their order."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.stamp = Stamp.of(file)
        try:
            self._text = file.read_bytes().decode()
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror})") from error
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: not UTF-8 (byte {error.start}); save it as UTF-8") from error
        self._pieces = list(self._parse())
        if not self._pieces:
            raise InputError(f"{file}: holds no object; write one for each image")
        self.header = list(dict.fromkeys(key for piece in self._pieces for key in piece.content))

    def records(self, show: Show = silence) -> Iterator[list[str]]:
        """Read record by record; a key that an object does not have is blank."""
        with show(f"read {self.file.name}", len(self._pieces)) as bar:
            for i, (_, _, content) in enumerate(self._pieces, start=1):
                yield [text_of(content.get(key)) for key in self.header]
                if i % EVERY == 0:
                    bar.advance(EVERY)

    def write(self, out: Path, edits: Edits) -> None:
        """Write the file with some records changed; the text of the others stays."""
        self.stamp.check(self.file)
        text, pieces, cells = self._text, self._pieces, edits.by_record
        ends, starts = [p.end for p in pieces], [p.start for p in pieces]
        places = zip([0, *ends], [*starts, len(text)], strict=True)
        gaps = [text[start:end] for start, end in places]
        between = gaps[1] if len(pieces) > 1 else self._usual_gap(gaps[0])
        written: list[str] = []  # a gap before each record
        for i, piece in enumerate(pieces):
            new = [] if i in edits.dropped else [self._rewritten(i, piece, cells.get(i, {}))]
            first = [self._new(record) for record in edits.added.get(-1, ())] if i == 0 else []
            more = [self._new(record) for record in edits.added.get(i, ())]
            for n, each in enumerate([*first, *new, *more]):
                written += [gaps[i] if i and n == 0 and new else between, each]
        content = "".join([gaps[0], *written[1:], gaps[-1]])
        write_bytes(out, content.encode())

    def _parse(self) -> Iterator[Piece]:
        """Find the records in the text."""
        text, lines = self._text, self.file.suffix.lower() == LINES
        place = _after_blank(text, 1 if text.startswith("\ufeff") else 0)
        if not lines:
            if not text.startswith("[", place):
                raise InputError(f"{self.file}: is not a list; begin it with [ and an object")
            place = _after_blank(text, place + 1)
        number = 0
        while place < len(text) and (lines or not text.startswith("]", place)):
            try:
                content, end = json_at(text, place)
            except (ValueError, RecursionError) as error:
                raise self._wrong(number, f"not JSON ({error})") from error
            if not isinstance(content, dict):
                raise self._wrong(number, "is not an object; write {…}")
            yield Piece(place, end, content)
            start, place = place, _after_blank(text, end)
            number += 1
            if lines:
                if "\n" in text[start:end]:
                    raise self._wrong(number - 1, "is written over several lines; write it on one")
                if place < len(text) and "\n" not in text[end:place]:
                    raise self._wrong(number, "begins on the line of the one before")
            elif text.startswith(",", place):
                place = _after_blank(text, place + 1)
                if text.startswith("]", place):
                    raise self._wrong(number, "is missing after a comma")
            elif not text.startswith("]", place):
                raise self._wrong(number, "does not follow a comma, or the list has no end")
        if not lines and (place >= len(text) or _after_blank(text, place + 1) < len(text)):
            raise InputError(f"{self.file}: does not end with the list; end it with a single ]")

    def _wrong(self, number: int, problem: str) -> InputError:
        return InputError(f"{self.file} object {number}: {problem}")

    def _usual_gap(self, before: str) -> str:
        if self.file.suffix.lower() == LINES:
            return "\n"
        return "," + before.partition("[")[2]

    def _rewritten(self, i: int, piece: Piece, cells: dict[int, str]) -> str:
        """Write a record with other cells; the text of its other values stays."""
        text, places = self._text, dict(self._values(piece))
        changes: list[tuple[int, int, str]] = []
        for column, cell in cells.items():
            key, old = self.header[column], piece.content.get(self.header[column])
            try:
                new = value_like(self._like(old, key), cell)
            except ValueError as error:
                raise self._wrong(i, f"{key!r} cannot be {cell!r} ({error})") from error
            if key in places:
                start, end = places[key]
                margin = self._margin(start)
                style = style_of(old, text[start:end], margin)
                changes.append((start, end, style.write(new, margin)))
            elif cell:
                changes.append(self._another(piece, places, key, new))
        place, written = piece.start, ""
        for start, end, new in sorted(changes):
            written, place = f"{written}{text[place:start]}{new}", end
        return written + text[place : piece.end]

    def _another(
        self, piece: Piece, places: dict[str, tuple[int, int]], key: str, value: Any
    ) -> tuple[int, int, str]:
        """Write a further key of a record behind its last one."""
        style = style_of(piece.content, self._text[piece.start : piece.end], "")
        pair = style.write({key: value}, "")[1:-1].strip()
        ends = sorted(end for _, end in places.values())
        if not ends:
            return piece.start + 1, piece.start + 1, pair
        start = min(place for place, _ in places.values())
        first = self._text.index('"', piece.start + 1, start)
        between = self._text[piece.start + 1 : first]
        gap = between if "\n" in between else style.comma[1:]
        return ends[-1], ends[-1], f",{gap}{pair}"

    def _values(self, piece: Piece) -> Iterator[tuple[str, tuple[int, int]]]:
        """Find the values of a record in the text: key, start and end."""
        text, place = self._text, _after_blank(self._text, piece.start + 1)
        while text[place] != "}":
            key, place = json_at(text, place)
            start = _after_blank(text, _after_blank(text, place) + 1)
            _, end = json_at(text, start)
            yield key, (start, end)
            place = _after_blank(text, end)
            place = _after_blank(text, place + 1) if text[place] == "," else place

    def _new(self, cells: list[str]) -> str:
        """Write a new record, in the style of the first."""
        first = self._pieces[0]
        margin = self._margin(first.start)
        pairs = zip(self.header, cells, strict=False)
        content = {key: value_like(self._like(None, key), cell) for key, cell in pairs if cell}
        style = style_of(first.content, self._text[first.start : first.end], margin)
        return style.write(content, margin)

    def _margin(self, place: int) -> str:
        """Return the blanks that the line of a place begins with."""
        start = self._text.rfind("\n", 0, place) + 1
        return self._text[start : _after_blank(self._text, start)]

    def _like(self, value: Any, key: str) -> Any:
        """Return a value, or where there is none, another one of its column."""
        if value is not None:
            return value
        values = (piece.content.get(key) for piece in self._pieces)
        return next((each for each in values if each is not None), None)


def _after_blank(text: str, place: int) -> int:
    while place < len(text) and text[place] in BLANK:
        place += 1
    return place
