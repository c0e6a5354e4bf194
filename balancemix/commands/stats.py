"""`balancemix stats`: how imbalanced a data set is."""

import argparse

from balancemix.commands.arguments import add_json, add_skip_bad

DESCRIPTION = """\
show how many labels each class has, and the two imbalance ratios

The class ratio is positives of the commonest over positives of the rarest class; the
positive-negative ratio is negatives over positives (the paper's appendix C).

example:
  balancemix stats photos/"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA", help="digits, a folder with labels.csv, an .npz")
    parser.add_argument("--split", default="train", help="default %(default)s")
    add_skip_bad(parser)
    add_json(parser, "the counts")


def run(arguments: argparse.Namespace) -> None:
    """Count and print."""
    from balancemix.commands.show import console
    from balancemix.data import ReadOptions, load
    from balancemix.files import to_json
    from balancemix.labels.classes import describe

    options = ReadOptions(skip_bad=arguments.skip_bad)
    rows = load(arguments.data, options=options).named(arguments.split)
    facts = describe(rows.given, rows.classes)
    if arguments.json:
        print(to_json(facts, indent=2))
        return
    out = console()
    out.print(
        f"{facts['rows']:,} rows, {facts['classes']} classes, "
        f"{facts['positives_per_row']:.2f} positives a row"
    )
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
