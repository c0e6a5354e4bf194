"""`balancemix noise`: noisy labels from clean ones, to be kept and shared."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

DESCRIPTION = """\
add noise to the training labels and write the result

NOISE is mislabel:RATE (a positive moves to another class), flip:RATE or flip:POS,NEG (every label
flips), single (one positive a row is kept) or drop:RATE (positives are lost). An --out that ends in
.csv has the form that `train` reads; .npz holds given, truth, names, classes and the noise.

example:
  balancemix noise photos/ --noise mislabel:0.4 --seed 0 --out noisy.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA", help="digits, a folder with labels.csv, an .npz")
    parser.add_argument("--noise", required=True, help="see above")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    parser.add_argument("--out", type=Path, default=Path("noisy.npz"), help="default noisy.npz")
    parser.add_argument("--skip-bad", action="store_true", help="leave out unreadable images")
    parser.add_argument("--json", action="store_true", help="print the realised rates as JSON")


def run(arguments: argparse.Namespace) -> None:
    """Corrupt, write and say how much came of it."""
    from balancemix.commands.show import console, make_table
    from balancemix.data import ReadOptions, load
    from balancemix.errors import InputError
    from balancemix.files import joined, write_arrays, write_csv
    from balancemix.labels import noise

    wanted = noise.parse(arguments.noise)
    if arguments.out.suffix not in (".csv", ".npz"):
        raise InputError(f"--out {arguments.out}: must end in .csv or .npz")
    splits = load(arguments.data, options=ReadOptions(skip_bad=arguments.skip_bad))
    train, classes = splits.train, splits.classes
    given = wanted.apply(train.labels, arguments.seed)
    realised = noise.realised(train.labels, given)
    if arguments.out.suffix == ".csv":
        lines = []
        for split, rows in splits.splits.items():
            labels = given if split == "train" else rows.labels
            pairs = zip(rows.names, labels.tolist(), strict=True)
            lines += [(name, joined(row, classes), split) for name, row in pairs]
        write_csv(arguments.out, ("image", "labels", "split"), lines)
    else:
        facts = {"noise": arguments.noise, "seed": arguments.seed, "realised": realised}
        arrays = {"given": given.numpy(), "truth": train.labels.numpy()}
        names = {"names": train.names, "classes": classes, "facts": json.dumps(facts)}
        write_arrays(arguments.out, {**arrays, **names})
    if arguments.json:
        print(json.dumps(realised, indent=2))
        return
    shares = [[name.replace("_", " "), f"{value:.2%}"] for name, value in realised.items()]
    console().print(make_table(f"{arguments.noise}, seed {arguments.seed}", ("share", ""), shares))
    console().print(f"written: {arguments.out}", soft_wrap=True)
