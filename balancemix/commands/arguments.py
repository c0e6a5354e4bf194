"""Arguments that several commands share."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from balancemix.errors import InputError, suggest
from balancemix.options import ABOVE, Meaning, ReadOptions

# A flag, the setting of a plan that it stands for, and what it is.
READING = [
    ("--images", "data.images", "the folder of the images that a table names (default: its own)"),
    (
        "--format",
        "data.format",
        "of DATA (default: recognised): table, coco, voc, deepfashion, npz",
    ),
    ("--sheet", "data.sheet", "of a workbook (default: the first that holds anything)"),
    ("--image-column", "data.image_column", "of a table, the column that names the images"),
    ("--label-column", "data.label_column", "the column of labels; *: each column of 0 and 1"),
    ("--separator", "data.separator", "of labels in a cell: a mark such as |, list, or whole"),
    ("--unlabelled", "data.unlabelled", "what a label that is not given means: absent or unknown"),
    ("--minus-one", "data.minus_one", "what -1 in a table means: absent or unknown"),
]


def add_run(parser: argparse.ArgumentParser) -> None:
    """Declare the run directory."""
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="a directory of `train`")


def add_force(parser: argparse.ArgumentParser, flag: str = "--out") -> None:
    """Declare --force, which replaces the file that `flag` names."""
    parser.add_argument("--force", action="store_true", help=f"replace {flag} if it exists")


def add_above(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare --above; what was called --threshold before is still understood."""
    options: Any = {"type": float, "dest": "above", "default": ABOVE}
    parser.add_argument("--above", help=f"{what} (default %(default)s)", **options)
    parser.add_argument("--threshold", help=argparse.SUPPRESS, **options)


def add_skip_bad(parser: argparse.ArgumentParser) -> None:
    """Declare --skip-bad."""
    parser.add_argument(
        "--skip-bad", action="store_true", help="leave out images that cannot be read"
    )


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare --json."""
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Declare how DATA is read, for `read_options`."""
    group = parser.add_argument_group("how DATA is read")
    for flag, setting, what in READING:
        metavar = flag.strip("-").upper().replace("-", "_")
        group.add_argument(flag, dest=setting, metavar=metavar, help=what)
    group.add_argument(
        "--no-verified",
        action="store_true",
        help="ignore what people decided (DATA.balancemix)",
    )


def read_options(
    arguments: argparse.Namespace, base: ReadOptions = ReadOptions(), **others: Any
) -> ReadOptions:
    """Change options by the flags that are given, and by `others`."""
    found = {setting: getattr(arguments, setting) for _, setting, _ in READING}
    given: dict[str, Any] = {
        key.removeprefix("data."): value for key, value in found.items() if value is not None
    }
    for key in ("unlabelled", "minus_one"):
        word = given.get(key, "absent")
        if word not in get_args(Meaning):
            flag = f"--{key.replace('_', '-')}"
            raise InputError(f"{flag} {word}: {suggest(word, get_args(Meaning))}")
    if "images" in given:
        given["images"] = Path(given["images"])
    if arguments.no_verified:
        given["verified"] = False
    return replace(base, **given, **others)
