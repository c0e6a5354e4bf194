"""A run's labels with the findings of the audit applied."""

from __future__ import annotations

from pathlib import Path

import torch

from balancemix.auditing.findings import audit_run, corrected
from balancemix.data.formats import find_writer
from balancemix.errors import InputError
from balancemix.run import Run
from balancemix.training.experiment import load_rows


def export(run: Run, out: Path, above: float) -> tuple[int, int]:
    """Write the data of a run with corrected training labels; count rows and labels changed."""
    find_writer(out)  # a wrong name must fail before files are read
    record = run.read_arrays("labels.npz")
    findings = audit_run(run, above)
    labels = corrected(torch.from_numpy(record["given"]), findings)
    plan = run.plan
    source = load_rows(plan, plan.data.path).source
    if source is None or source.classes != record["classes"].tolist():
        raise InputError(f"{plan.data.path}: its classes are no longer those of the run")
    place = {name: i for i, name in enumerate(source.names)}
    names = record["names"].tolist()
    lost = next((name for name in names if name not in place), None)
    if lost is not None:
        raise InputError(
            f"{plan.data.path}: has no row {lost!r} any more, which the run trained on"
        )
    given = source.given.clone()
    given[[place[name] for name in names]] = labels.to(given.dtype)
    find_writer(out, source.path).write(source, given, out)
    return len(source), len(findings)
