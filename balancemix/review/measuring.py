"""What the sample of the page measured: judged in its own thread, told once all is answered."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from balancemix.auditing.findings import find
from balancemix.auditing.judged import Judged
from balancemix.auditing.measured import Measured
from balancemix.auditing.snapshot import LEAST, save_snapshot
from balancemix.auditing.wording import RATE, count_of, percent
from balancemix.review.desk import Desk

ERRORS = {
    "wrong": "a wrong label",
    "missing": "a missing label",
    "unknown": "an unknown label that is present",
}


class Measuring:
    """Works out what a sample says of all labels, as `audit` does, and keeps the new findings.

    Called in the desk's thread; only the judge, which takes its time, works beside it.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._thread = ThreadPoolExecutor(1, "judge")
        self._judging: Future[tuple[Judged, Judged]] | None = None
        self._known: tuple[list[int], list[str]] | None = None  # answers, and what they say

    def facts(self) -> dict[str, Any]:
        """Say how far the sample is, and what it measured; `working` while that is not known."""
        sample = self._desk.sampling.facts()
        if sample is None or sample["answered"] < sample["drawn"]:
            return {"sample": sample, "result": None, "working": False}
        answers = self._answers()
        if self._known is None or self._known[0] != answers:
            self._go_on(answers)
        lines = self._known[1] if self._known is not None and self._known[0] == answers else None
        return {"sample": sample, "result": lines, "working": lines is None}

    def _answers(self) -> list[int]:
        """List the answers about the pictures of the sample, by their numbers."""
        rows = set(self._desk.sampling.rows)
        return [entry.seq for entry in self._desk.log.live() if entry.row in rows]

    def _go_on(self, answers: list[int]) -> None:
        if self._judging is None:
            self._judging = self._thread.submit(self._judge)
        elif self._judging.done():
            judging, self._judging = self._judging, None
            self._known = answers, self._conclude(*judging.result())

    def _judge(self) -> tuple[Judged, Judged]:
        """Judge as if nobody had decided anything, to measure; then with what is decided."""
        judge = self._desk.sampling.judge
        return judge(verified=False), judge(verified=True)

    def _conclude(self, judged: Judged, trusting: Judged) -> list[str]:
        """Measure, and let the page ask by measured probabilities from now on."""
        measured = Measured.of(judged, self._desk.store)
        lines = result(measured)
        if lines and measured.calibration:
            findings = find(trusting, LEAST, measured.calibration, self._asked(trusting))
            save_snapshot(self._desk.store, findings, least=0)
            self._desk.reload()
        return lines

    def _asked(self, judged: Judged) -> Tensor:
        """Mark what the page lists now and nobody has settled: measuring must not empty its list.

        Where most findings are no errors, all their probabilities are low. Which of them to look at
        first is known all the same.
        """
        asked = torch.zeros(judged.given.shape, dtype=torch.bool)
        place = {name: i for i, name in enumerate(judged.names)}
        listed, names = self._desk.listed, self._desk.source.names
        for row, column in zip(listed.row.tolist(), listed.column.tolist(), strict=True):
            if names[row] in place:
                asked[place[names[row]], column] = True
        return asked if judged.verified is None else asked & ~judged.verified


def result(measured: Measured) -> list[str]:
    """Say what a sample measured: one sentence, then what limits it.

    Nothing before all images are answered: whoever looks after every answer stops when the number
    pleases.
    """
    pictures = measured.pictures
    if measured.why_not is not None:
        return [f"Not measured: {measured.why_not}."]
    if pictures is None or not measured.figures or pictures.used < pictures.drawn:
        return []
    shares = [
        f"{percent(each.rate.value)} {RATE[problem]} "
        f"({percent(each.rate.low).removesuffix(' %')} – {percent(each.rate.high)})"
        for problem, each in measured.figures.items()
    ]
    return [f"{', '.join(shares)}: {pictures.used:,} pictures, measured.", *_limits(measured)]


def _limits(measured: Measured) -> Sequence[str]:
    lines = [
        f"Few of them have {ERRORS[problem]}, so this share is rough; {count_of(each.images)} "
        f"pictures have one."
        for problem, each in measured.figures.items()
        if each.total.right.rough and each.images is not None
    ]
    unsure = sum(each.unsure for each in measured.figures.values())
    if unsure:
        lines.append(
            f"{unsure:,} answers are unsure: lower ends count them as right, upper ends as errors."
        )
    return lines
