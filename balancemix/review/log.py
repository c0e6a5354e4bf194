"""Log: every answer in its order, by the rows and classes of the data; what each person thinks."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from balancemix.data.decisions.entries import Written

RECENT = 50  # answers by which a person's time is estimated


class Entry(NamedTuple):
    """An answer, a settled picture (`column` is None), or an undo of one.

    `seq` counts the entries from 1; `undoes` is the `seq` of what is taken back. `row` or `column`
    is −1 where the data no longer has the picture or the class.
    """

    seq: int
    client: str
    reviewer: str
    image: str
    class_: str | None
    row: int
    column: int | None
    verdict: str  # present, absent, unsure, undone, or settled
    undoes: int | None
    mode: str
    batch: str | None
    probe: bool
    p: float | None
    suggested: int | None
    width: int | None
    ms: int | None
    at: str
    sample: int | None
    covers: frozenset[str]  # classes about which a settled picture says something


class Log:
    """The entries of a store; `undone` holds the `seq` of those that were taken back."""

    def __init__(self, place: Mapping[str, int], column: Mapping[str, int]) -> None:
        self._place, self._column, self._classes = place, column, list(column)
        self.entries: list[Entry] = []
        self.undone: set[int] = set()
        self.decisions = self.settled = 0  # how many rows of the two tables are in it
        self._seq: dict[tuple[bool, int], int] = {}
        self.times: dict[str, deque[int]] = {}  # ms of each person's last answers about a label
        self._by_client: dict[str, int] = {}
        self._by_label: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._by_row: dict[int, list[int]] = defaultdict(list)  # settled pictures

    def __len__(self) -> int:
        return len(self.entries)

    def add(self, rows: Iterable[Written]) -> list[Entry]:
        """Append what was written to the store since, and return it."""
        start = len(self.entries)
        for row in rows:
            self._append(row)
        return self.entries[start:]

    def by_client(self, client: str) -> Entry | None:
        """Find an entry by what makes it unique."""
        seq = self._by_client.get(client)
        return None if seq is None else self.entries[seq - 1]

    def about(self, row: int, column: int) -> Iterator[Entry]:
        """List the answers about a label that are not undone, newest first.

        A settled picture is among them if it says that the label is absent without naming it.
        """
        found = [self.entries[seq - 1] for seq in self._by_label.get((row, column), ())]
        named = {entry.batch for entry in found}
        wholes = (self.entries[seq - 1] for seq in self._by_row.get(row, ()))
        found += [e for e in wholes if e.client not in named and self._classes[column] in e.covers]
        live = (entry for entry in found if entry.seq not in self.undone)
        return iter(sorted(live, reverse=True, key=lambda entry: entry.seq))

    def opinion(self, name: str, row: int, column: int) -> Entry | None:
        """Find the newest answer of a person about a label."""
        return next((e for e in self.about(row, column) if e.reviewer == name), None)

    def settled_of(self, row: int) -> Iterator[Entry]:
        """List the times that a picture was settled and this was not undone, oldest first."""
        entries = (self.entries[seq - 1] for seq in self._by_row.get(row, ()))
        return (entry for entry in entries if entry.seq not in self.undone)

    def settled_rows(self) -> set[int]:
        """List the pictures that somebody settled."""
        return {row for row in self._by_row if next(self.settled_of(row), None) is not None}

    def live(self) -> Iterator[Entry]:
        """Go through the answers and settled pictures that are not undone, oldest first."""
        return filter(self.is_live, self.entries)

    def is_live(self, entry: Entry) -> bool:
        """Tell whether an entry is an answer or a settled picture that is not undone."""
        return entry.verdict != "undone" and entry.seq not in self.undone

    def _append(self, row: Written) -> None:
        whole, seq = row.class_ is None, len(self.entries) + 1
        place = self._place.get(row.image, -1)
        column = None if row.class_ is None else self._column.get(row.class_, -1)
        self._seq[whole, row.number] = seq
        undoes = None if row.undoes is None else self._seq[whole, row.undoes]
        entry = Entry(
            *(seq, row.client, row.reviewer, row.image, row.class_, place, column, row.verdict),
            *(undoes, row.mode, row.batch, row.probe, row.p, row.suggested, row.width, row.ms),
            *(row.at, row.sample, row.covers),
        )
        self.entries.append(entry)
        self._by_client[row.client] = seq
        if column is not None and row.ms is not None:
            self.times.setdefault(row.reviewer, deque(maxlen=RECENT)).append(row.ms)
        if undoes is not None:
            self.undone.add(undoes)
        elif column is None:
            self._by_row[place].append(seq)
        else:
            self._by_label[place, column].append(seq)
        if whole:
            self.settled = max(self.settled, row.number)
        else:
            self.decisions = max(self.decisions, row.number)
