"""Cells of a worksheet changed in its XML, so that all else in the .xlsx stays byte for byte.

Writing the whole workbook with openpyxl instead would lose the values of formulas, and drawings.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat
from xml.sax.saxutils import escape

from balancemix.data.tables.edits import Edits
from balancemix.errors import InputError

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
LINKS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")


@dataclass
class Cell:
    """A cell and the bytes from `start` to `end` that it takes in the XML."""

    start: int
    style: str | None
    kind: str
    formula: bool = False
    end: int = 0


@dataclass
class Row:
    """A row: its cells by column, and where further cells go.

    A row without cells may be one tag, which then has to be opened.
    """

    tag: str
    number: int
    inner: int = 0
    is_one_tag: bool = False
    cells: dict[int, Cell] = field(default_factory=dict)


def rewrite(file: Path, title: str, edits: Edits, out: Path) -> None:
    """Copy an .xlsx file with some cells of one worksheet changed."""
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w") as new:
        part = part_of(old, title)
        for info in old.infolist():
            content = old.read(info)
            if info.filename == part:
                content = _changed(content, edits, f"{file} sheet {title!r}")
            new.writestr(info, content)


def part_of(archive: zipfile.ZipFile, title: str) -> str:
    """Find the file of a worksheet in the archive."""
    links = _links(archive, "")
    book = next(link["Target"] for link in links if link["Type"].endswith("/officeDocument"))
    book = book.lstrip("/")
    sheets = ElementTree.fromstring(archive.read(book)).iter(f"{MAIN}sheet")
    number = next(sheet.get(f"{LINKS}id") for sheet in sheets if sheet.get("name") == title)
    target = next(link["Target"] for link in _links(archive, book) if link["Id"] == number)
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(book), target)).lstrip("/")


def _links(archive: zipfile.ZipFile, part: str) -> list[dict[str, str]]:
    """Read the links of a part of the archive to others."""
    folder, name = posixpath.split(part)
    content = archive.read(posixpath.join(folder, "_rels", f"{name}.rels"))
    return [dict(link.attrib) for link in ElementTree.fromstring(content)]


def _changed(xml: bytes, edits: Edits, where: str) -> bytes:
    """Change the XML of a worksheet."""
    if not re.match(rb"(\xef\xbb\xbf)?\s*<(?!\?xml[^>]*encoding=.(?!utf-8))", xml, re.IGNORECASE):
        raise InputError(f"{where}: is not in UTF-8; save it again in Excel")
    layout = _Layout(xml)
    pieces: list[tuple[int, int, str]] = []  # bytes from, to, and what replaces them
    wanted = {record: dict(cells) for record, cells in edits.by_record.items()}
    fresh = [cells for _, records in sorted(edits.added.items()) for cells in records]
    for record in sorted(edits.dropped):
        row = layout.rows.get(record + 2)
        width = max(row.cells, default=-1) + 1 if row is not None else 0
        new = fresh.pop(0) if fresh else []
        wanted[record] = dict(enumerate(new + [""] * (width - len(new))))
    for record, cells in wanted.items():
        row = layout.rows.get(record + 2)
        if row is None:
            raise InputError(f"{where}: has no row {record + 2}; save it again in Excel")
        pieces += _row_pieces(row, cells, where)
    lines = [_new_row(layout, i, cells) for i, cells in enumerate(fresh, layout.last + 1)]
    pieces.append((layout.end, layout.end, "".join(lines)))
    return _replaced(xml, pieces)


def _row_pieces(row: Row, cells: dict[int, str], where: str) -> Iterable[tuple[int, int, str]]:
    prefix = row.tag.removesuffix("row")
    if row.is_one_tag:
        names = ((f"{_letters(k)}{row.number}", text) for k, text in sorted(cells.items()) if text)
        inner = "".join(_cell(prefix, name, text, None, "n") for name, text in names)
        yield row.inner, row.inner + len("/>"), f">{inner}</{row.tag}>"
        return
    for column, text in sorted(cells.items()):
        name = f"{_letters(column)}{row.number}"
        old = row.cells.get(column)
        if old is not None:
            if old.formula:
                raise InputError(f"{where} cell {name}: is a formula; put a value into it instead")
            yield old.start, old.end, _cell(prefix, name, text, old.style, old.kind)
        elif text:
            later = [cell.start for k, cell in row.cells.items() if k > column]
            place = min(later, default=row.inner)
            yield place, place, _cell(prefix, name, text, None, "n")


def _new_row(layout: _Layout, number: int, cells: list[str]) -> str:
    tag = layout.tag
    prefix = tag.removesuffix("row")
    texts = ((f"{_letters(k)}{number}", text) for k, text in enumerate(cells) if text)
    inner = "".join(_cell(prefix, name, text, None, "n") for name, text in texts)
    return f'<{tag} r="{number}">{inner}</{tag}>'


def _cell(prefix: str, name: str, text: str, style: str | None, kind: str) -> str:
    """Write a cell: a truth stays a truth, a number a number, other text is text."""
    look = "" if style is None else f' s="{style}"'
    start = f'<{prefix}c r="{name}"{look}'
    if not text:
        return f"{start}/>"
    if kind == "b" and text in ("true", "false"):
        return f'{start} t="b"><{prefix}v>{int(text == "true")}</{prefix}v></{prefix}c>'
    if kind == "n" and NUMBER.fullmatch(text):
        return f"{start}><{prefix}v>{text}</{prefix}v></{prefix}c>"
    inner = f'<{prefix}t xml:space="preserve">{escape(text, {chr(13): "&#13;"})}</{prefix}t>'
    return f'{start} t="inlineStr"><{prefix}is>{inner}</{prefix}is></{prefix}c>'


class _Layout:
    """Where the rows and cells of a worksheet are in its XML, in bytes."""

    def __init__(self, xml: bytes) -> None:
        self.xml, self.rows, self.last, self.end, self.tag = xml, dict[int, Row](), 0, 0, "row"
        self.row: Row | None = None
        self.cell: Cell | None = None
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._finish
        self.parser.Parse(xml, True)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name, place = tag.rpartition(":")[2], self.parser.CurrentByteIndex
        if name == "row":
            self.tag = tag
            self.last = int(attributes.get("r", self.last + 1))
            self.row = self.rows[self.last] = Row(tag, self.last)
        elif name == "c" and self.row is not None:
            at = max(self.row.cells, default=-1) + 1
            column = column_of(attributes["r"]) if "r" in attributes else at
            kind = attributes.get("t", "n")
            self.cell = self.row.cells[column] = Cell(place, attributes.get("s"), kind)
        elif name == "f" and self.cell is not None:
            self.cell.formula = True

    def _finish(self, tag: str) -> None:
        name, place = tag.rpartition(":")[2], self.parser.CurrentByteIndex
        # Of an element of one tag, the parser names the place after it.
        is_one_tag = not self.xml.startswith(f"</{tag}".encode(), place)
        if name == "c" and self.cell is not None:
            self.cell.end = place if is_one_tag else self.xml.index(b">", place) + 1
            self.cell = None
        elif name == "row" and self.row is not None:
            self.row.is_one_tag = is_one_tag
            self.row.inner = place - len("/>") if is_one_tag else place
            self.row = None
        elif name == "sheetData":
            self.end = place


def _replaced(xml: bytes, pieces: list[tuple[int, int, str]]) -> bytes:
    """Replace pieces of bytes; of two at one place, the first comes first."""
    out: list[bytes] = []
    place = 0
    for start, end, text in sorted(pieces, key=lambda piece: piece[:2]):
        out += [xml[place:start], text.encode()]
        place = end
    return b"".join([*out, xml[place:]])


def _letters(column: int) -> str:
    """Name a column as Excel does.

    >>> _letters(0), _letters(25), _letters(26)
    ('A', 'Z', 'AA')
    """
    name = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(ord("A") + rest) + name
    return name


def column_of(name: str) -> int:
    """Number the column of a cell's name, from 0.

    >>> column_of("AA7")
    26
    """
    number = 0
    for letter in name.rstrip("0123456789"):
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1
