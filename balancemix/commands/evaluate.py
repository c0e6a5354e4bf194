"""`balancemix evaluate`: score a trained model."""

import argparse
from dataclasses import replace

from balancemix.commands.arguments import add_above, add_json, add_reading, add_run, read_options

DESCRIPTION = """\
score a run's model on its test rows or on other data

DATA has the form that `train` reads and the same classes (in any order).

examples:
  balancemix evaluate runs/photos
  balancemix evaluate runs/photos other-photos/ --ap voc --per-class"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    parser.add_argument("data", nargs="?", metavar="DATA", help="default: the run's data")
    parser.add_argument("--split", help="rows to score (default test, or else val)")
    parser.add_argument("--ap", help="sklearn, raw or voc (default: the run's)")
    add_above(parser, "least confidence of a present class, for CF1 and OF1")
    parser.add_argument("--per-class", action="store_true", help="also the AP of each class")
    add_json(parser, "the scores")
    add_reading(parser)


def run(arguments: argparse.Namespace) -> None:
    """Predict and score."""
    from balancemix.commands.show import console, make_table, written
    from balancemix.files import to_json
    from balancemix.run import Run
    from balancemix.training.evaluate import evaluate_run

    run_ = Run.open(arguments.run_directory)
    base = run_.plan.data.reading()
    result = evaluate_run(
        run_,
        arguments.data,
        arguments.split,
        arguments.ap,
        arguments.above,
        read_options(arguments, base if arguments.data is None else replace(base, images=None)),
    )
    if arguments.json:
        per_class = {"per_class": result.per_class} if arguments.per_class else {}
        print(to_json(result.scores | per_class, indent=2))
        return
    title = f"{result.rows:,} rows, AP by {result.convention}"
    lines = [[name, written(value, ".2f")] for name, value in result.scores.items()]
    console().print(make_table(title, ("score", "%"), lines))
    if arguments.per_class:
        positives = result.positives
        lines = [[k, str(positives[k]), written(ap, ".1f")] for k, ap in result.per_class.items()]
        console().print(make_table("by class", ("class", "positives", "AP"), lines))
