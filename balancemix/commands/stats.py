"""`balancemix stats`: how imbalanced a data set is."""

from __future__ import annotations

import argparse
import json

DESCRIPTION = """\
show how many labels each class has, and the two imbalance ratios

The class ratio is positives of the commonest over positives of the rarest class; the
positive-negative ratio is negatives over positives (the paper's appendix C).

example:
  balancemix stats photos/"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA", help="digits, a folder with labels.csv, an .npz")
    parser.add_argument("--split", default="train", help="default train")
    parser.add_argument("--skip-bad", action="store_true", help="leave out unreadable images")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> None:
    """Count and print."""
    from balancemix.commands.show import console
    from balancemix.data import ReadOptions, load
    from balancemix.labels.classes import class_groups, imbalance

    rows = load(arguments.data, options=ReadOptions(skip_bad=arguments.skip_bad)).named(
        arguments.split
    )
    counts = rows.labels.sum(0)
    ratios = imbalance(rows.labels)
    facts = {
        "rows": len(rows),
        "classes": len(rows.classes),
        "positives_per_row": float(rows.labels.sum() / len(rows)),
        **ratios,
    }
    order = counts.argsort(descending=True, stable=True).tolist()
    if arguments.json:
        positives = {rows.classes[k]: int(counts[k]) for k in order}
        sizes = {name: len(index) for name, index in class_groups(counts, "auto").items()}
        print(json.dumps({**facts, "groups": sizes, "positives": positives}, indent=2))
        return
    out = console()
    out.print(
        f"{facts['rows']:,} rows, {facts['classes']} classes, "
        f"{facts['positives_per_row']:.2f} positives a row"
    )
    if ratios:
        out.print(
            f"class imbalance {ratios['class_ratio']:.1f}, "
            f"positive-negative imbalance {ratios['positive_negative_ratio']:.1f}"
        )
    wide = max(len(name) for name in rows.classes)
    room = max(out.width - wide - 12, 10)
    for k in order:
        bar = "█" * round(room * int(counts[k]) / max(int(counts.max()), 1)) or "▏"
        out.print(f"{rows.classes[k]:<{wide}} {int(counts[k]):>8,}  {bar}", markup=False)
