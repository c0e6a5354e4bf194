"""Take answers back: an undo is another row, and touches nobody else's answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

from balancemix.data.decisions.logs import Rows, now
from balancemix.data.decisions.names import Names

if TYPE_CHECKING:
    from balancemix.data.decisions.store import Store

# Answers of a person that are not undone, by their client or batch.
_MINE = """SELECT seq, image, class, mode FROM decision AS mine
    WHERE (client=:client OR batch=:client) AND reviewer=:person AND verdict<>'undone'
    AND NOT EXISTS (SELECT 1 FROM decision AS other WHERE other.image=mine.image
                    AND other.class=mine.class AND other.undoes=mine.seq) ORDER BY seq"""
_MY_WHOLE = """SELECT seq, image, mode, sample, shown FROM settled AS mine
    WHERE client=:client AND reviewer=:person AND undoes IS NULL
    AND NOT EXISTS (SELECT 1 FROM settled AS other WHERE other.image=mine.image
                    AND other.undoes=mine.seq)"""


@dataclass(frozen=True)
class Undo:
    """An answer, a batch of them or a settled image to take back, by its `client` or batch."""

    undoes: str
    reviewer: str
    client: str = field(default_factory=lambda: uuid4().hex)


def undo(self: Store, client: str, reviewer: str, *, by: str | None = None) -> int:
    """Take back an answer, a batch of them or a settled image, named by its `client` or batch.

    Only one's own: the answers of others stay. `by` is the `client` of the undo itself.
    Returns how many answers were taken back: none if they were before.
    """
    with self._writing() as ids:
        return take_back(self, ids, Undo(client, reviewer, by or uuid4().hex))


def take_back(self: Store, ids: Names, undo: Undo) -> int:
    """Take back inside a transaction."""
    person, at, run = ids.reviewer(undo.reviewer), now(), self._connection.execute
    by, place = undo.client, {"person": ids.reviewer(undo.reviewer), "client": undo.undoes}
    rows = run(_MINE, place).fetchall()
    whole = run(_MY_WHOLE, place).fetchall()
    undone, wholes = (Rows(self._connection, each) for each in ("decision", "settled"))
    if undone.known(by) is not None or wholes.known(by) is not None:
        return 0
    for i, (seq, image, class_, mode) in enumerate(rows):
        name = f"{by}:{i}" if i else by
        blank = (None, None, None, None, 0, None, 0, None)
        undone.add(name, (person, image, class_, "undone", seq, mode, *blank, at))
    for seq, image, mode, sample, shown in whole:
        row = (undone.newest, seq, image, person, mode, sample, shown, None, at)
        wholes.add(by, row)
    undone.save()
    wholes.save()
    self._refresh({row[1] for row in (*rows, *whole)})
    return len(rows) + len(whole)
