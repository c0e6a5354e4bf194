"""Desk: what the page works on, in one object. All calls come from one thread."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from balancemix.auditing.snapshot import Judge, changes_since
from balancemix.data.decisions.answers import Decision, Settled
from balancemix.data.decisions.states import LabelState
from balancemix.data.decisions.store import Store
from balancemix.data.decisions.undoing import Undo
from balancemix.data.source import Source
from balancemix.errors import InputError
from balancemix.review.leases import Leases
from balancemix.review.listed import Bools, Ints, Listed
from balancemix.review.log import Entry, Log
from balancemix.review.order import EVERY, picture_order
from balancemix.review.pace import recent_pace
from balancemix.review.probes import probe_order
from balancemix.review.sampling import Sampling

STATES = ("open", "unsure", "decided", "disputed", "resolved")
OPEN, UNSURE, DECIDED, DISPUTED, RESOLVED = range(len(STATES))
BLANK = LabelState("open", None, False, 0)
MANY = 2000  # pictures of which the states are read at once rather than one by one
QUESTION = "Is “{class}” in this picture?"


class Pictures(Protocol):
    """What shows the rows of the data."""

    def has(self, row: int) -> bool:
        """Tell whether a row has a picture, which may be damaged."""

    def size(self, row: int) -> tuple[int, int] | None:
        """Return width and height; None where nothing can be shown."""

    def version(self, row: int) -> str:
        """Return a word that changes when the picture does."""

    def jpeg(self, row: int, width: int) -> bytes:
        """Return the picture, at most so wide."""

    def start(self) -> None:
        """Get ready to return the first picture."""

    def close(self) -> None:
        """Let go of what was needed for it."""


@dataclass(frozen=True)
class Settings:
    """How the page asks, and the commands that it names."""

    data: str
    question: str = QUESTION
    blind: bool = False
    overlap: float = 0.05  # share of the questions that two people are asked
    stop: float = 0.1  # share of answers that change something, below which it is time to stop
    commands: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Asking:
    """What a tab was asked: how many questions since the last probe, and the probes by row."""

    since: int = 0
    probes: dict[int, int] = field(default_factory=dict)


class Desk:
    """The data, the store, and what follows from both.

    source     as in the files, decisions not applied
    store      open for writing; nobody else writes through it
    listed     the findings of the newest audit, as arrays
    status     F numbers: the place of each finding's state in STATES
    states     by row and column, of the labels that somebody answered about
    log        every answer in its order
    sampling   the random sample of whole pictures
    """

    def __init__(
        self,
        source: Source,
        store: Store,
        settings: Settings,
        pictures: Pictures | None = None,
        leases: Leases | None = None,
    ) -> None:
        if len(set(source.names)) < len(source.names):
            raise InputError(
                f"{source.path}: rows share a name, by which answers are kept; name each one "
                "differently"
            )
        self.source, self.store, self.settings, self.pictures = source, store, settings, pictures
        self.leases = leases or Leases()
        self.place = {name: i for i, name in enumerate(source.names)}
        self.column = {name: k for k, name in enumerate(source.classes)}
        self.store_id = store.id()
        self.asking: dict[str, Asking] = {}  # by tab
        self.tabs: dict[str, str] = {}  # the tab of each answer since the server started, by client
        self._version = store.version()
        self._load()
        self.sampling = Sampling(self)

    def _load(self) -> None:
        """Read all of the store."""
        snapshot = self.store.newest_snapshot()
        self.snapshot = snapshot
        self.judge = Judge.read(snapshot.judge if snapshot else "")
        findings = snapshot.findings if snapshot else []
        labels = self.source.given.numpy()
        self.listed = Listed.of(findings, self.place, self.column, labels, self.judge.measured)
        self.changed = (
            None if snapshot is None else changes_since(snapshot, self.source, self.store)
        )
        self.log = Log(self.place, self.column)
        self.log.add(self.store.written_since())
        self.states: dict[tuple[int, int], LabelState] = {}
        for image, class_, state, _ in self.store.each_state():
            key = self.place.get(image, -1), self.column.get(class_, -1)
            if min(key) >= 0:
                self.states[key] = state
        self.status: npt.NDArray[np.int8] = np.zeros(len(self.listed), dtype=np.int8)
        self.index = {key: i for i, key in enumerate(self._labels())}
        self._errors: npt.NDArray[np.int8] = np.full(len(self.listed), -1, dtype=np.int8)
        for key, state in self.states.items():
            if key in self.index:
                self._note(self.index[key], state)
        self.people = self.store.people()
        self._answered: dict[str, Bools] = {}
        self._shared: Bools | None = None  # worked out when there is a second person
        self.asking.clear()
        self.probes = probe_order(len(self.listed), int(_share(self.store_id) * 2**32))
        self.sort()

    def sort(self) -> None:
        """Let the order be worked out again, by what the answers say so far."""
        self._sorted_at = len(self.log)
        self._orders: dict[tuple[int | None, str | None], Ints] = {}

    def order(self, column: int | None = None, problem: str | None = None) -> Ints:
        """List the rows with findings of a class and a problem in the order in which to ask.

        Those with open ones come first; what is opened again by an undo is among the others.
        """
        if (column, problem) not in self._orders:
            chosen = self.listed.mask(column, problem)
            fresh = chosen & ((self.status == OPEN) | (self.status == UNSURE))
            given, errors = (self.source.given == 1).sum(0).tolist(), self.errors()
            first = picture_order(self.listed, fresh, errors, given, recent_pace(self.log))
            rest = np.setdiff1d(self.listed.row[chosen], first)
            self._orders[column, problem] = np.array([*first, *rest], dtype=np.int64)
        return self._orders[column, problem]

    def refresh(self) -> None:
        """Take in what another process wrote to the store, if one did."""
        version = self.store.version()
        if version == self._version:
            return
        self._version = version
        newest = self.store.newest_snapshot_id()
        if newest != (self.snapshot.id if self.snapshot else None):
            self._load()
        else:
            self._catch_up()

    def reload(self) -> None:
        """Take in an audit that this process has just kept."""
        self._load()

    # Writing

    def save(
        self, answers: Sequence[Decision | Undo], passed: Sequence[tuple[str, str]], name: str
    ) -> list[int]:
        """Save answers, undos and what was passed over, and keep in step with them."""
        counts = self.store.save(answers, passed, name)
        self._catch_up()
        return counts

    def settle(self, settled: Settled) -> None:
        """Save a whole picture, and keep in step with it."""
        self.store.settle([settled])
        self._catch_up()

    def _catch_up(self) -> None:
        new = self.log.add(self.store.written_since(self.log.decisions, self.log.settled))
        self._take_in(new)
        if len(self.log) - self._sorted_at >= EVERY:
            self.sort()

    def _take_in(self, entries: Sequence[Entry]) -> None:
        images = {entry.image: entry.row for entry in entries if entry.row >= 0}
        if not images:
            return
        if len(images) > MANY:
            self._load()
            return
        for row in images.values():
            for column in range(len(self.column)):
                self.states.pop((row, column), None)
        for image, class_, state, _ in self.store.states_of(list(images)):
            if class_ in self.column:
                self.states[images[image], self.column[class_]] = state
        for row in images.values():
            for i in self.listed.of_row(row):
                self._note(i, self.state(row, int(self.listed.column[i])))
                for name, answered in self._answered.items():
                    answered[i] = self._has_answered(name, i)
        for entry in entries:
            if entry.reviewer not in self.people:
                self.people.append(entry.reviewer)

    def _note(self, i: int, state: LabelState) -> None:
        """Keep what holds for a finding."""
        self.status[i] = STATES.index(state.state)
        is_there, suggested = state.verdict == "present", bool(self.listed.suggested[i])
        self._errors[i] = -1 if state.verdict is None else int(is_there == suggested)

    # What follows

    def spelled(self, name: str) -> str:
        """Write a name as the store does, which takes Ana and ana for the same."""
        small = name.encode().lower()
        return next((each for each in self.people if each.encode().lower() == small), name)

    def state(self, row: int, column: int) -> LabelState:
        """Say what holds for a label."""
        return self.states.get((row, column), BLANK)

    def answered_by(self, name: str) -> Bools:
        """Mark the findings that a person has an opinion on."""
        if name not in self._answered:
            marks: Bools = np.zeros(len(self.listed), dtype=np.bool_)
            for entry in self.log.live():
                if entry.reviewer == name:
                    marks[self._findings_of(entry)] = True
            self._answered[name] = marks
        return self._answered[name]

    def shared(self) -> Bools:
        """Mark the findings that two people are asked about; none before there is a second one."""
        if len(self.people) < 2:
            return np.zeros(len(self.listed), dtype=np.bool_)
        return self._drawn()

    def errors(self) -> npt.NDArray[np.int8]:
        """Say what the answers make of the findings: 1 an error, 0 none, −1 not known."""
        return self._errors.copy()

    def is_asked(self, name: str | None) -> Bools:
        """Mark the findings to ask a person about.

        Open ones; those about which only others are unsure; and of those that others decided, the
        ones that two people are asked about.
        """
        is_open = self.status == OPEN
        if name is None:
            return np.asarray(is_open)
        fresh = ~self.answered_by(name)
        second = (self.status == UNSURE) | ((self.status == DECIDED) & self.shared())
        asked: Bools = (is_open & fresh) | (second & fresh)
        return asked

    def _findings_of(self, entry: Entry) -> list[int]:
        """Find the findings that an answer is about."""
        if entry.column is not None:
            found = self.index.get((entry.row, entry.column))
            return [] if found is None else [found]
        classes = self.source.classes
        places = self.listed.of_row(entry.row)
        return [i for i in places if classes[self.listed.column[i]] in entry.covers]

    def _labels(self) -> Iterable[tuple[int, int]]:
        return zip(self.listed.row.tolist(), self.listed.column.tolist(), strict=True)

    def _has_answered(self, name: str, i: int) -> bool:
        row, column = int(self.listed.row[i]), int(self.listed.column[i])
        return self.log.opinion(name, row, column) is not None

    def _drawn(self) -> Bools:
        if self._shared is None:
            names, classes, salt = self.source.names, self.source.classes, self.store_id
            shares = [_share(f"{salt} {names[i]}\n{classes[k]}") for i, k in self._labels()]
            self._shared = np.array(shares) < self.settings.overlap
        return self._shared


def _share(text: str) -> float:
    """Turn a text into a number from 0 to 1 that looks random."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
