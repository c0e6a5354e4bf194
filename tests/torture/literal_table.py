"""A second reader of tables, slow and literal, written from docs/data.md; see `literal`."""

import codecs
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from tests.torture import literal
from tests.torture.literal import Answer, check_classes, is_file, text_of
from tests.torture.outcome import RefusedError, UnsureError

SPLITS = {name: name for name in literal.SPLITS} | {
    "training": "train", "validation": "val", "testing": "test",
}  # fmt: skip
VALUES = {"1": 1, "1.0": 1, "true": 1, "yes": 1, "0": 0, "0.0": 0, "false": 0, "no": 0, "": -1,
          "nan": -1}  # fmt: skip


def decoded(file: Path) -> str:
    """Read UTF-8, or UTF-16 if a mark says so."""
    try:
        content = file.read_bytes()
        for mark, name in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
            if content.startswith(mark):
                return content[2:].decode(name)
    except UnicodeDecodeError:
        raise RefusedError("not UTF-16") from None
    except FileNotFoundError:
        raise RefusedError("missing") from None
    return text_of(file)


def parse_csv(text: str, delimiter: str = ",") -> list[list[str]]:
    """Take CSV apart character by character (RFC 4180); CR, LF and CR LF each end a record."""
    records: list[list[str]] = []
    cells: list[str] = []
    cell, quoted, closed, i = "", False, False, 0
    while i < len(text):
        mark = text[i]
        if quoted:
            if mark == '"' and text[i + 1 : i + 2] == '"':
                cell += '"'
                i += 1
            elif mark == '"':
                quoted, closed = False, True
            else:
                cell += mark
        elif mark == '"' and not cell and not closed:
            quoted = True
        elif mark in (delimiter, "\r", "\n"):
            cells.append(cell)
            cell, closed = "", False
            if mark != delimiter:
                records.append(cells)
                cells = []
                i += text[i : i + 2] == "\r\n"
        elif closed:
            raise RefusedError("text behind a closing quote")
        else:
            cell += mark
        i += 1
    if quoted:
        raise RefusedError("a quote that is never closed")
    if cell or cells or closed:
        records.append([*cells, cell])
    return records


def records_of(text: str) -> list[list[str]]:
    """Find what separates cells: the line sep=, or what the first line has."""
    first = text.splitlines()[0] if text.splitlines() else ""
    if first.startswith("sep="):
        raise UnsureError("a line sep=")
    found = [mark for mark in ",;\t" if len(parse_first(text, mark)) > 1]
    if len(found) > 1:
        raise UnsureError("two marks in the header")
    return parse_csv(text, found[0] if found else ",")


def parse_first(text: str, delimiter: str) -> list[str]:
    """Take the header apart, if it is one line."""
    line = text.replace("\r", "\n").split("\n")[0]
    try:
        return next(iter(parse_csv(line, delimiter)), [])
    except RefusedError:
        raise UnsureError("a quote in the header") from None


def plain(name: str) -> str:
    """Leave out capitals, blanks and punctuation."""
    return "".join(c for c in name.lower() if c.isalnum())


def column_of(header: list[str], names: list[str]) -> int | None:
    """Find the column of one of some names; the first name goes before the others."""
    words = [plain(name) for name in header]
    for name in names:
        if words.count(name) > 1:
            raise RefusedError("two columns of one use")
        if name in words:
            return words.index(name)
    return None


IMAGE = ["image", "filename", "file", "imagepath", "path", "id"]
LABELS = ["labels", "label", "tags", "classes", "class"]
KNOWN = {*IMAGE, *LABELS, "split", "note", "group", "verified", "cat", "dog", "cup", "treehouse",
         "owl"}  # fmt: skip


def read_table(folder: Path) -> Answer:
    """Read labels.csv and, if there is one, classes.txt."""
    records = records_of(decoded(folder / "labels.csv"))
    header = [cell.strip() for cell in records[0]] if records else []
    if any(plain(name) not in KNOWN or not name.isascii() for name in header):
        raise UnsureError("another name of a column")
    image, label, split = (column_of(header, each) for each in (IMAGE, LABELS, ["split"]))
    if image is None:
        raise RefusedError("no column of images")
    rows = [cells for cells in records[1:] if "".join(cells).strip()]
    if any(len(cells) != len(header) for cells in rows):
        raise RefusedError("too few or too many cells")
    rows = [[cell.strip() for cell in cells] for cells in rows]
    if any(not cells[image] for cells in rows) or not rows:
        raise RefusedError("no rows, or no name of an image")
    if split is not None and any(cells[split].lower() not in SPLITS for cells in rows):
        raise RefusedError("unknown split")
    listed = _listed(folder)
    classes = listed
    if label is None:
        if listed is not None:
            raise UnsureError("a list of classes of columns")
        given, classes = _columns(header, rows, image, split)
    elif plain(header[label]) in ("label", "class") and _repeated(rows, image):
        given = _lines(rows, image, label)
    else:
        given = _joined(rows, label, listed)
    found: dict[str, Any] = {}
    for cells, (present, unknown) in zip(rows, given, strict=True):
        place = _place(folder, cells[image])
        name = next((n for n in found if os.path.normpath(n) == os.path.normpath(cells[image])), "")
        part = None if split is None else SPLITS[cells[split].lower()]
        if name:
            if found[name][0] != part or not present or not found[name][1]:
                raise RefusedError("lines of one image that differ in split, or a blank one")
            if label is None or plain(header[label]) not in ("label", "class"):
                raise RefusedError("an image twice")
            if present & found[name][1]:
                raise RefusedError("a label twice")
            found[name] = (part, found[name][1] | present, unknown, place)
            continue
        if any(row[3] == place for row in found.values()):
            raise RefusedError("an image twice, with its ending and without")
        found[cells[image]] = (part, present, unknown, place)
    used = frozenset(name for row in found.values() for name in row[1])
    classes = sorted(used) if classes is None else classes
    check_classes(classes)
    if used - set(classes):
        raise RefusedError("a label that is not in classes.txt")
    return {"classes": frozenset(classes), "rows": found}


def _listed(folder: Path) -> list[str] | None:
    if not (folder / "classes.txt").exists():
        return None
    lines = text_of(folder / "classes.txt").replace("\r\n", "\n").replace("\r", "\n")
    return [line.strip() for line in lines.split("\n") if line.strip()]


def _place(folder: Path, name: str) -> str:
    """Find an image; one without its ending is the file that has it with one."""
    place = next((p for p in (folder / name, folder / "images" / name) if is_file(p)), None)
    if place is None:
        tried = [Path(f"{folder / name}{ending}") for ending in (".png", ".jpg")]
        place = next((p for p in tried if is_file(p)), None)
        if place is None or name.endswith(("/", ".png", ".jpg")):
            raise RefusedError("no such image")
    return str(place)


def _repeated(rows: list[list[str]], image: int) -> bool:
    names = Counter(os.path.normpath(cells[image]) for cells in rows)
    return max(names.values()) > 1


Given = list[tuple[frozenset[str], frozenset[str]]]


def _columns(
    header: list[str], rows: list[list[str]], image: int, split: int | None
) -> tuple[Given, list[str]]:
    """Read a column a class: those that hold only 0 and 1, or words for them, or are blank."""
    classes = []
    others = [k for k in range(len(header)) if k not in (image, split)]
    if any(plain(header[k]) in ("group", "verified") for k in others):
        raise UnsureError("a table that has more")
    if len({header[k] for k in others}) < len(others):
        raise UnsureError("columns of one name")
    for k in others:
        cells = [row[k].lower() for row in rows]
        values = [cell for cell in cells if cell in VALUES]
        if any(cell in ("-1", "-1.0") for cell in cells):
            raise UnsureError("a column with -1")
        if len(values) < len(cells) and any(cell for cell in values):
            raise UnsureError("a column that is not clean")
        if any(cell in VALUES and cell not in ("", "nan") for cell in cells):
            classes.append(header[k])
    if len(classes) < 2:
        raise RefusedError("fewer than two columns of labels")
    given = []
    for row in rows:
        values_ = {header[k]: VALUES[row[k].lower()] for k in others if header[k] in classes}
        given.append(
            (
                frozenset(name for name, value in values_.items() if value == 1),
                frozenset(name for name, value in values_.items() if value == -1),
            )
        )
    return given, classes


def _lines(rows: list[list[str]], image: int, label: int) -> Given:
    """Read a label a row."""
    if any(set(row[label]) & set("|;,[]\r\n") for row in rows):
        raise UnsureError("a label with a mark")
    return [(frozenset({row[label]} - {""}), frozenset()) for row in rows]


def _joined(rows: list[list[str]], label: int, listed: list[str] | None) -> Given:
    """Read joined labels: by | if any cell has one; by another mark if a part recurs."""
    cells = [row[label] for row in rows]
    if any("\n" in cell or "\r" in cell for cell in cells):
        raise RefusedError("a line break among labels")
    if all(_items(cell) is not None for cell in cells if cell) and any(cells):
        return [(frozenset(_items(cell) or ()), frozenset()) for cell in cells]
    mark = "|" if any("|" in cell for cell in cells) else _mark(cells, listed)
    parts = [frozenset(p.strip() for p in cell.split(mark)) - {""} for cell in cells]
    names = {name for each in parts for name in each}
    if listed is not None:
        if any(mark in name for name in listed):
            raise RefusedError("a class that no cell can name")
        if any(set(",;|") & set(name) for name in (*names, *listed)) or not names <= set(listed):
            raise UnsureError("a list of classes that may decide otherwise")
    for other in ",;":
        for name in names if other != mark else ():
            inner = {part.strip() for part in name.split(other)} - {""}
            if len(inner) > 1 and inner <= names:
                raise RefusedError("a label that could be several")
    if names and all(name.isascii() and name.isdigit() for name in names) and listed is not None:
        raise UnsureError("numbers")
    return [(each, frozenset()) for each in parts]


def _items(cell: str) -> list[str] | None:
    try:
        items = json.loads(cell)
    except (ValueError, RecursionError):
        if cell.startswith("[") and cell.endswith("]") and ('"' in cell or "'" in cell):
            raise UnsureError("a list as Python writes it") from None
        return None
    if not isinstance(items, list):
        return None
    if any(not isinstance(item, str) for item in items):
        raise UnsureError("a list of other things")
    return [item.strip() for item in items if item.strip()]


def _mark(cells: list[str], listed: list[str] | None) -> str:
    there = [mark for mark in ";," if any(mark in cell for cell in cells)]
    if not there:
        return "|"
    if listed is not None or len(there) > 1 or all(set(c) <= set("0123456789;, ") for c in cells):
        raise UnsureError("a list of classes, or numbers, or two marks")
    different = {cell for cell in cells if cell}
    for cell in different:
        parts = {part.strip() for part in cell.split(there[0])} - {""}
        for other in different - {cell}:
            shared = parts & {part.strip() for part in other.split(there[0])}
            if len(parts) > 1 and shared:
                return there[0]
    raise RefusedError("a label that could be several")
