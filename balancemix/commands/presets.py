"""`balancemix presets`: the paper's experiments, ready to run."""

import argparse

DESCRIPTION = """\
list the shipped plans: the paper's experiments

Each has its command, its cost and the paper's numbers; `train --plan NAME --dry-run` proves that
one starts, without its data.

example:
  balancemix presets"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", nargs="?", help="show one of them whole")


def run(arguments: argparse.Namespace) -> None:
    """Print names with their head comments, or one file."""
    from balancemix.errors import InputError, suggest
    from balancemix.plan.shipped import presets, summary

    known = presets()
    if arguments.name is None:
        for name, path in known.items():
            first, *rest = summary(path)
            print(f"{name}: {first}", *(f"  {line}" for line in rest), "", sep="\n")
        return
    if arguments.name not in known:
        raise InputError(f"no preset {arguments.name!r}; {suggest(arguments.name, list(known))}")
    print(known[arguments.name].read_text(encoding="utf-8"), end="")
