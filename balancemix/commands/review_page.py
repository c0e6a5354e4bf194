"""`balancemix review DATA`: open the review page, after an audit if there was none."""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from balancemix.commands.judging import add_embedding
from balancemix.commands.review_address import LOOPBACK, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from balancemix.auditing.findings import Findings
    from balancemix.auditing.judged import Judged
    from balancemix.data import Source
    from balancemix.data.decisions.store import Store
    from balancemix.options import ReadOptions
    from balancemix.review.desk import Desk, Settings
    from balancemix.review.handling import DeskThread
    from balancemix.review.pictures import Pictures

MEGAPIXELS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    group = parser.add_argument_group("the page")
    group.add_argument("--port", type=int, help="of the page (default: the one it had before)")
    group.add_argument(
        "--host",
        default=LOOPBACK,
        help="address to listen on (default %(default)s: this machine alone)",
    )
    group.add_argument("--new-key", action="store_true", help="shut out everybody who has the old")
    group.add_argument("--no-open", action="store_true", help="open no browser")
    group.add_argument(
        "--question", help='to ask about a class, such as "Does the garment have “{class}”?"'
    )
    group.add_argument("--blind", action="store_true", help="hide the audit's probabilities")
    group.add_argument(
        "--overlap",
        type=float,
        default=0.05,
        metavar="SHARE",
        help="of the questions that two people are asked (default %(default)s)",
    )
    group.add_argument(
        "--stop",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="of answers that change a label, below which it is time to stop (default %(default)s)",
    )
    group.add_argument(
        "--max-pixels",
        type=int,
        default=MEGAPIXELS,
        metavar="MILLIONS",
        help="of a picture that is shown (default %(default)s)",
    )
    parser.set_defaults(split=None, labels=None, confidence=None, skip_bad=True)
    add_embedding(parser)


def run(arguments: argparse.Namespace, data: str, options: ReadOptions) -> None:
    """Serve the page until Ctrl-C."""
    from balancemix.data import read
    from balancemix.data.decisions import store_folder
    from balancemix.data.decisions.store import Store
    from balancemix.errors import InputError

    check(arguments)
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise InputError(
            "the review page needs Starlette and uvicorn: pip install balancemix[review]"
        ) from None
    from balancemix.review.handling import DeskThread
    from balancemix.review.lock import only_server

    # Rows without their picture are left out.
    options = replace(options, labels_only=False, skip_bad=True)
    source = read(data, options)
    folder = store_folder(source.path)
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            announce = stack.enter_context(only_server(folder))
        except OSError as error:
            raise InputError(
                f"{folder}: cannot be written ({error.strerror}), so no answer could be saved; "
                "check its permissions"
            ) from error
        thread = DeskThread()
        stack.callback(thread.close)
        store: Store = thread.run(lambda: Store.open(folder, create=True))
        stack.callback(thread.run, store.close)
        desk = open_desk(arguments, source, options, store, data, thread)
        if desk.pictures is not None:
            stack.callback(desk.pictures.close)
            desk.pictures.start()
        serve(arguments, desk, thread, announce)


def check(arguments: argparse.Namespace) -> None:
    """Refuse arguments that make no sense, before anything is read."""
    from balancemix.errors import InputError

    for flag, share in (("--overlap", arguments.overlap), ("--stop", arguments.stop)):
        if not 0 <= share <= 1:
            raise InputError(f"{flag} {share}: must be from 0 to 1")
    if arguments.question is not None and "{class}" not in arguments.question:
        raise InputError("--question: must contain {class}, in the place of the class's name")
    if arguments.max_pixels < 1:
        raise InputError(f"--max-pixels {arguments.max_pixels}: must be at least 1 million")
    if arguments.port is not None and not 0 <= arguments.port <= 65535:
        raise InputError(f"--port {arguments.port}: must be from 0 to 65535")


def open_desk(
    arguments: argparse.Namespace,
    source: Source,
    options: ReadOptions,
    store: Store,
    data: str,
    thread: DeskThread,
) -> Desk:
    """Read the store in the desk's thread, after an audit if it has none."""
    from balancemix.auditing.snapshot import save_snapshot
    from balancemix.progress import progress
    from balancemix.review.desk import Desk

    judge = judge_of(arguments)
    if thread.run(store.newest_snapshot_id) is None:
        findings = first_audit(arguments, judge)
        thread.run(save_snapshot, store, findings, progress)
    settings = settings_of(arguments, data)
    pictures = pictures_of(source, options, store.file.parent, arguments.max_pixels)
    desk: Desk = thread.run(Desk, source, store, settings, pictures)
    desk.sampling.judge = judge
    return desk


def judge_of(arguments: argparse.Namespace) -> Callable[..., Judged]:
    """Make the judge of the data: `verified` trusts what people decided."""
    from balancemix.auditing.data import judge_data
    from balancemix.auditing.judged import Factors
    from balancemix.commands.audit import find_run
    from balancemix.commands.judging import judge_arguments

    run_, factors = find_run(arguments), Factors()

    def judge(verified: bool = False) -> Judged:
        if run_ is not None and run_.plan.noise != "none":  # noise that is not in the files
            plan = replace(run_.plan, train=replace(run_.plan.train, device="auto"))
            options = replace(plan.data.reading(), verified=verified)
            judged = judge_data(plan.data.path, options, plan, factors=factors)
        else:
            judged = judge_arguments(arguments, run_, verified=verified, factors=factors)
        factors.finish()
        return judged

    return judge


def first_audit(arguments: argparse.Namespace, judge: Callable[..., Judged]) -> Findings:
    """Judge the data."""
    from balancemix.auditing.findings import find
    from balancemix.auditing.snapshot import LEAST
    from balancemix.commands import sample
    from balancemix.commands.audit import find_run

    print("No audit of this data is kept yet: judging its labels first.", file=sys.stderr)
    measured = sample.measure(arguments, find_run(arguments), judge)
    if measured is None:
        return find(judge(verified=True))
    return find(judge(verified=True), LEAST, measured.calibration)


def settings_of(arguments: argparse.Namespace, data: str) -> Settings:
    """Say how the page asks, and which commands it names."""
    from balancemix.review.desk import QUESTION, Settings

    word = shlex.quote(data)
    commands = {
        "review": f"balancemix review {shlex.quote(arguments.data)}",
        "audit": f"balancemix audit {shlex.quote(arguments.data)}",
        "export": f"balancemix export {word}",
        "train": f"balancemix train {word}",
    }
    return Settings(
        Path(data).name or data,
        arguments.question or QUESTION,
        arguments.blind,
        arguments.overlap,
        arguments.stop,
        commands,
    )


def pictures_of(
    source: Source, options: ReadOptions, folder: Path, megapixels: int
) -> Pictures | None:
    """Open the pictures; None for data that has none."""
    from balancemix.review.pictures import Pictures

    if not isinstance(source.images, list):
        return None
    return Pictures.of(source, options, folder / "thumbs", megapixels * 1_000_000)
