"""The labels that people answered about, as they stand now, and the time it took."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from balancemix.data.decisions.states import LabelState
from balancemix.review.log import Entry

PAUSE = 30.0  # seconds: a longer gap between answers counts as much
GLANCE = 2.0  # seconds for each label of a page that is answered as a whole


class Answer(NamedTuple):
    """A label that somebody answered about, as it stands now."""

    row: int
    column: int
    given: int
    verdict: str | None  # None where nobody is sure, or people differ
    probe: bool
    p: float | None
    mode: str
    seconds: float  # of active time, by everybody who answered
    is_first: bool  # the first question about its picture

    @property
    def is_fix(self) -> bool:
        """Tell whether the answer changes the label: an unknown one only by being present."""
        return self.verdict == ("absent" if self.given > 0 else "present")


def active_seconds(entries: Sequence[Entry]) -> list[float]:
    """Compute the time that each answer took: since the person's last one, pauses capped at 30 s.

    A page that is answered as a whole shares its time; its cap is two seconds a label, if that is
    more.
    """
    pages: dict[str, int] = {}
    for each in entries:
        if each.batch is not None:
            pages[each.batch] = pages.get(each.batch, 0) + 1
    last: dict[str, datetime] = {}
    page_gap: dict[str, float] = {}
    result = []
    for each in entries:
        at = datetime.fromisoformat(each.at)
        before = last.get(each.reviewer)
        size = 1 if each.batch is None else pages[each.batch]
        cap = PAUSE if size == 1 else max(PAUSE, GLANCE * size)
        spent = (each.ms or 0) / 1000 if before is None else (at - before).total_seconds()
        gap = min(max(spent, 0.0), cap)
        if each.batch is not None:
            gap = page_gap.setdefault(each.batch, gap) / size
        last[each.reviewer] = at
        result.append(gap)
    return result


def answers_of(
    live: Iterable[Entry],
    states: Mapping[tuple[int, int], LabelState],
    given_of: Callable[[int, int], int],
) -> list[Answer]:
    """List the labels with an answer, by the time of their first one.

    `live` are the entries that are not undone, oldest first.
    """
    entries = [
        each for each in live if each.row >= 0 and each.column is not None and each.column >= 0
    ]
    first: dict[tuple[int, int], Entry] = {}
    seconds: dict[tuple[int, int], float] = {}
    for each, spent in zip(entries, active_seconds(entries), strict=True):
        key = each.row, _column(each)
        first.setdefault(key, each)
        seconds[key] = seconds.get(key, 0.0) + spent
    seen: set[int] = set()
    answers = []
    for (row, column), each in first.items():
        state = states.get((row, column))
        verdict = None if state is None else state.verdict
        facts = (each.probe, each.p, each.mode, seconds[row, column], row not in seen)
        answers.append(Answer(row, column, given_of(row, column), verdict, *facts))
        seen.add(row)
    return answers


def _column(entry: Entry) -> int:
    """Return the column of a label; −1 of a whole picture."""
    return -1 if entry.column is None else entry.column
