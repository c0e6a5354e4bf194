"""Take filled-in tables into a store, each answer exactly once.

An answer without a time is new if the same file did not say the same the last time it was read; a
file is the same by its path or, where that is new, by its content. So a file that is read again
adds nothing, an edited row counts as a new answer, and an old file does not take back what the
person has decided since.

An answer with a time, as `review --csv` writes it, is new if it is later than all that the store
has of the person about the label. If the store has an answer of that time and another verdict,
somebody edited the row: it is then read as one without a time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from balancemix.data.decisions.answers import Decision, Settled, row_of, whole_row_of
from balancemix.data.decisions.filled import Filled, FilledImage, FilledLabel
from balancemix.data.decisions.logs import Rows, insert, now
from balancemix.data.decisions.names import Names, palettes, person
from balancemix.progress import Show, silence

if TYPE_CHECKING:
    from balancemix.data.decisions.store import Store


@dataclass
class Taken:
    """How many answers of a table were new, known before, or older than what the store has."""

    new: int = 0
    known: int = 0
    older: int = 0
    blank: int = 0


def take(
    self: Store,
    filled: Filled,
    file: Path,
    classes: Iterable[str],
    reviewer: str,
    show: Show = silence,
) -> Taken:
    """Save the new answers of a table; `reviewer` is who gave those without a name.

    `classes` are all that the data has: a settled image answers for each.
    """
    with self._writing() as ids:
        reader = _Reader(self._connection, ids, file, list(classes), person(reviewer))
        reader.taken.blank = filled.blank
        with show("save the answers", len(filled.labels) + len(filled.images)) as bar:
            for label in filled.labels:
                reader.sort(label)
                bar.advance()
            for undated in reader.undated.values():
                reader.label(undated)
            # Of two rows about one image the last one counts.
            images = {(reader.who(each), each.image): each for each in filled.images}
            for image in images.values():
                reader.image(image)
                bar.advance()
        self._refresh(reader.save())
        return reader.taken


class _Reader:
    """Takes the rows of one table, within a transaction."""

    def __init__(
        self, connection: Any, ids: Names, file: Path, classes: list[str], reviewer: str
    ) -> None:
        self.run, self.ids, self.classes, self.reviewer = connection.execute, ids, classes, reviewer
        self.decisions, self.wholes = (Rows(connection, t) for t in ("decision", "settled"))
        self.palettes = palettes(connection)
        self.undated: dict[tuple[int, int, int], FilledLabel] = {}
        self.taken, self.at, self.count = Taken(), now(), 0
        self.connection, self.path = connection, os.path.abspath(file)
        self.digest = hashlib.sha256(file.read_bytes()).hexdigest()
        last = self._last("path", os.fsencode(self.path))
        self.is_same = last is not None and last[1] == self.digest
        last = last or self._last("digest", self.digest.encode())
        self.reading = (self.run("SELECT max(id) FROM reading").fetchone()[0] or 0) + 1
        self.source = self.reading if last is None else int(last[0])
        self.batch = f"file:{self.source}:{self.reading}"

    def who(self, filled: FilledLabel | FilledImage) -> int:
        """Number the person of a row."""
        return self.ids.reviewer(filled.reviewer or self.reviewer)

    def sort(self, filled: FilledLabel) -> None:
        """Keep an answer without a time for later, or one that was edited; take any other."""
        key = self.who(filled), self.ids.image(filled.image), self.ids.class_(filled.class_)
        if filled.at is not None:
            said = self._said(*key)
            whole = filled.at.endswith(".000000Z")  # a spreadsheet drops fractions of seconds
            same = {
                verdict
                for at, verdict in said
                if at == filled.at or (whole and at[:19] == filled.at[:19])
            }
            if filled.verdict in same:
                self.taken.known += 1
                return
            if not same:
                if said and filled.at <= max(at for at, _ in said):
                    self.taken.older += 1
                else:
                    self._add(filled, filled.at, filled.mode)
                return
        self.undated.pop(key, None)  # of two rows the last one counts
        self.undated[key] = filled

    def label(self, filled: FilledLabel) -> None:
        """Take an answer unless this file said the same before."""
        who, image = self.who(filled), self.ids.image(filled.image)
        last = self.run(
            "SELECT verdict FROM decision WHERE image=? AND class=? AND reviewer=? AND "
            "verdict<>'undone' AND substr(batch, 1, ?)=? ORDER BY seq DESC LIMIT 1",
            (image, self.ids.class_(filled.class_), who, *self._prefix()),
        ).fetchone()
        if last is not None and last[0] == filled.verdict:
            self.taken.known += 1
        else:
            self._add(filled, self.at, "file")

    def image(self, filled: FilledImage) -> None:
        """Take what is in an image unless this file said the same before."""
        who, image = self.who(filled), self.ids.image(filled.image)
        last = self.run(
            "SELECT client, shown FROM settled WHERE image=? AND reviewer=? AND undoes IS NULL AND "
            "substr(client, 1, ?)=? ORDER BY seq DESC LIMIT 1",
            (image, who, *self._prefix()),
        ).fetchone()
        said = {(self.ids.class_(c), "present") for c in filled.present}
        said |= {(self.ids.class_(c), "unsure") for c in filled.unsure}
        if last is not None:
            before = self.run(
                "SELECT class, verdict FROM decision WHERE image=? AND batch=? AND "
                "verdict<>'undone'",
                (image, last[0]),
            )
            shown = {self.ids.class_(each) for each in self.classes}
            if set(before.fetchall()) == said and shown <= self.palettes[last[1]]:
                self.taken.known += 1
                return
        self.count += 1
        sample = self.run(
            "SELECT max(sample) FROM sample_unit WHERE image=? AND class IS NULL", (image,)
        ).fetchone()[0]
        settled = Settled(
            filled.image, filled.reviewer or self.reviewer, filled.present, self.classes,
            filled.unsure, sample=sample, mode="file", client=f"{self.batch}:{self.count}",
            at=self.at,
        )  # fmt: skip
        for decision in settled.decisions():
            self.decisions.add(decision.client, row_of(decision, self.ids))
        row = whole_row_of(settled, self.ids, self.decisions.newest)
        self.wholes.add(settled.client, row)
        self.taken.new += 1

    def save(self) -> set[int]:
        """Write the rows and that this file was read, and return the images."""
        if self.taken.new or not self.is_same:
            row = (self.reading, self.source, self.path, self.digest, self.at)
            insert(self.connection, "reading", [row])
        self.ids.save()
        return {row[3] for row in self.decisions.save()} | {row[4] for row in self.wholes.save()}

    def _last(self, column: str, value: bytes) -> Any:
        """Find the last reading of a path, or of a content: the number of the file, its content."""
        return self.run(
            f"SELECT source, digest FROM reading WHERE {column}=CAST(? AS TEXT) "
            "ORDER BY id DESC LIMIT 1",
            (value,),
        ).fetchone()

    def _prefix(self) -> tuple[int, str]:
        prefix = f"file:{self.source}:"
        return len(prefix), prefix

    def _said(self, who: int, image: int, class_: int) -> list[tuple[str, str]]:
        """List when a person answered about a label, and what; undoing is an answer too."""
        said: list[tuple[str, str]] = self.run(
            "SELECT at, verdict FROM decision WHERE image=? AND class=? AND reviewer=?",
            (image, class_, who),
        ).fetchall()
        wholes = self.run(
            "SELECT at, shown, undoes, client FROM settled WHERE image=? AND reviewer=?",
            (image, who),
        )
        for at, shown, undoes, client in wholes.fetchall():
            if class_ in self.palettes[shown]:
                named = self.run(
                    "SELECT 1 FROM decision WHERE image=? AND class=? AND batch=?",
                    (image, class_, client),
                ).fetchone()
                if named is None:
                    said.append((at, "undone" if undoes is not None else "absent"))
        return said

    def _add(self, filled: FilledLabel, at: str, mode: str) -> None:
        self.count += 1
        decision = Decision(
            filled.image, filled.class_, filled.verdict, filled.reviewer or self.reviewer, mode,
            f"{self.batch}:{self.count}", self.batch, width=filled.width, whole=filled.whole,
            at=at,
        )  # fmt: skip
        self.decisions.add(decision.client, row_of(decision, self.ids))
        self.taken.new += 1
