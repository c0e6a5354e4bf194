"""Score the model of a run on its own data or on other data of the same classes."""

from __future__ import annotations

from typing import NamedTuple, get_args

from balancemix.errors import InputError, listing, suggest
from balancemix.evaluation.metrics import Convention, average_precision, evaluate
from balancemix.labels.classes import class_counts, class_groups
from balancemix.options import ABOVE, ReadOptions
from balancemix.progress import progress
from balancemix.run import Run
from balancemix.training.experiment import load_rows
from balancemix.training.models import trained_model
from balancemix.training.predict import predict_logits


class Evaluation(NamedTuple):
    """The scores of a model, and for each class its positives and its AP, all in percent."""

    rows: int
    convention: str
    scores: dict[str, float]
    positives: dict[str, int]
    per_class: dict[str, float]


def evaluate_run(
    run: Run,
    data: str | None = None,
    split: str | None = None,
    convention: Convention | None = None,
    above: float = ABOVE,
    options: ReadOptions | None = None,
) -> Evaluation:
    """Score the run's model on a split of `data` (the run's own, if None).

    Classes may come in any order, but must be those of the run. A confidence of `above` or more
    counts as present in the F1 scores. `options` say how data is read, if not as the run's.
    """
    plan, classes = run.plan, run.classes
    convention = convention or plan.train.ap
    if convention not in get_args(Convention):
        raise InputError(f"--ap {convention}: {suggest(convention, get_args(Convention))}")
    path = data or plan.data.path
    splits = load_rows(plan, path, options=options)
    rows = splits.test if split is None else splits.named(split)
    if set(rows.classes) != set(classes):
        differing = sorted(set(rows.classes) ^ set(classes))
        raise InputError(f"{path}: other classes than the run's: {listing(differing, most=5)}")
    truth = rows.given if rows.truth is None else rows.truth
    truth = truth[:, [rows.classes.index(name) for name in classes]]
    with progress("evaluate", len(rows)) as show:
        logits = predict_logits(trained_model(run, rows), rows.plain, advance=show.advance)
    trained_on = run.table.given if run.truth is None else run.truth
    groups = class_groups(class_counts(trained_on), plan.data.groups)
    scores = evaluate(
        truth, logits, groups, convention=convention, threshold=above, classes=classes
    )
    each = average_precision(truth, logits, convention).mul(100).tolist()
    counts = (truth == 1).sum(0).tolist()
    return Evaluation(
        rows=len(rows),
        convention=convention,
        scores=scores,
        positives=dict(zip(classes, counts, strict=True)),
        per_class=dict(zip(classes, each, strict=True)),
    )
