"""Arguments that several commands share."""

import argparse
from pathlib import Path
from typing import Any

from balancemix.options import ABOVE


def add_run(parser: argparse.ArgumentParser) -> None:
    """Declare the run directory."""
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="a directory of `train`")


def add_force(parser: argparse.ArgumentParser) -> None:
    """Declare --force."""
    parser.add_argument("--force", action="store_true", help="replace --out if it exists")


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
