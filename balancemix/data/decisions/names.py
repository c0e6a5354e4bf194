"""Numbers for the names of images, classes and people in a store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection

from balancemix.data.decisions.logs import Row, SumError, insert, rows_of
from balancemix.data.source import check_text
from balancemix.errors import InputError

LONGEST = 200  # characters of a person's name


class Names:
    """Looks up names within a transaction, and adds those that are new."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[str, str], int] = {}
        self._images: list[Row] = []  # new ones, of which there may be many

    def image(self, name: str) -> int:
        """Number an image; `save` writes new ones, before any row that refers to them."""
        number = self._known.get(("image", name)) or self._find("image", name)
        if number is None:
            newest = self._images[-1][0] if self._images else self._newest("image")
            number = newest + 1
            self._images.append((number, name, None, None, None))
        self._known["image", name] = number
        return number

    def class_(self, name: str) -> int:
        """Number a class."""
        return self._number("class", name)

    def reviewer(self, name: str) -> int:
        """Number a person; capital and small letters are the same."""
        return self._number("reviewer", person(name))

    def palette(self, classes: Collection[str]) -> int:
        """Number a set of classes that were shown together."""
        text = json.dumps(sorted(map(self.class_, classes)), separators=(",", ":"))
        return self._number("palette", text)

    def names(self, table: str) -> dict[int, str]:
        """Read all names of a table by their numbers."""
        return dict(rows_of(self._connection, table, "id, name"))

    def save(self) -> None:
        """Write the new images."""
        if self._images:
            insert(self._connection, "image", self._images)
            self._images = []

    def _number(self, table: str, name: str) -> int:
        number = self._known.get((table, name)) or self._find(table, name)
        if number is None:
            number = self._newest(table) + 1
            insert(self._connection, table, [(number, name)])
        self._known[table, name] = number
        return number

    def _find(self, table: str, name: str) -> int | None:
        if "\0" in name:
            raise InputError(f"{table} {name!r} holds a NUL; rename it")
        column = "classes" if table == "palette" else "name"
        query = f"SELECT id FROM {table} WHERE {column}=CAST(? AS TEXT)"
        row = self._connection.execute(query, (encoded(name),)).fetchone()
        return None if row is None else int(row[0])

    def _newest(self, table: str) -> int:
        newest = self._connection.execute(f"SELECT max(id) FROM {table}").fetchone()[0]
        return int(newest or 0)


def person(name: str) -> str:
    """Check the name of a person, without the blanks around it.

    >>> person(" Ana ")
    'Ana'
    """
    name = " ".join(name.split())
    check_text("the reviewer's name", name)
    if not name or len(name) > LONGEST:
        raise InputError(
            f"the reviewer's name must have 1 to {LONGEST} characters; use --name NAME"
        )
    return name


def encoded(name: str) -> bytes:
    """Encode a name; those of files that are not UTF-8 keep their bytes."""
    return name.encode("utf-8", "surrogateescape")


def palettes(connection: sqlite3.Connection) -> dict[int, frozenset[int]]:
    """Read all sets of classes that were shown together."""
    return {number: _classes(text) for number, text in rows_of(connection, "palette")}


def palette(connection: sqlite3.Connection, number: int) -> frozenset[int]:
    """Read one set of classes."""
    row = connection.execute("SELECT classes FROM palette WHERE id=?", (number,)).fetchone()
    if row is None:
        raise SumError("the table palette has changed")
    return _classes(row[0])


def _classes(text: str) -> frozenset[int]:
    try:
        return frozenset(json.loads(text))
    except (TypeError, ValueError):
        raise SumError("the table palette has changed") from None
