"""`balancemix audit`: which labels of a data set look wrong or missing, in which order to look."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from balancemix.commands import gallery, sample
from balancemix.commands.arguments import (
    add_above,
    add_force,
    add_json,
    add_reading,
    add_skip_bad,
)
from balancemix.commands.judging import add_embedding, judge_arguments
from balancemix.commands.kept import keep_findings
from balancemix.commands.target import Target, is_run

if TYPE_CHECKING:
    from balancemix.auditing.judged import Judged
    from balancemix.run import Run

DESCRIPTION = """\
list the labels that look wrong or missing, in the order in which to look at them

DATA is judged without training: each label by the other images, by features of a frozen backbone,
which are kept beside the data. Of a RUN, its data is judged likewise, with its noise and backbone.
Any other model is audited by two arrays, N×K each: the labels, and its confidence in them.

The CSV lists the wrong labels first, then the missing ones, then unknown ones that look present,
each with its probability and its rank among its kind. All splits are audited. Fill in the column
`verdict` (present, absent, unsure), and `balancemix review` takes it back. --for writes them for
Label Studio, FiftyOne or cleanlab instead.

No model knows how many labels are wrong. --sample 50 draws images at random for a person to settle;
once they are answered, the figures and probabilities are measured, with intervals.

examples:
  balancemix audit photos/ --out findings.csv
  balancemix audit runs/photos --gallery page.html
  balancemix audit photos/ --sample 50
  balancemix audit photos/ --for label-studio
  balancemix audit --labels y.npy --confidence p.npy --out findings.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "data", metavar="DATA|RUN", nargs="?", help="data as `train` takes it, or a run"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="file to write, .csv or .xlsx (default findings.csv, in RUN or here)",
    )
    gallery.add_argument(parser)
    add_exchange(parser)
    add_above(parser, "least probability of a finding; 0 lists every label")
    add_force(parser)
    add_json(parser, "the summary")
    sample.add_arguments(parser)
    arrays = parser.add_argument_group("another model's confidence, by itself or with DATA")
    arrays.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="instead of DATA: .npy, N×K of 1, 0 and -1 (unknown); or .json, the classes of each "
        "row by number, as cleanlab has them",
    )
    arrays.add_argument(
        "--confidence", type=Path, metavar="NPY", help="N×K, 0 to 1, out of sample (pred_probs)"
    )
    add_embedding(parser)
    add_skip_bad(parser)
    add_reading(parser)


def add_exchange(parser: argparse.ArgumentParser) -> None:
    """Declare which tool the findings are for."""
    parser.add_argument(
        "--for",
        dest="tool",
        choices=("label-studio", "fiftyone", "cleanlab"),
        help="write the findings for this tool (docs/round-trips)",
    )
    parser.add_argument(
        "--url", help="with --for label-studio: what comes before the path of an image"
    )
    parser.add_argument(
        "--issues",
        type=Path,
        metavar="NPY",
        help="list only what cleanlab flags: booleans N×K or N, or numbers of rows",
    )


def stopped(arguments: argparse.Namespace) -> str:
    """Say what an interruption leaves."""
    return "nothing was written; features and parts of the judgement that were made are kept"


def run(arguments: argparse.Namespace) -> None:
    """Judge, write the findings, and say what is in them."""
    from balancemix.auditing.findings import check_above, find
    from balancemix.auditing.judged import Factors
    from balancemix.auditing.snapshot import LEAST
    from balancemix.commands.show import show_findings
    from balancemix.commands.verified import say_verified
    from balancemix.errors import printable
    from balancemix.exchange.cleanlab import flagged, of_labels
    from balancemix.exchange.writing import default_name, outputs_of, write
    from balancemix.files import to_json

    check_above(arguments.above)
    check_exchange(arguments)
    above = arguments.above
    if arguments.issues is not None and of_labels(arguments.issues):
        above = 0.0  # whatever the audit thinks of them
    run_ = find_run(arguments)

    target = Target.of(run_, inputs(arguments), force=arguments.force)
    gallery.check(arguments, target)
    factors = Factors()

    def judge_anew() -> Judged:
        """Judge as if nobody had decided anything."""
        return judge_arguments(arguments, run_, verified=False, factors=factors)

    if arguments.sample is not None:
        sample.draw(arguments, run_, judge_anew)
        return factors.finish()
    out = arguments.out or target.file(default_name(arguments.tool))
    target.check(*outputs_of(out, arguments.tool))
    if arguments.passport is not None:
        target.check(arguments.passport)
    measured = sample.measure(arguments, run_, judge_anew)
    if arguments.passport is not None:
        sample.write_passport(arguments.passport, measured, arguments.data)
        target.remember(arguments.passport)
    judged = judge_arguments(arguments, run_, factors=factors)
    factors.finish()
    findings = find(judged, above, None if measured is None else measured.calibration)
    if arguments.issues is not None:
        findings = flagged(findings, arguments.issues)
    steps = write(findings, out, arguments.tool, arguments.url)
    # Measured probabilities may all be low; the page asks about what is likeliest all the same.
    to_ask = findings if measured is None else find(judged, min(above, LEAST), measured.calibration)
    if not arguments.no_verified and arguments.issues is None and keep_findings(to_ask, run_):
        steps.append(f"decide in pictures: balancemix review {shlex.quote(arguments.data)}")
    target.remember(*outputs_of(out, arguments.tool))
    summary = {"file": str(out), **findings.summary()}
    if measured is not None:
        summary["measured"] = measured.as_json()
    if arguments.gallery is not None:
        steps = [gallery.write(arguments, target, findings, measured, out), *steps]
        summary["gallery"] = str(arguments.gallery)
    if arguments.json:
        print(to_json(summary, indent=2))
    else:
        say_verified(judged.source)
        show_findings(findings, summary, measured)
        for step in steps:
            print(printable(step))
    return None


def check_exchange(arguments: argparse.Namespace) -> None:
    """Refuse flags of findings where none are written, and flags of another tool."""
    from balancemix.errors import InputError

    if arguments.sample is not None and (arguments.tool or arguments.issues):
        raise InputError("--for and --issues are about findings; leave them out with --sample")
    if arguments.url is not None and arguments.tool != "label-studio":
        raise InputError("--url is for --for label-studio; leave it out, or add that")


def find_run(arguments: argparse.Namespace) -> Run | None:
    """Open the run that is named, if one is; refuse arguments that do not fit each other."""
    from balancemix.errors import InputError
    from balancemix.run import Run

    arrays = (arguments.labels, arguments.confidence)
    if arguments.data is None:
        if None in arrays:
            raise InputError("name DATA or a RUN, or give both --labels and --confidence")
        if arguments.sample is not None or arguments.passport is not None:
            flag = "--passport" if arguments.sample is None else "--sample"
            raise InputError(f"{flag} needs DATA or a RUN, beside which answers are kept")
        return None
    if arguments.labels is not None:
        raise InputError(
            "--labels and --confidence stand for DATA; with DATA, give --confidence alone"
        )
    path = Path(arguments.data).expanduser()
    if not is_run(path):
        return None
    if arguments.confidence is not None:
        raise InputError("--confidence is of the rows of DATA; name the data, not a run")
    return Run.open(path)


def inputs(arguments: argparse.Namespace) -> list[Path]:
    """List the files that are read."""
    named = (arguments.data, arguments.labels, arguments.confidence, arguments.issues)
    return [Path(name).expanduser() for name in named if name is not None]
