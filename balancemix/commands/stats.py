"""`balancemix stats`: what a data set was taken for, and how imbalanced it is."""

import argparse
from pathlib import Path
from typing import Any

from balancemix.commands.arguments import add_json, add_reading, add_skip_bad, read_options

DESCRIPTION = """\
show how DATA is read, how many labels each class has, and the two imbalance ratios

The first lines say what was recognised and why, and name the flag that overrules it. If DATA is a
file, no image is opened, unless --skip-bad asks to leave out those that cannot be read.

The class ratio is positives of the commonest over positives of the rarest class; the
positive-negative ratio is negatives over positives (the paper's appendix C).

examples:
  balancemix stats photos/
  balancemix stats labels.xlsx --sheet 2024 --label-column tags
  balancemix stats instances.json --images pictures/"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "data", metavar="DATA", help="digits, a folder with labels.csv, a table, an .npz"
    )
    parser.add_argument(
        "--split", help="rows to count (default train; all, if there are no splits)"
    )
    add_skip_bad(parser)
    add_json(parser, "the counts")
    add_reading(parser)


def run(arguments: argparse.Namespace) -> None:
    """Count and print."""
    from balancemix.commands.verified import verified_line
    from balancemix.data import read
    from balancemix.data.splits import rows_of_split
    from balancemix.files import to_json
    from balancemix.labels.classes import describe

    alone, skip_bad = Path(arguments.data).is_file(), arguments.skip_bad
    options = read_options(arguments, skip_bad=skip_bad, labels_only=alone and not skip_bad)
    source = read(arguments.data, options)
    given, verified = source.given, source.verified
    rows = rows_of_split(source, arguments.split, options)
    if len(rows) < len(source):
        given = given[rows]
        verified = None if verified is None else verified[rows]
    facts = describe(given, source.classes, verified) | {"recognised": source.recognised}
    if arguments.json:
        print(to_json(facts, indent=2))
    else:
        show(facts, verified_line(source))


def show(facts: dict[str, Any], verified: str | None = None) -> None:
    """Print the facts for people, and how many labels people verified."""
    from balancemix.commands.show import console

    out = console()
    for sentence in facts["recognised"]:
        out.print(sentence, soft_wrap=True)
    out.print(
        f"{facts['rows']:,} rows, {facts['classes']} classes, "
        f"{facts['positives_per_row']:.2f} positives a row"
    )
    labels = facts["rows"] * facts["classes"]
    for name in ("unknown", "verified"):
        if facts[name]:
            out.print(f"{facts[name]:,} of {labels:,} labels are {name}")
    if verified is not None:
        out.print(verified, soft_wrap=True, markup=False)
    if "class_ratio" in facts:
        out.print(
            f"class imbalance {facts['class_ratio']:.1f}, "
            f"positive-negative imbalance {facts['positive_negative_ratio']:.1f}"
        )
    positives = facts["positives"]
    wide = max(len(name) for name in positives)
    room = max(out.width - wide - 12, 10)
    for name, count in positives.items():
        bar = "█" * round(room * count / max(*positives.values(), 1)) or "▏"
        out.print(f"{name:<{wide}} {count:>8,}  {bar}", markup=False)
