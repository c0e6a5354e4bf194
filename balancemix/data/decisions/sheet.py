"""Write the answers of a store as a CSV for people and other programs."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from balancemix.data.decisions.filled import FULL
from balancemix.data.decisions.logs import Row, rows_of
from balancemix.data.decisions.names import Names, palettes
from balancemix.data.source import Source
from balancemix.files import write_sheet

if TYPE_CHECKING:
    from balancemix.data.decisions.store import Store

HEADER = ("image", "class", "given", "verdict", "reviewer", "time", "mode", "width")
_WORDS = {1: "present", 0: "absent", -1: "unknown"}
_DECISION = "seq, image, class, verdict, reviewer, at, mode, width, whole, undoes, batch"


def write_answers(self: Store, out: Path, source: Source) -> int:
    """Write all answers that are not undone, oldest first, and return how many there are.

    `given` is what the file of the data says now. A settled image has a row for each of its
    classes.
    """
    count = 0

    def counted(rows: Iterator[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
        nonlocal count
        for row in rows:
            count += 1
            yield row

    with self._reading():
        write_sheet(out, HEADER, counted(_lines(self, source)))
    return count


def _lines(self: Store, source: Source) -> Iterator[tuple[str, ...]]:
    connection = self._connection
    ids = Names(connection)
    image, class_, reviewer = (ids.names(table) for table in ("image", "class", "reviewer"))
    given = source.as_in_file.given
    place = {name: i for i, name in enumerate(source.names)}
    column = {name: k for k, name in enumerate(source.classes)}
    for i, k, verdict, who, at, mode, width, whole in _answers(self):
        row, col = place.get(image[i]), column.get(class_[k])
        known = "" if row is None or col is None else _WORDS[int(given[row, col])]
        shown = FULL if whole else "" if width is None else str(width)
        yield image[i], class_[k], known, verdict, reviewer[who], at, mode, shown


def _answers(self: Store) -> Iterator[Row]:
    """List the answers in their order; those about whole images class by class."""
    connection = self._connection
    undone = {row[0] for row in rows_of(connection, "decision", "undoes")}
    wholes = list(rows_of(connection, "settled", order="seq"))
    gone = {row[3] for row in wholes}
    kept = [row for row in wholes if row[3] is None and row[0] not in gone]
    clients = {row[1]: set[int]() for row in kept}
    if clients:
        for class_, batch in rows_of(connection, "decision", "class, batch"):
            if batch in clients:
                clients[batch].add(class_)
    shown = palettes(connection)
    decisions = (
        ((row[0], 0, 0), tuple(row[1:9]))
        for row in rows_of(connection, "decision", _DECISION, "seq")
        if row[3] != "undone" and row[0] not in undone
    )
    implied = (
        ((after, seq, class_), (image, class_, "absent", who, at, mode, None, 0))
        for seq, client, after, _, image, who, mode, _, palette, _, at in kept
        for class_ in sorted(shown[palette] - clients[client])
    )
    for _, row in heapq.merge(decisions, implied, key=lambda each: each[0]):
        yield row
