"""Answers as people give them, and as rows of a store."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from balancemix.data.decisions.logs import now
from balancemix.data.decisions.names import Names
from balancemix.data.decisions.schema import MODES, VERDICTS
from balancemix.data.decisions.states import Answer, LabelState
from balancemix.errors import InputError, suggest

ANSWER = "seq, reviewer, image, class, verdict, undoes, mode, batch, width, whole"
IMAGE, WHOLE_IMAGE = 3, 4  # places in the rows of decision and settled
WHOLE = "seq, client, after, undoes, image, reviewer, mode, shown"


@dataclass(frozen=True)
class Decision:
    """An answer of a person about one label.

    `client` makes it unique: the same one is saved once, however often it is recorded. `width` is
    how many pixels wide the picture was shown, `whole` whether it was shown at its full size.
    `batch` joins answers that are undone together; `snapshot`, `suggested`, `probability` and
    `probe` say what was asked.
    """

    image: str
    class_: str
    verdict: str
    reviewer: str
    mode: str = "file"
    client: str = field(default_factory=lambda: uuid.uuid4().hex)
    batch: str | None = None
    snapshot: int | None = None
    suggested: int | None = None
    probability: float | None = None
    probe: bool = False
    width: int | None = None
    whole: bool = False
    ms: int | None = None
    at: str | None = None  # now

    def __post_init__(self) -> None:
        _check_word("verdict", self.verdict, VERDICTS)
        _check_word("mode", self.mode, MODES)


@dataclass(frozen=True)
class Settled:
    """A whole image: what is there, what is unsure, and that nothing else of `shown` is.

    `absent` may name classes that are not there; they need not be named.
    """

    image: str
    reviewer: str
    present: Collection[str]
    shown: Collection[str]
    unsure: Collection[str] = ()
    absent: Collection[str] = ()
    sample: int | None = None
    mode: str = "settle"
    client: str = field(default_factory=lambda: uuid.uuid4().hex)
    ms: int | None = None
    at: str | None = None  # now

    def __post_init__(self) -> None:
        _check_word("mode", self.mode, MODES)
        named = [*self.present, *self.unsure, *self.absent]
        if len(set(named)) < len(named):
            raise InputError(f"{self.image!r}: a class is named twice; give it one answer")

    def decisions(self) -> Iterator[Decision]:
        """List the answers about the classes that are named."""
        parts = {"present": self.present, "unsure": self.unsure, "absent": self.absent}
        named = sorted((class_, verdict) for verdict, part in parts.items() for class_ in part)
        for i, (class_, verdict) in enumerate(named):
            client = f"{self.client}:{i}"
            yield Decision(
                self.image, class_, verdict, self.reviewer, self.mode, client, self.client,
                at=self.at,
            )  # fmt: skip


class Label(NamedTuple):
    """The state of a label by its names."""

    image: str
    class_: str
    state: LabelState
    named: bool = True  # whether somebody answered about this label, not only its whole image


def row_of(d: Decision, ids: Names) -> tuple[Any, ...]:
    """Make the row of an answer, without its number and client."""
    return (
        *(ids.reviewer(d.reviewer), ids.image(d.image), ids.class_(d.class_), d.verdict, None),
        *(d.mode, d.batch, d.snapshot, d.suggested, d.probability, d.probe, d.width, d.whole),
        *(d.ms, d.at or now()),
    )


def whole_row_of(s: Settled, ids: Names, after: int) -> tuple[Any, ...]:
    """Make the row of a settled image; `after` is the number of the last answer before it."""
    shown = ids.palette({*s.shown, *s.present, *s.unsure, *s.absent})
    image, reviewer = ids.image(s.image), ids.reviewer(s.reviewer)
    return (after, None, image, reviewer, s.mode, s.sample, shown, s.ms, s.at or now())


def answers_of(
    decisions: Sequence[tuple[Any, ...]],
    settled: Sequence[tuple[Any, ...]],
    palettes: dict[int, frozenset[int]],
) -> Iterator[Answer]:
    """Turn the rows of an image into its answers that are not undone, oldest first."""
    undone = {row[5] for row in decisions if row[5] is not None}
    for seq, reviewer, _, class_, verdict, _, mode, _, width, whole in decisions:
        if verdict != "undone" and seq not in undone:
            yield Answer(seq, reviewer, class_, verdict, mode, width, bool(whole))
    undone = {row[3] for row in settled if row[3] is not None}
    for seq, client, after, undoes, _, reviewer, mode, shown in settled:
        if undoes is None and seq not in undone:
            named = {row[3] for row in decisions if row[7] == client}
            covers = palettes[shown] - named
            yield Answer(after, reviewer, None, "absent", mode, covers=covers)


def _check_word(what: str, word: str, known: Sequence[str]) -> None:
    if word not in known:
        raise InputError(f"{what} {word!r}: {suggest(word, known)}")
