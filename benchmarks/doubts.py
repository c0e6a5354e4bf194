"""What BalanceMix makes of right positives, by frequency of the class: a table of docs/results.md.

It is read from the runs with clean labels in bench/coco, which `results.py coco` trains.
"""

from __future__ import annotations

import sys
from statistics import mean

from results import ROOT, put

from balancemix.labels.classes import class_counts, class_groups
from balancemix.labels.table import Status
from balancemix.run import Run

HEAD = "| classes | clean | set to absent | ambiguous |\n|---|---|---|---|\n"


def main() -> None:
    """Count, and write the table."""
    paths = sorted((ROOT / "bench" / "coco" / "runs").glob("balancemix-none-*"))
    if not paths:
        sys.exit("bench/coco: no run with clean labels has ended; run results.py coco first")
    runs = [Run(path).table for path in paths]
    lines = ""
    for name, classes in class_groups(class_counts(runs[0].given), "auto").items():
        shares: list[list[float]] = [[], [], []]
        for run in runs:
            given, status = (matrix[:, classes] for matrix in (run.given, run.status))
            held = given > 0
            kinds = [status == kind for kind in (Status.CLEAN, Status.ABSENT, Status.AMBIGUOUS)]
            for found, kind in zip(shares, kinds, strict=True):
                found.append(100 * float(kind[held].double().mean()))
        lines += f"| {name} | " + " | ".join(f"{mean(found):.0f} %" for found in shares) + " |\n"
    put("doubts", HEAD + lines)


if __name__ == "__main__":
    main()
