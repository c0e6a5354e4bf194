"""`balancemix predict`: the classes of new rows, by a trained model."""

import argparse
from pathlib import Path

from balancemix.commands.arguments import (
    add_above,
    add_force,
    add_reading,
    add_run,
    add_skip_bad,
    read_options,
)

DESCRIPTION = """\
predict the classes of new images or features

DATA is a folder of images (labels.csv is not needed), a table that names them, an .npz with
features, or digits. The CSV has
a line for each row, with the classes of at least --above confidence, and the confidence in every
class. An --out that ends in .npz holds the arrays `confidence` (N×K), `names` and `classes`.

example:
  balancemix predict runs/photos new-photos/ --out predictions.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    parser.add_argument("data", metavar="DATA", help="see above")
    parser.add_argument("--out", type=Path, default=Path("predictions.csv"), help="CSV or .npz")
    add_above(parser, "least confidence of a predicted class")
    add_force(parser)
    add_skip_bad(parser)
    add_reading(parser)


def run(arguments: argparse.Namespace) -> None:
    """Predict and write."""
    from balancemix.data import load_inputs
    from balancemix.errors import printable
    from balancemix.progress import progress
    from balancemix.run import Run
    from balancemix.training.experiment import view_of
    from balancemix.training.models import trained_model
    from balancemix.training.predict import predict, write_predictions

    run_ = Run.open(arguments.run_directory)
    run_.check_output(arguments.out, force=arguments.force, inputs=[Path(arguments.data)])
    classes = run_.classes
    options = read_options(arguments, skip_bad=arguments.skip_bad, seed=run_.plan.seed)
    view = view_of(run_.plan, arguments.data)
    rows = load_inputs(arguments.data, classes, view, options)
    with progress("predict", len(rows)) as show:
        confidence = predict(trained_model(run_, rows), rows.plain, advance=show.advance)
    write_predictions(arguments.out, rows.names, classes, confidence, arguments.above)
    print(f"{printable(str(arguments.out))}: {len(rows):,} rows, {len(classes)} classes")
