"""`balancemix noise`: noisy labels from clean ones, to be kept and shared."""

import argparse
import sys
from pathlib import Path

from balancemix.commands.arguments import (
    add_force,
    add_json,
    add_reading,
    add_skip_bad,
    read_options,
)
from balancemix.plan.sections import SEED

DESCRIPTION = """\
add noise to the training labels and write the result

NOISE is mislabel:RATE (a positive moves to another class), flip:RATE or flip:POS,NEG (every label
flips), single (one positive a row is kept), drop:RATE (positives are lost), unknown:RATE (labels of
both sides become unknown) or keep:RATE (that share of the rows stays as it was, and is verified).
Several are joined by +, and added in that order. Unknown labels stay unknown, and labels that are
verified in the data are not changed. `train` reads the result: an --out that ends in .csv takes the
place of labels.csv in the folder of the images; of features, one that ends in .npz is the data with
noisy labels, the labels before as truth, what is verified, and the noise.

example:
  balancemix noise photos/ --noise mislabel:0.4 --seed 0 --out noisy.csv
  balancemix noise features.npz --noise mislabel:0.4+unknown:0.5+keep:0.1"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA", help="digits, a folder with labels.csv, an .npz")
    parser.add_argument("--noise", required=True, help="see above")
    parser.add_argument("--seed", type=int, default=SEED, help="default %(default)s")
    parser.add_argument("--out", type=Path, help="default noisy with the data's ending")
    add_force(parser)
    add_skip_bad(parser)
    add_reading(parser)
    add_json(parser, "the measured rates")


def run(arguments: argparse.Namespace) -> None:
    """Add noise, write the labels, and print the measured rates."""
    from balancemix.commands.show import console, make_table
    from balancemix.data import load
    from balancemix.data.formats import find_writer
    from balancemix.data.splits import add_noise
    from balancemix.data.writing import natural_ending, outputs_of, write_labels
    from balancemix.errors import printable
    from balancemix.files import check_output, to_json
    from balancemix.labels.noise import parse

    def check(out: Path) -> None:
        for each in outputs_of(out):
            check_output(each, force=arguments.force, inputs=[Path(arguments.data)])

    parse(arguments.noise)
    if arguments.out is not None:
        find_writer(arguments.out)  # wrong arguments must fail before files are read
        check(arguments.out)
    splits = load(arguments.data, options=read_options(arguments, skip_bad=arguments.skip_bad))
    source, given, measured = add_noise(splits, arguments.noise, arguments.seed)
    out = arguments.out or Path(f"noisy{natural_ending(source)}")
    check(out)
    for note in write_labels(source, given, out, f"{arguments.noise}, seed {arguments.seed}"):
        print(printable(note), file=sys.stderr)
    if arguments.json:
        print(to_json(measured, indent=2))
        return
    shares = [[name.replace("_", " "), f"{value:.2%}"] for name, value in measured.items()]
    console().print(make_table(f"{arguments.noise}, seed {arguments.seed}", ("share", ""), shares))
    console().print(f"written: {out}", soft_wrap=True)
