"""`balancemix export`: a run's labels with the findings of the audit applied."""

import argparse
import sys
from pathlib import Path

from balancemix.commands.arguments import add_above, add_force, add_run

DESCRIPTION = """\
write the training labels with the audit's corrections applied

The CSV has the form that `train` reads (image,labels,split); rows of other splits are kept as they
are, so it can take the place of the data's labels.csv. Of features, an --out that ends in .npz is
the data's .npz with the corrected labels.

example:
  balancemix export runs/photos --out labels.corrected.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    parser.add_argument("--out", type=Path, help="CSV or .npz (default RUN/labels.corrected.csv)")
    add_above(parser, "least suspicion of a label to correct")
    add_force(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the corrected labels."""
    from balancemix.auditing.export import export
    from balancemix.errors import printable
    from balancemix.run import Run

    run_ = Run.open(arguments.run_directory)
    out = arguments.out or run_.path_of("corrected")
    run_.check_output(out, force=arguments.force, inputs=[Path(run_.plan.data.path)])
    done = export(run_, out, arguments.above)
    run_.outputs.remember(out)
    print(f"{printable(str(out))}: {done.rows:,} rows, {done.changed:,} labels changed")
    if done.left:
        print(
            f"{done.left:,} findings were left out: their labels have changed since the training",
            file=sys.stderr,
        )
