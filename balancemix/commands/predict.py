"""`balancemix predict`: what a trained model says of new rows."""

from __future__ import annotations

import argparse
from pathlib import Path

DESCRIPTION = """\
predict the classes of new images or features

DATA is a folder of images (labels.csv is not needed), an .npz with features, or digits. The CSV has
a line for each row with the classes over the threshold and the confidence in every class; with
an --out that ends in .npz, arrays `confidence` (N×K), `names` and `classes`.

example:
  balancemix predict runs/photos new-photos/ --out predictions.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="a directory of `train`")
    parser.add_argument("data", metavar="DATA", help="see above")
    parser.add_argument("--out", type=Path, default=Path("predictions.csv"), help="CSV or .npz")
    parser.add_argument("--threshold", type=float, default=0.5, help="default 0.5")
    parser.add_argument("--skip-bad", action="store_true", help="leave out unreadable images")


def run(arguments: argparse.Namespace) -> None:
    """Predict and write."""
    from balancemix.data import ReadOptions, load_inputs
    from balancemix.progress import progress
    from balancemix.run import Run
    from balancemix.training.experiment import trained_model, view_of
    from balancemix.training.predict import predict, write_predictions

    run_ = Run.open(arguments.run_directory)
    classes = run_.classes
    options = ReadOptions(skip_bad=arguments.skip_bad, seed=run_.plan.seed)
    view = view_of(run_.plan, arguments.data)
    rows = load_inputs(arguments.data, classes, view, options)
    with progress("predict", len(rows)) as show:
        confidence = predict(trained_model(run_, rows), rows.plain, advance=show.advance)
    write_predictions(arguments.out, rows.names, classes, confidence, arguments.threshold)
    print(f"{arguments.out}: {len(rows):,} rows, {len(classes)} classes")
