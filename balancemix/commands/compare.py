"""`balancemix compare`: whether one run is better than another, class by class."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from balancemix.commands.arguments import add_force, add_json

if TYPE_CHECKING:
    from balancemix.evaluation.compare import Difference
    from balancemix.training.compare import Compared

DESCRIPTION = """\
compare two runs by class: did the new labels, method or settings help?

Both models predict the test rows, which must be the same, and are scored on the labels that the
data of RUN-B has now. The 95 % interval of the mean difference comes from test rows drawn again
with replacement, the same for both runs. Where data cannot be read any more, the recorded scores
are compared, and the interval comes from draws of classes.

One pair of runs does not show how much a result changes with the seed: train both again with
another --seed, and compare those.

example:
  balancemix compare runs/photos runs/photos-corrected --figure gain.svg"""

NAMED = 5  # classes that gained and that lost most
SEEDS = (
    "one pair of runs: the interval does not include how much results change with the seed of the "
    "training"
)
VERDICTS = {
    "better": "{b} is better than {a}",
    "worse": "{b} is worse than {a}",
    "not shown": "no difference between {b} and {a} is shown",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("before", type=Path, metavar="RUN-A", help="the run to compare with")
    parser.add_argument("after", type=Path, metavar="RUN-B", help="the run that may be better")
    parser.add_argument(
        "--figure",
        type=Path,
        metavar="FILE",
        help="write the differences of all classes, .svg or .png",
    )
    add_force(parser, "--figure")
    add_json(parser, "the comparison")


def run(arguments: argparse.Namespace) -> None:
    """Score both runs and show the differences."""
    from balancemix.errors import InputError
    from balancemix.files import check_output, to_json
    from balancemix.run import Run
    from balancemix.training.compare import compare_runs

    figure = arguments.figure
    if figure is not None:
        if figure.suffix.lower() not in (".svg", ".png"):
            raise InputError(f"--figure {figure}: must end in .svg or .png")
        check_output(figure, force=arguments.force)
    compared = compare_runs(Run.open(arguments.before), Run.open(arguments.after))
    names = {"a": str(arguments.before), "b": str(arguments.after)}
    if figure is not None:
        _draw(compared, names, figure)
    if arguments.json:
        facts = {"before": names["a"], "after": names["b"], "rows": compared.rows}
        facts |= compared.comparison.as_json() | {"notes": [*compared.notes, SEEDS]}
        print(to_json(facts, indent=2))
    else:
        _show(compared, names)
        if figure is not None:
            print(figure)


def _show(compared: "Compared", names: dict[str, str]) -> None:
    from balancemix.commands.show import console, make_table, written
    from balancemix.evaluation.compare import extremes

    out, result = console(), compared.comparison
    drawn = "test rows" if result.over == "test rows" else "classes"
    verdict = VERDICTS[result.all.verdict].format(**names)
    out.print(f"{verdict}: mAP {_signed(result.all)} on {compared.rows:,} rows", soft_wrap=True)
    lines = [("all", result.all), *result.by_group.items()]
    rows = [
        [name, str(each.classes), *(written(x, ".2f") for x in (each.before, each.after)),
         written(each.value, "+.2f"), _interval(each)]
        for name, each in lines
    ]  # fmt: skip
    header = ("classes", "number", "RUN-A", "RUN-B", "difference", f"95 %, by draws of {drawn}")
    out.print(make_table("mAP", header, rows))
    sides = result.before, result.after, result.difference
    rows = []
    for kind, k in extremes(result, NAMED):
        before, after, change = (float(each[k]) for each in sides)
        rows.append([kind, result.classes[k], f"{before:.1f}", f"{after:.1f}", f"{change:+.1f}"])
    if rows:
        out.print(
            make_table("classes that changed most", ("", "class", "RUN-A", "RUN-B", ""), rows)
        )
    for note in (*compared.notes, SEEDS):
        out.print(note, soft_wrap=True)


def _signed(each: "Difference") -> str:
    from balancemix.commands.show import written

    return f"{written(each.value, '+.2f')} (95 % interval {_interval(each)})"


def _interval(each: "Difference") -> str:
    return "–" if math.isnan(each.low) else f"{each.low:+.2f} to {each.high:+.2f}"


def _draw(compared: "Compared", names: dict[str, str], figure: Path) -> None:
    from balancemix.report.figures.differences import differences
    from balancemix.report.figures.style import save_as

    result = compared.comparison
    groups = {name: [int(k) for k in index] for name, index in result.groups.items()}
    title = f"{Path(names['b']).name} against {Path(names['a']).name}: {_signed(result.all)}"
    interval = (result.all.value, result.all.low, result.all.high)
    drawing = differences(result.difference, interval, groups, result.classes, title)
    save_as(drawing, figure)
