"""Compare two runs on the test rows that both were scored on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from balancemix.data import BUILT_IN, Rows
from balancemix.data.fingerprint import by_split
from balancemix.errors import InputError, listing
from balancemix.evaluation.compare import Comparison, compare_predictions, compare_scores
from balancemix.labels.classes import Groups, class_counts, class_groups
from balancemix.progress import progress
from balancemix.run import Run
from balancemix.training.experiment import load_rows
from balancemix.training.models import trained_model
from balancemix.training.predict import predict_logits


class Compared(NamedTuple):
    """A comparison, the number of test rows, and what a person should know about it."""

    comparison: Comparison
    rows: int
    notes: list[str]


def compare_runs(before: Run, after: Run) -> Compared:
    """Compare two runs by class, on the same test rows and the same labels of these.

    Both models predict the rows again, and are scored on the labels that the data of `after` has
    now. Where the data of one of them cannot be read, the scores that the runs recorded are
    compared, if both were scored on the same labels.
    """
    _check_classes(before, after)
    if before.plan.data.path in BUILT_IN and before.plan.seed != after.plan.seed:
        raise InputError(
            f"{after.path}: its seed is {after.plan.seed}, that of {before.path} is "
            f"{before.plan.seed}, and {before.plan.data.path} has other rows for each; train both "
            "with one seed"
        )
    try:
        rows = [load_rows(run.plan, run.plan.data.path).test for run in (before, after)]
    except (InputError, OSError) as error:
        return _by_record(before, after, str(error))
    return _by_predictions(before, after, *rows)


def _by_predictions(before: Run, after: Run, old: Rows, new: Rows) -> Compared:
    order = _order(before, after, list(old.names), list(new.names))
    truth = _labels(new, after.classes)
    logits = _predict(before, old)[order], _predict(after, new)
    columns = [before.classes.index(name) for name in after.classes]
    comparison = compare_predictions(
        truth,
        logits[0][:, columns],
        logits[1],
        after.classes,
        _groups(before, after.classes),
        after.plan.train.ap,
    )
    differing = int((truth != _labels(old, after.classes)[order]).sum())
    notes = []
    if differing:
        notes.append(
            f"{differing:,} labels of the test rows differ between the two: both are scored on "
            f"those of {after.path}"
        )
    return Compared(comparison, len(new), notes)


def _by_record(before: Run, after: Run, problem: str) -> Compared:
    """Compare the AP that both runs recorded, if they were scored on the same labels."""
    first, second = _recorded_rows(before), _recorded_rows(after)
    scores = before.class_ap, after.class_ap
    if first is None or second is None or scores[0] is None or scores[1] is None:
        raise InputError(problem)  # without the data there is nothing to compare
    order = _order(before, after, first["names"].tolist(), second["names"].tolist())
    columns = [before.classes.index(name) for name in after.classes]
    if not np.array_equal(first["given"][order][:, columns], second["given"]):
        raise InputError(
            f"{after.path}: was scored on other labels of the test rows than {before.path}, and "
            f"they cannot be scored again: {problem}"
        )
    comparison = compare_scores(
        np.array(scores[0])[columns], scores[1], after.classes, _groups(before, after.classes)
    )
    note = f"by the scores that the runs recorded, since the data cannot be read ({problem})"
    return Compared(comparison, len(second["names"]), [note])


def _check_classes(before: Run, after: Run) -> None:
    if differing := sorted(set(before.classes) ^ set(after.classes)):
        raise InputError(
            f"{after.path}: other classes than {before.path}: {listing(differing, most=5)}"
        )


def _order(before: Run, after: Run, old: Sequence[str], new: Sequence[str]) -> Tensor:
    """Find each test row of `after` among those of `before`, by name."""
    if len(set(old)) == len(old) and len(set(new)) == len(new) and set(old) == set(new):
        place = {name: i for i, name in enumerate(old)}
        return torch.tensor([place[name] for name in new], dtype=torch.long)
    if old == new:
        return torch.arange(len(new))
    differing = sorted(set(old) ^ set(new))
    which = f": {listing([repr(name) for name in differing], 3)}" if differing else ""
    raise InputError(
        f"{after.path}: was scored on other test rows than {before.path} ({len(new):,} and "
        f"{len(old):,}){which}"
    )


def _labels(rows: Rows, classes: Sequence[str]) -> Tensor:
    """Return what rows are scored on, in the order of `classes`."""
    truth = rows.given if rows.truth is None else rows.truth
    return truth[:, [rows.classes.index(name) for name in classes]]


def _predict(run: Run, rows: Rows) -> Tensor:
    if set(rows.classes) != set(run.classes):
        raise InputError(f"{run.plan.data.path}: its classes are no longer those of {run.path}")
    with progress(f"predict {run.path.name}", len(rows)) as show:
        return predict_logits(trained_model(run, rows), rows.plain, advance=show.advance)


def _groups(run: Run, classes: Sequence[str]) -> Groups:
    """Group the classes by the training labels of a run, before noise if these are known."""
    given = run.table.given if run.truth is None else run.truth
    columns = [run.classes.index(name) for name in classes]
    return class_groups(class_counts(given[:, columns]), run.plan.data.groups)


def _recorded_rows(run: Run) -> dict[str, npt.NDArray[Any]] | None:
    """Read the test rows that a run was started with; older runs did not keep them."""
    content = run.known_rows()
    return None if content is None else by_split(content)["test"]
