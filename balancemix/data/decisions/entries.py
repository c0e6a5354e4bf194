"""What was written to a store, in its order: every answer, every settled image, every undo."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from balancemix.data.decisions import names
from balancemix.data.decisions.answers import ANSWER, WHOLE, Label
from balancemix.data.decisions.logs import Row
from balancemix.data.decisions.names import encoded

if TYPE_CHECKING:
    from balancemix.data.decisions.store import Store

_DECISIONS = """SELECT d.seq, d.client, r.name, i.name, c.name, d.verdict, d.undoes, d.mode,
    d.batch, d.suggested, d.p, d.probe, d.width, d.ms, d.at FROM decision AS d
    JOIN reviewer AS r ON r.id=d.reviewer JOIN image AS i ON i.id=d.image
    JOIN class AS c ON c.id=d.class WHERE d.seq>? ORDER BY d.seq"""
_SETTLED = """SELECT s.after, s.seq, s.client, r.name, i.name, s.undoes, s.mode, s.sample,
    s.shown, s.ms, s.at FROM settled AS s
    JOIN reviewer AS r ON r.id=s.reviewer JOIN image AS i ON i.id=s.image
    WHERE s.seq>? ORDER BY s.seq"""


class Written(NamedTuple):
    """A row of the store. `class_` is None where a whole image is settled, or that is undone.

    `number` and `undoes` count the answers, or the settled images. `covers` are the classes about
    which a settled image says something.
    """

    number: int
    client: str
    reviewer: str
    image: str
    class_: str | None
    verdict: str  # also "undone" and "settled"
    undoes: int | None
    mode: str
    batch: str | None = None
    suggested: int | None = None
    p: float | None = None
    probe: bool = False
    width: int | None = None
    ms: int | None = None
    at: str = ""
    sample: int | None = None
    covers: frozenset[str] = frozenset()


def written_since(self: Store, decisions: int = 0, settled: int = 0) -> list[Written]:
    """List what was written after so many answers and settled images, oldest first."""
    with self._reading():
        run = self._connection.execute
        singles = [((row[0], 0, 0), _single(row)) for row in run(_DECISIONS, (decisions,))]
        rows = run(_SETTLED, (settled,)).fetchall()
        covers = _covers(self, {row[8] for row in rows})
        wholes = [((row[0], 1, row[1]), _whole(row, covers)) for row in rows]
        return [row for _, row in heapq.merge(singles, wholes, key=lambda each: each[0])]


def _single(row: Row) -> Written:
    return Written._make((*row[:11], bool(row[11]), *row[12:], None, frozenset()))


def _whole(row: Row, covers: dict[int, frozenset[str]]) -> Written:
    _, number, client, reviewer, image, undoes, mode, sample, shown, ms, at = row
    verdict = "settled" if undoes is None else "undone"
    more = {"ms": ms, "at": at, "sample": sample, "covers": covers[shown]}
    return Written(number, client, reviewer, image, None, verdict, undoes, mode, **more)


def _covers(self: Store, palettes: set[int]) -> dict[int, frozenset[str]]:
    """Read the names of the classes that were shown together."""
    if not palettes:
        return {}
    class_name = dict(self._connection.execute("SELECT id, name FROM class"))
    return {
        number: frozenset(class_name[k] for k in names.palette(self._connection, number))
        for number in palettes
    }


def states_of(self: Store, images: Collection[str]) -> list[Label]:
    """List the state of every label of some images that somebody answered about."""
    with self._reading():
        run = self._connection.execute
        class_name = dict(run("SELECT id, name FROM class"))
        self._palettes = {}
        found: list[Label] = []
        for name in images:
            query = "SELECT id FROM image WHERE name=CAST(? AS TEXT)"
            row = run(query, (encoded(name),)).fetchone()
            if row is None:
                continue
            image = row[0]
            decisions = run(f"SELECT {ANSWER} FROM decision WHERE image=? ORDER BY seq", (image,))
            answers = decisions.fetchall()
            whole = run(f"SELECT {WHOLE} FROM settled WHERE image=? ORDER BY seq", (image,))
            settled = {image: whole.fetchall()}
            for each in settled[image]:
                if each[-1] not in self._palettes:
                    self._palettes[each[-1]] = names.palette(self._connection, each[-1])
            found += self._labels(image, answers, settled, {image: name}, class_name)
        return found
