"""What the review page reads and writes besides answers: names, rules, what a sweep passed over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from balancemix.data.decisions.logs import insert, now
from balancemix.data.decisions.names import Names, encoded
from balancemix.errors import InputError

if TYPE_CHECKING:
    from balancemix.data.decisions.store import Store


class Rule(NamedTuple):
    """What people agreed a class means; the newest one holds."""

    class_: str
    text: str
    reviewer: str
    at: str


def store_id(self: Store) -> str:
    """Read the number that tells this store from every other one."""
    with self._reading():
        row = self._connection.execute("SELECT value FROM meta WHERE key='store'").fetchone()
        if row is None:
            raise InputError(f"{self.file}: has no number; restore it from a backup")
        return str(row[0])


def version(self: Store) -> int:
    """Return a number that changes when another process writes to the store."""
    with self._reading():
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])


def people(self: Store) -> list[str]:
    """List everybody who ever answered, oldest first."""
    with self._reading():
        return [row[0] for row in self._connection.execute("SELECT name FROM reviewer ORDER BY id")]


def knows_image(self: Store, name: str) -> bool:
    """Tell whether an image was ever judged or answered about."""
    with self._reading():
        query = "SELECT 1 FROM image WHERE name=CAST(? AS TEXT)"
        return self._connection.execute(query, (encoded(name),)).fetchone() is not None


def new_names(self: Store, names: Iterable[str]) -> int:
    """Count the images that were never judged or answered about."""
    with self._reading() as ids:
        known = set(ids.names("image").values())
        return sum(name not in known for name in names)


def rules(self: Store) -> list[Rule]:
    """List all rules, oldest first."""
    with self._reading():
        query = """SELECT c.name, rule.text, r.name, rule.at FROM rule
            JOIN class AS c ON c.id=rule.class JOIN reviewer AS r ON r.id=rule.reviewer
            ORDER BY rule.seq"""
        return [Rule(*row) for row in self._connection.execute(query)]


def add_rule(self: Store, class_: str, text: str, reviewer: str) -> None:
    """Save what a class means, unless that is what holds already."""
    with self._writing() as ids:
        run, number = self._connection.execute, ids.class_(class_)
        query = "SELECT text FROM rule WHERE class=? ORDER BY seq DESC LIMIT 1"
        holds = run(query, (number,)).fetchone()
        if (holds[0] if holds else "") != text:
            newest = run("SELECT max(seq) FROM rule").fetchone()[0] or 0
            row = (newest + 1, number, text, ids.reviewer(reviewer), now())
            insert(self._connection, "rule", [row])


def passed(self: Store) -> set[tuple[str, str, str]]:
    """List what was not clicked in sweeps of wrong labels: reviewer, image and class."""
    with self._reading():
        query = """SELECT r.name, i.name, c.name FROM passed AS p
            JOIN reviewer AS r ON r.id=p.reviewer JOIN image AS i ON i.id=p.image
            JOIN class AS c ON c.id=p.class"""
        return set(self._connection.execute(query))


def add_passed(self: Store, ids: Names, reviewer: str, labels: Iterable[tuple[str, str]]) -> None:
    """Save that a person passed over labels, inside a transaction."""
    person, at, run = ids.reviewer(reviewer), now(), self._connection.execute
    numbered = {(person, ids.image(image), ids.class_(class_)) for image, class_ in labels}
    ids.save()
    query = "SELECT 1 FROM passed WHERE reviewer=? AND image=? AND class=?"
    new = [(*row, at) for row in sorted(numbered) if run(query, row).fetchone() is None]
    insert(self._connection, "passed", new)
