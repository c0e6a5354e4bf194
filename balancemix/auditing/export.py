"""A run's labels with the findings of the audit applied."""

from __future__ import annotations

from pathlib import Path

from balancemix.auditing.findings import audit_run
from balancemix.data.formats import find_writer
from balancemix.errors import InputError
from balancemix.run import Run
from balancemix.training.experiment import load_rows


def export(run: Run, out: Path, above: float) -> tuple[int, int]:
    """Write a run's data with corrected training labels; count its rows and the labels changed."""
    find_writer(out)  # a wrong name must fail before files are read
    findings, plan = audit_run(run, above), run.plan
    source = load_rows(plan, plan.data.path).source
    if source is None or source.classes != findings.classes:
        raise InputError(f"{plan.data.path}: its classes are no longer those of the run")
    place = {name: i for i, name in enumerate(source.names)}
    missing = next((name for name in findings.names if name not in place), None)
    if missing is not None:
        raise InputError(
            f"{plan.data.path}: row {missing!r}, which the run was trained on, is not found"
        )
    given = source.given.clone()
    rows = [place[name] for name in findings.names]
    given[rows] = findings.applied(findings.labels).to(given.dtype)
    find_writer(out, source.path).write(source, given, out)
    return len(source), len(findings)
