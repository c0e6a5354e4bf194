"""Corrected labels: a run's with the findings of its audit, or a data set's with decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from balancemix.auditing.findings import Findings, audit_run
from balancemix.data import ReadOptions, read
from balancemix.data.source import Source
from balancemix.data.writing import write_labels
from balancemix.errors import InputError
from balancemix.run import Run
from balancemix.training.experiment import load_rows


@dataclass(frozen=True)
class Corrected:
    """A source and its labels as they should be, with the reasons for each row and class.

    `left` counts findings that were not applied. Where there is no other reason, a label that
    changed was decided by a person, or else changed by `noise`.
    """

    source: Source
    given: Tensor
    reasons: Mapping[tuple[int, int], str]
    left: int = 0
    noise: str = "none"

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
        return write_labels(self.source, self.given, out, self.why)


def decided(data: str, options: ReadOptions) -> Corrected:
    """Read data with what people decided about its labels."""
    source = read(data, options)
    return Corrected(source, source.given, {})


def corrected(run: Run, above: float) -> Corrected:
    """Correct the training labels of a run by the findings with a suspicion over `above`.

    The corrections go into the labels as they are in the files now. A label that somebody has
    changed since the training, or decided about, is left as it is. A run with added noise is an
    experiment: its noisy labels are corrected.
    """
    findings, plan = audit_run(run, above), run.plan
    source = load_rows(plan, plan.data.path).source
    if source is None or source.classes != findings.classes:
        raise InputError(f"{plan.data.path}: its classes are no longer those of the run")
    rows = _places(source, findings, plan.data.path)
    given = source.given.clone()
    if plan.noise != "none":
        given[rows] = findings.labels.to(given.dtype)
    row, column = rows[findings.row], findings.column
    same = given[row, column] == findings.given.to(given.dtype)
    if source.verified is not None:
        same &= ~source.verified[row, column]
    given[row[same], column[same]] = findings.suggested[same].to(given.dtype)
    reasons = {
        (int(rows[each.row]), each.column): f"suspicion {each.suspicion:.4f}" for each in findings
    }
    return Corrected(source, given, reasons, int((~same).sum()), plan.noise)


def _places(source: Source, findings: Findings, path: str) -> Tensor:
    """Find the rows that a run was trained on among those of its data, by name."""
    place = {name: i for i, name in enumerate(source.names)}
    missing = next((name for name in findings.names if name not in place), None)
    if missing is not None:
        raise InputError(f"{path}: row {missing!r}, which the run was trained on, is not found")
    if len(place) == len(source):
        return torch.tensor([place[name] for name in findings.names], dtype=torch.long)
    rows = source.rows_in("train")
    if [source.names[i] for i in rows] != list(findings.names):
        raise InputError(f"{path}: its rows are not those of the run, and some share a name")
    return torch.tensor(rows, dtype=torch.long)
