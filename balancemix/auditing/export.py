"""A run's labels with the findings of the audit applied."""

from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from balancemix.auditing.findings import Findings, audit_run
from balancemix.data.formats import find_writer
from balancemix.data.source import Source
from balancemix.errors import InputError
from balancemix.run import Run
from balancemix.training.experiment import load_rows


class Exported(NamedTuple):
    """How many rows were written, how many labels changed, and how many findings were left out."""

    rows: int
    changed: int
    left: int


def export(run: Run, out: Path, above: float) -> Exported:
    """Write a run's data with corrected training labels.

    The corrections go into the labels as they are in the files now. A label that somebody has
    changed since the training is left as it is. A run with added noise is an experiment: its noisy
    labels are written, corrected.
    """
    find_writer(out)  # a wrong name must fail before files are read
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
    given[row[same], column[same]] = findings.suggested[same].to(given.dtype)
    find_writer(out, source.path).write(source, given, out)
    return Exported(len(source), int(same.sum()), int((~same).sum()))


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
