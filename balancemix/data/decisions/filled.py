"""Answers in a table that a person filled in: findings with verdicts, or a sample of images.

Findings have a row a label and a column `verdict`: present, absent, unsure, or blank where it is
not decided. A sample has a row an image and a column `true_labels`: the names of all classes that
are there, joined by |, or (none), or blank where the image is not answered; and, if need be, a
column `unsure` with names of classes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from balancemix.data.decisions.names import person
from balancemix.data.decisions.schema import MODES, VERDICTS
from balancemix.data.decisions.table_file import records_of
from balancemix.errors import InputError, suggest
from balancemix.files import restore
from balancemix.progress import Show, silence

NONE = "(none)"  # of all classes, none is there
BETWEEN = "|"  # names of classes in a cell
FULL = "full"  # the width of a picture that was shown at its full size


@dataclass(frozen=True, slots=True)
class FilledLabel:
    """An answer about one label; of a CSV that balancemix wrote, with the facts of the answer."""

    where: str
    reviewer: str | None
    image: str
    class_: str
    verdict: str
    at: str | None = None
    mode: str = "file"
    width: int | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class FilledImage:
    """An answer about all classes of an image."""

    where: str
    reviewer: str | None
    image: str
    present: frozenset[str]
    unsure: frozenset[str]


@dataclass(frozen=True)
class Filled:
    """What a table says; `blank` counts the rows without an answer."""

    labels: list[FilledLabel]
    images: list[FilledImage]
    blank: int


def read_filled(
    file: Path, data: Path, images: Collection[str], classes: Sequence[str], show: Show = silence
) -> Filled:
    """Read a table; refuses an image or a class that `data` does not have, with the row."""
    header, records = records_of(file, show)
    names = [name.strip().casefold() for name in header]
    for name in names:
        if name in _KNOWN and names.count(name) > 1:
            raise InputError(f"{file} row 1: has two columns {name!r}; rename one of them")
    columns = {name: k for k, name in enumerate(names) if name in _KNOWN}
    whole = "true_labels" in columns
    if whole == ("verdict" in columns) or "image" not in columns:
        raise InputError(
            f"{file} row 1: needs the column image, and either verdict (a row is a label) or "
            "true_labels (a row is an image)"
        )
    if not whole and "class" not in columns:
        raise InputError(f"{file} row 1: needs the column 'class' beside 'verdict'")
    reader = _Reader(file, data, images, classes, columns)
    labels, wholes, blank = list[FilledLabel](), list[FilledImage](), 0
    for row, cells in enumerate(records, start=2):
        if not any(map(str.strip, cells)):
            continue
        line = reader.line(row, cells)
        if whole and line.said:
            wholes.append(line.image())
        elif not whole and line.said:
            labels.append(line.label())
        else:
            line.check()
            blank += 1
    return Filled(labels, wholes, blank)


_KNOWN = {
    *("image", "class", "verdict", "true_labels", "unsure", "reviewer", "time", "mode", "width"),
}


class _Reader:
    """Takes the rows of a table apart."""

    def __init__(
        self,
        file: Path,
        data: Path,
        images: Collection[str],
        classes: Sequence[str],
        columns: dict[str, int],
    ) -> None:
        self.file, self.data, self.columns = file, data, columns
        self.images, self.classes, self.known = images, classes, set(classes)

    def line(self, row: int, cells: list[str]) -> _Line:
        """Read a row: where it is and its cells by the names of columns."""
        cells = cells + [""] * (max(self.columns.values()) + 1 - len(cells))
        named = {name: restore(cells[k]) for name, k in self.columns.items()}
        return _Line(self, f"{self.file} row {row}", named)


@dataclass(frozen=True, slots=True)
class _Line:
    """A row by the names of its columns."""

    reader: _Reader
    where: str
    cells: dict[str, str]

    @property
    def said(self) -> bool:
        """Whether the row has an answer."""
        cells = self.cells
        return bool(cells.get("verdict", cells.get("true_labels", "")).strip())

    def check(self) -> None:
        """Refuse a row without an answer that cannot be meant so."""
        self.image_name()
        if "true_labels" in self.cells and self.cells.get("unsure", "").strip():
            raise InputError(
                f"{self.where}: has unsure classes but no true_labels; name all that are there, or "
                f"write {NONE}"
            )

    def image_name(self) -> str:
        """Read the name of the image."""
        for name in (self.cells["image"], self.cells["image"].strip()):
            if name in self.reader.images:
                return name
        shown = self.cells["image"]
        odd = any("\ud800" <= char <= "\udfff" for char in shown)
        why = "save the file as UTF-8" if odd else "correct the name, or leave the row out"
        raise InputError(f"{self.where}: {shown!r} is not an image of {self.reader.data}; {why}")

    def label(self) -> FilledLabel:
        """Read an answer about one label."""
        word = self.cells["verdict"].strip().casefold()
        if word not in VERDICTS:
            raise InputError(
                f"{self.where}: verdict {self.cells['verdict']!r}; {suggest(word, VERDICTS)}; "
                "leave it blank where nothing is decided"
            )
        name = self.cells["class"]
        class_ = next((c for c in (name, name.strip()) if c in self.reader.known), None)
        if class_ is None:
            raise self._no_class(name)
        mode = self.cells.get("mode", "").strip() or "file"
        if mode not in MODES:
            raise InputError(f"{self.where}: mode {mode!r}; {suggest(mode, MODES)}")
        width, whole = self._width()
        return FilledLabel(
            self.where, self._reviewer(), self.image_name(), class_, word, self._time(), mode,
            width, whole,
        )  # fmt: skip

    def image(self) -> FilledImage:
        """Read an answer about all classes of an image."""
        present = self._classes("true_labels")
        unsure = self._classes("unsure")
        both = sorted(present & unsure)
        if both:
            raise InputError(
                f"{self.where}: {both[0]!r} is both in true_labels and unsure; leave one out"
            )
        return FilledImage(self.where, self._reviewer(), self.image_name(), present, unsure)

    def _classes(self, column: str) -> frozenset[str]:
        cell = self.cells.get(column, "").strip()
        known = self.reader.known
        if cell in known:
            return frozenset([cell])
        if not cell or cell.casefold() == NONE:
            return frozenset()
        parts = [part.strip() for part in cell.split(BETWEEN)]
        found, start = set[str](), 0
        while start < len(parts):  # a name may hold the mark itself
            ends = range(len(parts), start, -1)
            names = (BETWEEN.join(parts[start:end]) for end in ends)
            match = next(((n, e) for n, e in zip(names, ends, strict=True) if n in known), None)
            if match is None:
                if not parts[start]:  # a mark too many
                    start += 1
                    continue
                raise self._no_class(parts[start])
            found.add(match[0])
            start = match[1]
        return frozenset(found)

    def _reviewer(self) -> str | None:
        name = self.cells.get("reviewer", "").strip()
        try:
            return person(name) if name else None
        except InputError as error:
            raise InputError(f"{self.where}: {error}") from None

    def _time(self) -> str | None:
        text = self.cells.get("time", "").strip()
        if not text:
            return None
        try:
            time = datetime.fromisoformat(text)
            time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        except (ValueError, OverflowError):
            raise InputError(
                f"{self.where}: time {text!r} is not like 2026-01-31T12:00:00Z; leave the column "
                "out to read the answers as new ones"
            ) from None
        return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _width(self) -> tuple[int | None, bool]:
        text = self.cells.get("width", "").strip()
        if not text:
            return None, False
        if text == FULL:
            return None, True
        if not (text.isascii() and text.isdigit() and len(text) < 7):
            raise InputError(f"{self.where}: width {text!r} is neither pixels nor {FULL!r}")
        return int(text), False

    def _no_class(self, name: str) -> InputError:
        known = suggest(name.strip(), self.reader.classes)
        return InputError(f"{self.where}: {name!r} is not a class of {self.reader.data}; {known}")
