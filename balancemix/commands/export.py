"""`balancemix export`: the labels of a run or a data set, corrected, in the file they came from."""

import argparse
import sys
from pathlib import Path

from balancemix.commands.arguments import add_above, add_force, add_reading, read_options

DESCRIPTION = """\
write labels with their corrections, in the format of the file they came from

Of a RUN, the audit's findings over --above are applied to the labels it was trained on; of DATA,
only what people decided (DATA.balancemix/decisions.csv). The labels that changed are all that
differs from the file that was read: rows, columns, order and other fields stay. OUT.changes.csv
lists each change and its reason. `train` reads the result: a table with --images DIR or in the
place of the old one, an .npz by itself. An --out with another ending converts the data.

example:
  balancemix export runs/photos --out labels.corrected.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="RUN|DATA", help="a directory of `train`, or data")
    parser.add_argument(
        "--out", type=Path, help="default labels.corrected with the data's ending, in RUN or here"
    )
    add_above(parser, "least suspicion of a label to correct")
    add_force(parser)
    add_reading(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the corrected labels."""
    from balancemix.auditing.export import corrected, decided
    from balancemix.commands.verified import say_verified
    from balancemix.data.changes import log_of
    from balancemix.data.formats import find_writer, is_data
    from balancemix.data.writing import is_only_read, is_regular, natural_ending, outputs_of
    from balancemix.errors import printable
    from balancemix.files import check_output
    from balancemix.run import Run

    path = Path(arguments.data).expanduser()
    is_run = Run(path).has("plan") or not is_data(path)
    run_ = Run.open(path) if is_run else None
    inputs = [path if run_ is None else Path(run_.plan.data.path)]

    def check(out: Path) -> None:
        for each in outputs_of(out):
            if run_ is None:
                check_output(each, force=arguments.force, inputs=inputs)
            else:
                run_.check_output(each, force=arguments.force, inputs=inputs)

    if arguments.out is not None:  # wrong arguments must fail before files are read
        find_writer(arguments.out)
        check(arguments.out)
    # A new table has the rows whose images are there, so that `train` reads it.
    new = run_ is None and is_only_read(path)
    options = read_options(arguments, labels_only=not new, skip_bad=new)
    labels = decided(arguments.data, options) if run_ is None else corrected(run_, arguments.above)
    name = f"labels.corrected{natural_ending(labels.source)}"
    out = arguments.out or (Path(name) if run_ is None else run_.path / name)
    check(out)
    notes = labels.write(out)
    if run_ is not None:
        for each in outputs_of(out):
            run_.outputs.remember(each)
    rows = f"{len(labels.source):,} rows, {labels.changed:,} labels changed"
    print(f"{printable(str(out))}: {rows}")
    say_verified(labels.source)
    if labels.changed and is_regular(out):
        print(f"each change, and why: {printable(str(log_of(out)))}")
    if labels.left:
        notes.append(
            f"{labels.left:,} findings were left out: their labels have changed since the training"
        )
    for note in notes:
        print(printable(note), file=sys.stderr)
