"""`balancemix review DATA`: open the review page, after an audit if there was none."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from balancemix.commands.judging import add_embedding

if TYPE_CHECKING:
    from collections.abc import Callable

    from balancemix.auditing.findings import Findings
    from balancemix.auditing.judged import Judged
    from balancemix.data import Source
    from balancemix.data.decisions.store import Store
    from balancemix.options import ReadOptions
    from balancemix.review.desk import Desk, Settings
    from balancemix.review.handling import DeskThread
    from balancemix.review.key import Key
    from balancemix.review.pictures import Pictures

LOOPBACK = "127.0.0.1"
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
    folder.mkdir(parents=True, exist_ok=True)
    with only_server(folder) as announce:
        thread = DeskThread()
        try:
            desk = open_desk(arguments, source, options, folder, data, thread)
            serve(arguments, desk, thread, folder, announce)
        finally:
            thread.close()


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
    folder: Path,
    data: str,
    thread: DeskThread,
) -> Desk:
    """Open the store in the desk's thread, after an audit if it has none."""
    from balancemix.auditing.snapshot import save_snapshot
    from balancemix.data.decisions.store import Store
    from balancemix.progress import progress
    from balancemix.review.desk import Desk

    judge = judge_of(arguments)
    store: Store = thread.run(lambda: Store.open(folder, create=True))
    if thread.run(store.newest_snapshot_id) is None:
        findings = first_audit(arguments, judge)
        thread.run(save_snapshot, store, findings, progress)
    settings = settings_of(arguments, data)
    pictures = pictures_of(source, options, folder, arguments.max_pixels)
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
            return judge_data(plan.data.path, options, plan, factors=factors)
        return judge_arguments(arguments, run_, verified=verified, factors=factors)

    return judge


def first_audit(arguments: argparse.Namespace, judge: Callable[..., Judged]) -> Findings:
    """Judge the data."""
    from balancemix.auditing.findings import find
    from balancemix.commands import sample
    from balancemix.commands.audit import find_run

    print("No audit of this data is kept yet: judging its labels first.", file=sys.stderr)
    measured = sample.measure(arguments, find_run(arguments), judge)
    calibration = None if measured is None else measured.calibration
    return find(judge(verified=True), calibration=calibration)


def settings_of(arguments: argparse.Namespace, data: str) -> Settings:
    """Say how the page asks, and which commands it names."""
    from balancemix.review.desk import QUESTION, Settings

    word = shlex.quote(data)
    commands = {
        "review": f"balancemix review {shlex.quote(arguments.data)}",
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


def serve(
    arguments: argparse.Namespace, desk: Desk, thread: Any, folder: Path, announce: Any
) -> None:
    """Take the port, let browsers in, and answer until Ctrl-C."""
    from balancemix.review import server
    from balancemix.review.app import make_app
    from balancemix.review.security import Gate, hosts_of

    key = kept_key(arguments, folder)
    with server.bind(arguments.host, key.port) as listener:
        port = listener.getsockname()[1]
        keep_key(folder, key, port)
        shown = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        address = f"http://{shown}:{port}"
        announce(address)
        hosts = hosts_of(port, arguments.host)
        gate = Gate(key.key, desk.store_id, hosts, any_address=arguments.host != LOOPBACK)
        app = make_app(desk, thread, gate)
        if arguments.host != LOOPBACK:
            say_open(arguments.host, port)
        say_address(arguments, desk, f"{address}/#k={key.key}", folder)
        server.serve(app, listener)
    before = desk.store.file
    print(f"Ended. Every answer is saved in {before.parent.name}/{before.name}")


def kept_key(arguments: argparse.Namespace, folder: Path) -> Key:
    """Find the key and the port of a store, or draw a new key."""
    from balancemix.review.key import Key, read_key

    kept = None if arguments.new_key else read_key(folder)
    if kept is None:
        try:
            old = read_key(folder)
        except ValueError:
            old = None
        kept = Key.new(None if old is None else old.port)
    return kept if arguments.port is None else replace(kept, port=arguments.port)


def keep_key(folder: Path, key: Key, port: int) -> None:
    """Keep the key with the port that was taken."""
    from balancemix.review.key import write_key

    write_key(folder, replace(key, port=port))


def say_open(host: str, port: int) -> None:
    """Warn that others can read what is sent."""
    print(
        f"warning: --host {host}: what is sent is not encrypted, and everybody on the network can "
        f"read it. Better: ssh -L {port}:{LOOPBACK}:{port} THIS_MACHINE, without --host",
        file=sys.stderr,
    )


def say_address(arguments: argparse.Namespace, desk: Desk, address: str, folder: Path) -> None:
    """Print where the page is, and open it if a person with a browser is there."""
    from balancemix.commands.verified import counted
    from balancemix.errors import printable

    answered = sum(entry.mode != "file" for entry in desk.log.live())
    found = counted(len(desk.listed), "finding")
    print(
        f"Review of {printable(arguments.data)}: {found}, {answered:,} answered. Open {address} "
        "(Ctrl-C ends; every answer is already saved)",
        flush=True,
    )
    if desk.changed is not None:
        print(desk.changed, file=sys.stderr)
    if not arguments.no_open and arguments.host == LOOPBACK and has_browser():
        import webbrowser

        webbrowser.open(address)


def has_browser() -> bool:
    """Tell whether a window can open before the person at the terminal."""
    if not sys.stdout.isatty() or "SSH_CONNECTION" in os.environ:
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
