"""`balancemix evaluate`: score a trained model."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

DESCRIPTION = """\
score a run's model on its own test rows or on other data

DATA has the form that `train` reads and the same classes (in any order).

examples:
  balancemix evaluate runs/photos
  balancemix evaluate runs/photos other-photos/ --ap voc --per-class"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="a directory of `train`")
    parser.add_argument("data", nargs="?", metavar="DATA", help="default: the run's own data")
    parser.add_argument("--split", help="rows to score (default test, or else val)")
    parser.add_argument("--ap", default=None, help="sklearn, raw or voc (default: the run's)")
    parser.add_argument("--threshold", type=float, default=0.5, help="of CF1/OF1 (default 0.5)")
    parser.add_argument("--per-class", action="store_true", help="also the AP of each class")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> None:
    """Predict and score."""
    from balancemix.commands.show import console, make_table
    from balancemix.errors import InputError, suggest
    from balancemix.evaluation.metrics import average_precision, evaluate
    from balancemix.labels.classes import class_groups
    from balancemix.progress import progress
    from balancemix.run import Run
    from balancemix.training.experiment import load_rows, trained_model
    from balancemix.training.predict import predict_logits

    run_ = Run.open(arguments.run_directory)
    plan = run_.plan
    classes = run_.classes
    splits = load_rows(plan, arguments.data or plan.data.path)
    rows = splits.test if arguments.split is None else splits.named(arguments.split)
    convention = arguments.ap or plan.train.ap
    if convention not in ("sklearn", "raw", "voc"):
        raise InputError(f"--ap {convention}: {suggest(convention, ('sklearn', 'raw', 'voc'))}")
    if set(rows.classes) != set(classes):
        strange = sorted(set(rows.classes) ^ set(classes))[:5]
        raise InputError(f"{arguments.data}: other classes than the run's: {', '.join(strange)}")
    truth = rows.given if rows.truth is None else rows.truth
    truth = truth[:, [rows.classes.index(name) for name in classes]]
    with progress("evaluate", len(rows)) as show:
        logits = predict_logits(trained_model(run_, rows), rows.plain, advance=show.advance)
    counts = (run_.table.given if run_.truth is None else run_.truth).sum(0)
    groups = class_groups(counts, plan.data.groups)
    result = evaluate(
        logits, truth, groups, convention=convention, threshold=arguments.threshold,
        classes=classes,
    )  # fmt: skip
    each = average_precision(logits, truth, convention).mul(100).tolist()
    if arguments.json:
        per_class = {"per_class": dict(zip(classes, each, strict=True))}
        print(json.dumps(result | (per_class if arguments.per_class else {}), indent=2))
        return
    title = f"{len(rows):,} rows, AP by {convention}"
    lines = [[name, f"{value:.2f}"] for name, value in result.items()]
    console().print(make_table(title, ("score", "%"), lines))
    if arguments.per_class:
        counted = (truth == 1).sum(0).tolist()
        lines = [[n, str(c), f"{a:.1f}"] for n, c, a in zip(classes, counted, each, strict=True)]
        console().print(make_table("by class", ("class", "positives", "AP"), lines))
