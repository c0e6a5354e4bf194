"""`balancemix export`: a run's labels with the findings of the audit applied."""

from __future__ import annotations

import argparse
from pathlib import Path

from balancemix.commands.audit import add_threshold, findings_of

DESCRIPTION = """\
write the training labels with the audit's corrections applied

The CSV has the form that `train` reads (image,labels,split); rows of other splits are kept as they
are, so it can take the place of the data's labels.csv.

example:
  balancemix export runs/photos --out labels.corrected.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="a directory of `train`")
    parser.add_argument("--out", type=Path, help="CSV to write (default RUN/labels.corrected.csv)")
    add_threshold(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the corrected labels."""
    import torch

    from balancemix.auditing.findings import corrected
    from balancemix.data.splits import HELD_OUT
    from balancemix.files import joined, write_csv
    from balancemix.run import Run
    from balancemix.training.experiment import load_rows

    run_ = Run.open(arguments.run_directory)
    record = run_.read_arrays("labels.npz")
    findings = findings_of(run_, arguments.above)
    labels = corrected(torch.from_numpy(record["given"]), findings)
    classes = record["classes"].tolist()
    lines = [
        (name, joined(row, classes), "train")
        for name, row in zip(record["names"].tolist(), labels.tolist(), strict=True)
    ]
    plan = run_.plan
    for split, rows in load_rows(plan, plan.data.path).splits.items():
        if split != "train":
            pairs = zip(rows.names, rows.labels.tolist(), strict=True)
            written = "train" if split == HELD_OUT else split
            lines += [(name, joined(row, classes), written) for name, row in pairs]
    out = arguments.out or run_.path / "labels.corrected.csv"
    write_csv(out, ("image", "labels", "split"), lines)
    print(f"{out}: {len(lines):,} rows, {len(findings):,} labels changed")
