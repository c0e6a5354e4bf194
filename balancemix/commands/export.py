"""`balancemix export`: a run's labels with the findings of the audit applied."""

from __future__ import annotations

import argparse
from pathlib import Path

from balancemix.commands.arguments import add_above, add_run

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


def run(arguments: argparse.Namespace) -> None:
    """Write the corrected labels."""
    from balancemix.auditing.export import export
    from balancemix.run import Run

    run_ = Run.open(arguments.run_directory)
    out = arguments.out or run_.path_of("corrected")
    rows, changed = export(run_, out, arguments.above)
    print(f"{out}: {rows:,} rows, {changed:,} labels changed")
