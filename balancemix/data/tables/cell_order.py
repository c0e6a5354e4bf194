"""Rows and cells of a worksheet have to ascend: openpyxl leaves out others, without a word."""

from __future__ import annotations

import zipfile
from pathlib import Path
from xml.parsers import expat

from balancemix.data.tables.worksheet import column_of, part_of
from balancemix.errors import InputError


def check_order(file: Path, title: str) -> None:
    """Refuse a worksheet with a row or cell that stands after a later one, or twice."""
    with zipfile.ZipFile(file) as archive, archive.open(part_of(archive, title)) as stream:
        order = _Order(f"{file} sheet {title!r}")
        order.parser.ParseFile(stream)


class _Order:
    def __init__(self, where: str) -> None:
        self.where, self.row, self.column = where, 0, -1  # the last ones
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name, place = tag.rpartition(":")[2], attributes.get("r")
        if name == "row":
            row = int(place or self.row + 1)
            if row <= self.row:
                raise self._disorder(f"row {row}")
            self.row, self.column = row, -1
        elif name == "c":
            column = self.column + 1 if place is None else column_of(place)
            if column <= self.column:
                raise self._disorder(f"cell {place}")
            self.column = column

    def _disorder(self, what: str) -> InputError:
        return InputError(f"{self.where} {what}: is out of order; save it again in Excel")
