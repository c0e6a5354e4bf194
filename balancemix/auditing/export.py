"""Corrected labels: what people decided and, if asked for, what was measured to be an error.

First, do no harm. By default only what a person decided changes. What an audit is sure of changes
only once its probabilities are measured, on the rows that were measured, and never more labels of
a kind than there can be errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from balancemix.auditing.data import labels_of_run
from balancemix.auditing.figures import Ints
from balancemix.auditing.findings import PROBLEMS, Findings, find
from balancemix.auditing.judged import Judged
from balancemix.auditing.measured import Measured, rows_of
from balancemix.auditing.probability import SIDES
from balancemix.data import ReadOptions, read
from balancemix.data.decisions import unsure_labels
from balancemix.data.source import Source
from balancemix.data.writing import write_labels
from balancemix.errors import InputError
from balancemix.files import write_arrays
from balancemix.run import Run

HALF = 0.5  # of corrections less sure than this, more would be wrong than right


@dataclass(frozen=True)
class Corrected:
    """A source and its labels as they should be, with the reasons for each row and class.

    Where there is no other reason, a label that changed was decided by a person, or else changed by
    `noise`. `notes` are for people.
    """

    source: Source
    given: Tensor
    reasons: Mapping[tuple[int, int], str] = field(default_factory=dict)
    noise: str = "none"
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> int:
        """How many labels are not those of the file."""
        return int((self.given != self.source.as_in_file.given).sum())

    def why(self, row: int, column: int) -> str:
        """Say why a label changed."""
        verified = self.source.verified
        rest = "decision" if verified is not None and bool(verified[row, column]) else self.noise
        return self.reasons.get((row, column), rest)

    def write(self, out: Path) -> list[str]:
        """Write the labels and the log of changes; returns what a person should know."""
        return [*self.notes, *write_labels(self.source, self.given, out, self.why)]

    def without_unsure(self) -> Corrected:
        """Make the labels unknown about which people are unsure or differ."""
        unsure = unsure_labels(self.source)
        given = self.given.masked_fill(unsure, -1)
        places = [(int(i), int(k)) for i, k in unsure.nonzero().tolist()]
        reasons = {**self.reasons, **dict.fromkeys(places, "unsure")}
        return Corrected(self.source, given, reasons, self.noise, self.notes)


def decided(data: str, options: ReadOptions) -> Corrected:
    """Read data with what people decided about its labels."""
    source = read(data, options)
    return Corrected(source, source.given)


def decided_run(run: Run, *, verified: bool = True) -> Corrected:
    """Read the data of a run with what people decided, now or before the training.

    A run with added noise is an experiment: its noisy labels are kept.
    """
    source, labels = labels_of_run(run, verified=verified)
    return Corrected(source, labels.given, noise=run.plan.noise)


def check_measured(measured: Measured | None, data: str, flag: str, *, force: bool) -> None:
    """Refuse to change labels by probabilities that nobody has measured."""
    if force or (measured is not None and measured.calibration):
        return
    raise InputError(
        f"{flag}: the probabilities are modelled, not measured, and on real data such models were "
        f"far off; settle 50 images first: `balancemix audit {data} --sample 50` (--force uses "
        "them as they are)"
    )


def check_sure(above: float, *, force: bool) -> None:
    """Refuse corrections of which more would be wrong than right."""
    if above < HALF and not force:
        raise InputError(
            f"--above {above:g}: of labels less sure than {HALF}, more would be made wrong than "
            "right; give a larger number (--force applies them all the same)"
        )


def corrected(
    judged: Judged, above: float | None, measured: Measured | None, noise: str = "none"
) -> Corrected:
    """Apply what people decided and, unless it is None, findings that are surer than `above`."""
    source = judged.source
    assert source is not None
    if above is None:
        return Corrected(source, judged.given, noise=noise)
    findings, notes = acceptable(judged, above, measured)
    basis = {p: "measured" if p in findings.measured else "modelled" for p in SIDES}
    reasons = {
        (each.row, each.column): f"probability {each.probability:.2f} ({basis[each.problem]})"
        for each in findings
    }
    given = findings.applied(judged.given)
    return Corrected(source, given, reasons, noise, tuple(notes))


def acceptable(
    judged: Judged, above: float, measured: Measured | None
) -> tuple[Findings, list[str]]:
    """Choose the findings to apply without a person; also says what was left out, and why.

    Never a label that is verified, that people are unsure about, or that was not judged; never a
    row outside those that were measured; and, once measured, of no problem that was not, and of
    each no more than the upper end of its interval, those counted that people have corrected.
    Measured probabilities are the cautious ones: where the likeliest come out too high, they would
    change most labels.
    """
    findings = find(judged, above, None if measured is None else measured.cautious)
    rows = rows_of(judged, "train" if measured is None else measured.split)
    inside = torch.zeros(len(judged), dtype=torch.bool)
    inside[torch.from_numpy(rows)] = True
    findings, notes = _open(findings), list[str]()
    outside = int((~inside[findings.row]).sum())
    if outside:
        notes.append(f"{outside:,} findings in rows that are not for training were left out")
        findings = findings[inside[findings.row]]
    if not findings.measured or measured is None:
        return findings, [
            *notes,
            *["the probabilities are modelled, not measured"] * bool(findings),
        ]
    kept = torch.ones(len(findings), dtype=torch.bool)
    for problem, side in SIDES.items():
        listed = findings.given == side
        if problem not in findings.measured:
            kept &= ~listed
            if count := int(listed.sum()):
                notes.append(f"{count:,} {problem} labels were left out: these are not measured")
            continue
        most = int(measured.figures[problem].total.right.high) - _corrected(judged, rows, side)
        over = listed & (listed.cumsum(0) > max(most, 0))
        if count := int(over.sum()):
            notes.append(
                f"{count:,} {problem} labels were left out: no more than {max(most, 0):,} errors "
                "can be left, by the sample"
            )
        kept &= ~over
    return findings[kept], notes


def _open(findings: Findings) -> Findings:
    """Leave out labels that are verified, that people are unsure about, or were not judged."""
    judged, places = findings.judged, (findings.row, findings.column)
    kept = judged.doubt[places].isfinite()
    if judged.verified is not None:
        kept &= ~judged.verified[places]
    if judged.source is not None:
        kept &= ~unsure_labels(judged.source)[places]
    return findings[kept]


def _corrected(judged: Judged, rows: Ints, side: int) -> int:
    """Count the labels of a side that people have changed."""
    source = judged.source
    if source is None or source.file_given is None or source.decided is None:
        return 0
    before, after = source.file_given[rows], source.given[rows]
    return int((source.decided[rows] & (before == side) & (after == (0 if side == 1 else 1))).sum())


def write_soft(judged: Judged, measured: Measured | None, out: Path, data: str) -> None:
    """Write the probability that each class is there, N×K, and how much each label counts.

    A verified label is 0 or 1. Rows that were not measured, such as those to score on, keep their
    given labels. An unknown label has weight 0.
    """
    findings = find(judged, 0, None if measured is None else measured.calibration)
    wrong = torch.zeros(judged.given.shape)
    wrong[findings.row, findings.column] = findings.probability
    rows = torch.from_numpy(rows_of(judged, "train" if measured is None else measured.split))
    targets = (judged.given == 1).float()
    soft = torch.where(judged.given == 1, 1 - wrong, wrong)  # a verified label is not doubted
    targets[rows] = soft[rows]
    problems = [PROBLEMS[side] for side in sorted(PROBLEMS)]
    write_arrays(
        out,
        {
            "targets": targets.numpy().astype(np.float32),
            "weights": (judged.given >= 0).numpy().astype(np.float32),
            "names": list(judged.names),
            "classes": list(judged.classes),
            "measured": [name for name in problems if name in findings.measured],
            "data": data,
        },
    )
