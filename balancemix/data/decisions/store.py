"""The store of decisions: every answer a row that is never changed, each saved exactly once."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, Self, cast

from balancemix.data.decisions import (
    entries,
    names,
    overview,
    page,
    reading,
    sheet,
    snapshots,
    undoing,
)
from balancemix.data.decisions import samples as sampling
from balancemix.data.decisions.answers import (
    ANSWER,
    IMAGE,
    WHOLE,
    WHOLE_IMAGE,
    Decision,
    Label,
    Settled,
    answers_of,
    row_of,
    whole_row_of,
)
from balancemix.data.decisions.connection import FILE, connect, damaged, explained
from balancemix.data.decisions.logs import Rows, SumError, rows_of
from balancemix.data.decisions.names import Names
from balancemix.data.decisions.states import LabelState, states_of_image
from balancemix.data.decisions.undoing import Undo, take_back
from balancemix.errors import InputError


class Store:
    """What people decided about a data set, in one file beside it.

    Each method is one transaction: it is saved when the method returns, or not at all.
    """

    def __init__(self, file: Path, connection: sqlite3.Connection) -> None:
        self.file, self._connection = file, connection

    @classmethod
    def open(cls, folder: Path, *, create: bool = False, write: bool = True) -> Self:
        """Open the store in a folder such as `photos.balancemix`, or make it."""
        file = folder / FILE
        if not create and not file.is_file():
            raise InputError(f"{file}: not found; nobody has decided anything yet")
        return cls(file, connect(file, create=create, write=write))

    def close(self) -> None:
        """Close the file."""
        with explained(self.file):
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Answers

    def record(self, decisions: Iterable[Decision]) -> list[int]:
        """Save answers, those already known by their `client` not again; returns their numbers."""
        with self._writing() as ids:
            return [seq for seq, _ in self._record(ids, decisions)]

    def settle(self, images: Iterable[Settled]) -> list[int]:
        """Save what is in whole images, those already known by their `client` not again."""
        with self._writing() as ids:
            seqs = []
            rows, wholes = (Rows(self._connection, each) for each in ("decision", "settled"))
            for each in images:
                seq = wholes.known(each.client)
                if seq is None:
                    for decision in each.decisions():
                        rows.add(decision.client, row_of(decision, ids))
                    seq = wholes.add(each.client, whole_row_of(each, ids, rows.newest))
                seqs.append(seq)
            ids.save()
            rows.save()
            self._refresh(row[WHOLE_IMAGE] for row in wholes.save())
            return seqs

    def save(
        self,
        answers: Iterable[Decision | Undo],
        passed: Sequence[tuple[str, str]] = (),
        reviewer: str = "",
    ) -> list[int]:
        """Save answers and undos in their order, and what `reviewer` passed over: all or nothing.

        Returns how many answers each has made or taken back: none, if it was known already.
        """
        with self._writing() as ids:
            counts: list[int] = []
            for is_undo, group in groupby(answers, key=lambda each: isinstance(each, Undo)):
                if is_undo:
                    counts += [take_back(self, ids, cast(Undo, each)) for each in group]
                else:
                    decisions = cast(Iterator[Decision], group)
                    counts += [int(new) for _, new in self._record(ids, decisions)]
            if passed:
                page.add_passed(self, ids, reviewer, passed)
            return counts

    def states(self) -> list[Label]:
        """List the state of every label that somebody answered about.

        Labels that are absent only because their image was settled are among them.
        """
        return list(self.each_state())

    def verified(self) -> list[tuple[str, str, bool]]:
        """List the labels that are known to be right: image, class, and whether it is present."""
        return [
            (image, class_, state.verdict == "present")
            for image, class_, state, _ in self.each_state()
            if state.verified
        ]

    def each_state(self) -> Iterator[Label]:
        """Go through `states()` one by one; call nothing else of the store meanwhile."""
        with self._reading() as ids:
            image_name, class_name = ids.names("image"), ids.names("class")
            wholes = self._wholes()
            rows = rows_of(self._connection, "decision", ANSWER, "image, seq")
            seen = set()
            for image, group in groupby(rows, key=lambda row: row[2]):
                seen.add(image)
                yield from self._labels(image, list(group), wholes, image_name, class_name)
            for image in sorted(set(wholes) - seen):
                yield from self._labels(image, [], wholes, image_name, class_name)

    def rebuild(self) -> None:
        """Work out the state of every label again from the answers."""
        with self._writing():
            images = self._connection.execute(
                "SELECT image FROM decision UNION SELECT image FROM settled"
            )
            touched = {image for (image,) in images}
            self._connection.execute("DELETE FROM label_state")
            self._refresh(touched)

    # Tables that people fill in, audits, samples

    take = reading.take
    write_answers = sheet.write_answers
    overview = overview.overview
    add_snapshot = snapshots.add_snapshot
    samples = sampling.samples
    new_sample = sampling.new_sample
    extend = sampling.extend
    units = sampling.units
    answers = sampling.answers

    undo = undoing.undo

    # What the review page asks

    id = page.store_id
    version = page.version
    people = page.people
    rules = page.rules
    add_rule = page.add_rule
    passed = page.passed
    written_since = entries.written_since
    states_of = entries.states_of
    newest_snapshot = snapshots.newest_snapshot
    newest_snapshot_id = snapshots.newest_snapshot_id
    knows_image = page.knows_image
    new_names = page.new_names

    # Inside a transaction

    def _record(self, ids: Names, decisions: Iterable[Decision]) -> list[tuple[int, bool]]:
        """Save answers; returns the number of each, and whether it is new."""
        rows, saved = Rows(self._connection, "decision"), list[tuple[int, bool]]()
        for each in decisions:
            seq = rows.known(each.client)
            saved.append((seq or rows.add(each.client, row_of(each, ids)), seq is None))
        ids.save()
        self._refresh(row[IMAGE] for row in rows.save())
        return saved

    @contextmanager
    def _writing(self) -> Iterator[Names]:
        with self._transaction("BEGIN IMMEDIATE") as ids:
            yield ids

    @contextmanager
    def _reading(self) -> Iterator[Names]:
        with self._transaction("BEGIN") as ids:
            yield ids

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Names]:
        run = self._connection.execute
        with explained(self.file):
            run(begin)
            try:
                yield Names(self._connection)
                run("COMMIT")
            except SumError as error:
                raise damaged(self.file, str(error)) from error
            finally:
                if self._connection.in_transaction:
                    run("ROLLBACK")

    def _refresh(self, images: Iterable[int]) -> None:
        """Work out the cached states of some images again."""
        run = self._connection.execute
        palettes: dict[int, frozenset[int]] = {}
        rows = []
        for image in sorted(set(images)):
            decisions = run(
                f"SELECT {ANSWER} FROM decision WHERE image=? ORDER BY seq", (image,)
            ).fetchall()
            whole = run(f"SELECT {WHOLE} FROM settled WHERE image=? ORDER BY seq", (image,))
            settled = whole.fetchall()
            for row in settled:
                if row[-1] not in palettes:
                    palettes[row[-1]] = names.palette(self._connection, row[-1])
            states, _ = states_of_image(
                answers_of(decisions, settled, palettes), {row[3] for row in decisions}
            )
            rows += [
                (image, class_, each.state, each.verdict, each.verified, each.seq)
                for class_, each in states.items()
            ]
        self._connection.executemany("REPLACE INTO label_state VALUES (?, ?, ?, ?, ?, ?)", rows)

    def _wholes(self) -> dict[int, list[tuple[Any, ...]]]:
        wholes = defaultdict(list)
        for row in rows_of(self._connection, "settled", WHOLE, "seq"):
            wholes[row[4]].append(row)
        self._palettes = names.palettes(self._connection) if wholes else {}
        return wholes

    def _labels(
        self,
        image: int,
        decisions: Sequence[tuple[Any, ...]],
        wholes: dict[int, list[tuple[Any, ...]]],
        image_name: dict[int, str],
        class_name: dict[int, str],
    ) -> Iterator[Label]:
        settled = wholes.get(image, [])
        answers = answers_of(decisions, settled, self._palettes)
        states, implied = states_of_image(answers, {row[3] for row in decisions})
        name = image_name[image]
        for class_, state in states.items():
            yield Label(name, class_name[class_], state)
        if implied:
            state = LabelState("decided", "absent", True, max(row[2] for row in settled))
            for class_ in sorted(implied):
                yield Label(name, class_name[class_], state, named=False)
