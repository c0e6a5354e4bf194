"""The command line: one parser, one place where mistakes become a line and an exit code."""

import argparse
import io
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from balancemix import __version__, interrupts
from balancemix.commands import COMMANDS
from balancemix.errors import InputError, printable

DESCRIPTION = """\
Train multi-label classifiers on labels that are wrong, missing and imbalanced,
and learn which labels to fix.

  balancemix demo                          see it work, in two minutes
  balancemix train photos/ --out runs/a    train on a folder of images with labels.csv
  balancemix audit photos/                 list the labels that look wrong or missing
  balancemix audit photos/ --sample 50     draw images to look at: how many labels are wrong?
  balancemix review photos/                decide about them on a page in your browser
  balancemix export photos/                write labels.csv with what people decided
  balancemix report runs/a --open          see curves, classes and findings on one page
  balancemix bench quick                   compare methods, seeds and noises in tables"""

BUG = 70  # EX_SOFTWARE
STOPPED = "nothing is left half-written; give the same command again"


def build_parser() -> argparse.ArgumentParser:
    """Put the parsers of all commands together; imports nothing heavy."""
    parser = argparse.ArgumentParser(
        prog="balancemix",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"balancemix {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    anywhere = argparse.ArgumentParser(add_help=False)  # `--debug` also after the command's name
    anywhere.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        summary, _, _ = command.DESCRIPTION.partition("\n")
        child = commands.add_parser(
            name,
            help=summary.replace("%", "%%"),  # argparse would format it
            description=command.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=[anywhere],
        )
        command.add_arguments(child)
        child.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; the one place where an error is printed.

    0 if it did what it should, 2 if what it was given cannot be used, 130 or 143 if it was asked to
    stop, 70 if balancemix has a bug. A command that can half succeed returns a code of its own.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack a letter of a class's name
            stream.reconfigure(errors="backslashreplace")
    arguments = build_parser().parse_args(argv)
    with warnings.catch_warnings(), interrupts.listening():
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = _show_warning
        try:
            code: int | None = arguments.run(arguments)
            sys.stdout.flush()
        except BrokenPipeError:  # `balancemix presets | head -1` has what it wanted
            _close_output()
            return 128 + signal.SIGPIPE if hasattr(signal, "SIGPIPE") else 1
        except (Exception, KeyboardInterrupt) as error:
            if arguments.debug:
                traceback.print_exc()
            message, code = _explain(interrupts.received() or error, arguments)
            print(f"balancemix: {message}", file=sys.stderr)
    return code or 0


def _explain(error: BaseException, arguments: argparse.Namespace) -> tuple[str, int]:
    """Word an error as one line, and choose the exit code."""
    if isinstance(error, InputError):
        return printable(str(error)), 2
    if isinstance(error, KeyboardInterrupt):
        how = getattr(COMMANDS[arguments.command], "stopped", lambda _: STOPPED)(arguments)
        return f"stopped; {printable(how)}", getattr(error, "code", 130)
    if isinstance(error, OSError) and error.strerror:
        names = [str(name) for name in (error.filename, error.filename2) if name is not None]
        where = " to ".join(map(os.fsdecode, names)) or "the system says"
        return printable(f"{where}: {error.strerror}"), 2
    if isinstance(error, MemoryError):
        return "not enough memory; try fewer rows, a smaller --batch-size or --image-size", 2
    return f"this is a bug in balancemix, please report it: {_record(error)}", BUG


def _record(error: BaseException) -> str:
    """Write the traceback to a file, and name the error and the file."""
    summary = printable(" ".join(traceback.format_exception_only(error)[-1].split()))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="balancemix-", suffix=".txt", delete=False, errors="backslashreplace"
        ) as file:
            file.write(f"balancemix {__version__}, Python {sys.version}\n{sys.argv}\n\n")
            file.writelines(traceback.format_exception(error))
    except OSError:
        return f"{summary} (--debug shows the traceback)"
    return f"{summary} (traceback: {file.name})"


def _close_output() -> None:
    """Let nobody write to a closed pipe again, the interpreter at its end included."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):  # not a real file
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def _show_warning(
    message: Warning | str, category: type[Warning], *place: Any, **more: Any
) -> None:
    # Ours are for the person at the terminal, once; those of libraries are for their authors.
    if category is UserWarning and os.environ.get("RANK", "0") == "0":
        print(f"warning: {printable(str(message))}", file=sys.stderr)
