"""What is in a store, counted for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from balancemix.data.decisions.logs import rows_of
from balancemix.data.decisions.samples import Sample

if TYPE_CHECKING:
    from balancemix.data.decisions.store import Store


@dataclass(frozen=True)
class Person:
    """How many single labels and whole images a person answered about, and when last."""

    name: str
    labels: int
    images: int
    last: str


@dataclass(frozen=True)
class Overview:
    """Labels by their state, how many are verified, people, and samples with their answers.

    A sample comes with the number of units that were drawn, and of those that are answered.
    """

    states: dict[str, int]
    verified: int
    people: list[Person]
    samples: list[tuple[Sample, int, int]]


def overview(self: Store, classes: Sequence[str]) -> Overview:
    """Count what is in the store; `classes` are those of the data."""
    states, verified = Counter[str](), 0
    for label in self.each_state():
        states[label.state.state] += 1
        verified += label.state.verified
    samples = [
        (each, len(self.units(each.id)), len(self.answers(each.id, classes)))
        for each in self.samples()
    ]
    return Overview(dict(states), verified, _people(self), samples)


def _people(self: Store) -> list[Person]:
    with self._reading() as ids:
        names, connection = ids.names("reviewer"), self._connection
        settled = list(rows_of(connection, "settled", "reviewer, seq, undoes, at, client"))
        undone = {row[2] for row in settled}
        wholes = [row for row in settled if row[2] is None and row[1] not in undone]
        images, last = Counter(row[0] for row in wholes), dict[int, str]()
        for who, _, _, at, _ in wholes:
            last[who] = max(at, last.get(who, ""))
        clients = {row[4] for row in settled}
        labels = Counter[int]()
        undone = {row[0] for row in rows_of(connection, "decision", "undoes")}
        columns = "reviewer, seq, undoes, at, batch"
        for who, seq, undoes, at, batch in rows_of(connection, "decision", columns):
            if undoes is None and seq not in undone and batch not in clients:
                labels[who] += 1
                last[who] = max(at, last.get(who, ""))
        return [Person(names[i], labels[i], images[i], last[i]) for i in sorted(last)]
