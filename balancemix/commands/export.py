"""`balancemix export`: the labels of a run or a data set, corrected, in the file they came from."""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from balancemix.commands import sample
from balancemix.commands.arguments import add_reading, add_skip_bad, read_options
from balancemix.commands.judging import add_embedding, judge_arguments
from balancemix.commands.target import Target, is_run

if TYPE_CHECKING:
    from balancemix.auditing.export import Corrected
    from balancemix.auditing.judged import Factors
    from balancemix.auditing.measured import Measured
    from balancemix.run import Run

DESCRIPTION = """\
write labels with their corrections, in the format of the file they came from

By default only what people decided changes (`balancemix review`, DATA.balancemix). --above 0.9 also
applies what the audit is surer of. That needs measured probabilities: settle 50 images first
(`balancemix audit DATA --sample 50`). Even then no verified label changes, no row that is scored
on, and no more labels than there can be errors.

The labels that changed are all that differs from the file that was read: rows, columns, order and
other fields stay. OUT.changes.csv lists each change and its reason. `train` reads the result: a
table with --images DIR or in the place of the old one, an .npz by itself. An --out with another
ending converts the data.

examples:
  balancemix export photos/ --out labels.corrected.csv
  balancemix export runs/photos --above 0.9"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="RUN|DATA", help="a directory of `train`, or data")
    parser.add_argument(
        "--out", type=Path, help="default labels.corrected with the data's ending, in RUN or here"
    )
    number: dict[str, Any] = {"type": float, "dest": "above", "metavar": "P"}
    parser.add_argument(
        "--above", help="also apply findings with at least this measured probability", **number
    )
    parser.add_argument("--threshold", help=argparse.SUPPRESS, **number)
    parser.add_argument(
        "--unsure",
        choices=("given", "unknown"),
        default="given",
        help="write labels that people are unsure about as they were given, or as unknown",
    )
    parser.add_argument(
        "--soft",
        type=Path,
        metavar="NPZ",
        help="also write the probability of each class (targets, N×K) and weights",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace files that exist, and use probabilities that are not measured",
    )
    parser.set_defaults(split=None, labels=None, confidence=None)
    add_embedding(parser)
    add_skip_bad(parser)
    add_reading(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the corrected labels."""
    from balancemix.commands.verified import say_verified
    from balancemix.data.changes import log_of
    from balancemix.data.formats import find_writer
    from balancemix.data.writing import is_regular, natural_ending, outputs_of
    from balancemix.errors import printable
    from balancemix.run import Run

    path = Path(arguments.data).expanduser()
    run_ = Run.open(path) if is_run(path) else None
    target = Target.of(run_, [path], force=arguments.force)
    if arguments.out is not None:  # wrong arguments must fail before files are read
        find_writer(arguments.out)
        target.check(*outputs_of(arguments.out))
    if arguments.soft is not None:
        check_soft(arguments)
        target.check(arguments.soft)
    labels, write_soft = corrections(arguments, run_)
    if arguments.unsure == "unknown":
        labels = labels.without_unsure()
    out = arguments.out or target.file(f"labels.corrected{natural_ending(labels.source)}")
    target.check(*outputs_of(out))
    notes = labels.write(out)
    if write_soft is not None:
        write_soft()
    target.remember(*outputs_of(out))
    rows = f"{len(labels.source):,} rows, {labels.changed:,} labels changed"
    print(f"{printable(str(out))}: {rows}")
    say_verified(labels.source)
    if labels.changed and is_regular(out):
        print(f"each change, and why: {printable(str(log_of(out)))}")
    for note in notes:
        print(printable(note), file=sys.stderr)


def corrections(
    arguments: argparse.Namespace, run_: "Run | None"
) -> "tuple[Corrected, Callable[[], None] | None]":
    """Find the labels to write, and how to write soft ones; without either, nothing is judged."""
    from balancemix.auditing.export import (
        check_measured,
        check_sure,
        corrected,
        decided,
        decided_run,
        write_soft,
    )
    from balancemix.auditing.findings import check_above
    from balancemix.auditing.judged import Factors
    from balancemix.data.writing import is_only_read

    above, soft = arguments.above, arguments.soft
    if above is not None:
        check_above(above)
        check_sure(above, force=arguments.force)
    if above is None and soft is None:
        if run_ is not None:
            return decided_run(run_, verified=not arguments.no_verified), None
        # A new table has the rows whose images are there, so that `train` reads it.
        new = is_only_read(Path(arguments.data).expanduser())
        options = read_options(arguments, labels_only=not new, skip_bad=new or arguments.skip_bad)
        return decided(arguments.data, options), None
    factors = Factors()
    measured = measure(arguments, run_, factors)
    flag = f"--above {above:g}" if above is not None else f"--soft {soft}"
    data = arguments.data if run_ is None else run_.plan.data.path
    check_measured(measured, data, flag, force=arguments.force)
    judged = judge_arguments(arguments, run_, factors=factors)
    factors.finish()
    noise = "none" if run_ is None else run_.plan.noise
    labels = corrected(judged, above, measured, noise)
    return labels, None if soft is None else partial(write_soft, judged, measured, soft, data)


def measure(
    arguments: argparse.Namespace, run_: "Run | None", factors: "Factors"
) -> "Measured | None":
    """Measure by the answers in the store beside the data."""
    judge = partial(judge_arguments, arguments, run_, verified=False, factors=factors)
    return sample.measure(arguments, run_, judge)


def check_soft(arguments: argparse.Namespace) -> None:
    """Refuse a file of another kind, or the same as --out."""
    from balancemix.errors import InputError

    if arguments.soft.suffix.lower() != ".npz":
        raise InputError(f"--soft {arguments.soft}: must end in .npz")
    if arguments.out is not None and arguments.soft.absolute() == arguments.out.absolute():
        raise InputError(f"--soft {arguments.soft}: is --out too; name another file")
