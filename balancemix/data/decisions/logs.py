"""Tables that only grow, with the number of their rows and the sum of their checksums in `meta`.

SQLite notices a damaged page only if its structure breaks; the sums notice every other one.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from balancemix.data.decisions.schema import SCHEMA

Row = tuple[Any, ...]


class SumError(Exception):
    """A table does not hold the rows that were written to it."""


class Rows:
    """New rows of a table in which each has a number and the `client` that makes it unique."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        self._connection, self._table = connection, table
        newest = connection.execute(f"SELECT max(seq) FROM {table}").fetchone()[0]
        self.newest: int = newest or 0
        self._rows: list[Row] = []
        self._new: dict[str, int] = {}

    def known(self, client: str) -> int | None:
        """Look up the number of a row by its client."""
        if client in self._new:
            return self._new[client]
        query = f"SELECT seq FROM {self._table} WHERE client=CAST(? AS TEXT)"
        raw = client.encode("utf-8", "surrogateescape")
        row = self._connection.execute(query, (raw,)).fetchone()
        return None if row is None else int(row[0])

    def add(self, client: str, row: Row) -> int:
        """Add a row behind its number and client, and return the number."""
        self.newest += 1
        self._rows.append((self.newest, client, *row))
        self._new[client] = self.newest
        return self.newest

    def save(self) -> list[Row]:
        """Write the rows, and return them."""
        insert(self._connection, self._table, self._rows)
        return self._rows


def insert(connection: sqlite3.Connection, table: str, rows: Iterable[Sequence[Any]]) -> int:
    """Add rows, each with all columns of the table, and return how many there were."""
    kinds = [_KINDS[kind] for _, kind in columns(table)]
    count, total = _sum(connection, table)
    before = count
    marks = ", ".join("CAST(? AS TEXT)" if kind is str else "?" for kind in kinds)

    def parameters() -> Iterator[list[Any]]:
        nonlocal count, total
        for row in rows:
            values = tuple(
                None
                if value is None or value != value  # NaN, which SQLite does not keep
                else value
                if type(value) is kind
                else kind(value)
                for kind, value in zip(kinds, row, strict=True)
            )
            count, total = count + 1, total + checksum(values)
            yield [
                value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
                for value in values
            ]

    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", parameters())
    connection.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value=excluded.value",
        (f"rows {table}", f"{count} {total}"),
    )
    return count - before


def rows_of(
    connection: sqlite3.Connection, table: str, names: str = "*", order: str = ""
) -> Iterator[Row]:
    """Read a table after checking that it is whole; SumError if it is not.

    Neither pass uses an index, which has its own pages. Read several tables in one transaction.
    """
    check(connection, table)
    rest = f" ORDER BY {order}" if order else ""
    indexed = "" if _without_rowid(table) else " NOT INDEXED"
    yield from connection.execute(f"SELECT {names} FROM {table}{indexed}{rest}")


def check(connection: sqlite3.Connection, table: str) -> None:
    """Compare the rows of a table with what was written to it."""
    count = total = 0
    indexed = "" if _without_rowid(table) else " NOT INDEXED"
    for row in connection.execute(f"SELECT * FROM {table}{indexed}"):
        count, total = count + 1, total + checksum(row)
    if (count, total) != _sum(connection, table):
        raise SumError(f"the table {table} has changed")


def checksum(row: Row) -> int:
    """Number the content of a row.

    >>> checksum((1, "cat")) == checksum((1, "cau"))
    False
    """
    return zlib.crc32(ascii(row).encode())


@cache
def columns(table: str) -> list[tuple[str, str]]:
    """List the columns of a table and their types.

    >>> columns("class")
    [('id', 'INTEGER'), ('name', 'TEXT')]
    """
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(SCHEMA)
        info = connection.execute(f"PRAGMA table_info({table})").fetchall()
    finally:
        connection.close()
    return [(name, kind) for _, name, kind, *_ in info]


@cache
def _without_rowid(table: str) -> bool:
    start = SCHEMA.index(f"CREATE TABLE {table}(")
    return "WITHOUT ROWID" in SCHEMA[start : SCHEMA.index(";", start)]


def _sum(connection: sqlite3.Connection, table: str) -> tuple[int, int]:
    row = connection.execute("SELECT value FROM meta WHERE key=?", (f"rows {table}",)).fetchone()
    if row is None:
        return 0, 0
    try:
        count, total = map(int, row[0].split(" "))
    except (AttributeError, ValueError):
        raise SumError("the table meta has changed") from None
    return count, total


# The types in which SQLite gives values back.
_KINDS: dict[str, type[int] | type[str] | type[float]] = {
    "INTEGER": int,
    "TEXT": str,
    "REAL": float,
}


def now() -> str:
    """Write the time in a form that sorts.

    >>> now()[10], now()[-1]
    ('T', 'Z')
    """
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
