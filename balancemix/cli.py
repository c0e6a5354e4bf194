"""The command line: one parser, one place where mistakes become a line and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from balancemix import __version__
from balancemix.commands import COMMANDS
from balancemix.errors import InputError

DESCRIPTION = """\
Train multi-label classifiers on labels that are wrong, missing and imbalanced,
and learn which labels to fix.

  balancemix demo                          see it work, in two minutes
  balancemix train photos/ --out runs/a    train on a folder of images with labels.csv
  balancemix audit runs/a                  list the labels believed wrong, worst first
  balancemix export runs/a                 write labels.csv with the corrections
  balancemix report runs/a --open          see curves, classes and findings on one page
  balancemix bench quick                   compare methods, seeds and noises in tables"""

RESUME = "`--resume` goes on from the last epoch"


def build_parser() -> argparse.ArgumentParser:
    """Put the parsers of all commands together; imports nothing heavy."""
    parser = argparse.ArgumentParser(
        prog="balancemix",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"balancemix {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        summary, _, _ = command.DESCRIPTION.partition("\n")
        child = commands.add_parser(
            name,
            help=summary.replace("%", "%%"),  # argparse would format it
            description=command.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(child)
        child.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0 if it did what it should, 2 if what it was given cannot be used.

    A command that can half succeed returns a code of its own.
    """
    arguments = build_parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = _show_warning
        try:
            code: int | None = arguments.run(arguments)
        except InputError as error:
            print(f"balancemix: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            how = getattr(COMMANDS[arguments.command], "STOPPED", RESUME)
            print(f"balancemix: stopped; {how}", file=sys.stderr)
            return 130
    return code or 0


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    # Ours are for the person at the terminal, once; those of libraries are for their authors.
    if category is UserWarning and os.environ.get("RANK", "0") == "0":
        print(f"warning: {message}", file=sys.stderr)
