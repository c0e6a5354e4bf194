"""Commands in a child process that can be killed at a chosen moment, without starting Python anew.

A moment is the n-th time that the command changes the file system below a folder: it is the same
one whenever the case is repeated.
"""

import contextlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from balancemix.cli import main
from tests.torture import names

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.truncate", "os.link", "os.rmdir"}
LIMIT = 120  # seconds
LOGS = ("out", "err", "changes")


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code (minus the signal's number, if one killed it), what it said,
    and how many changes it had made.
    """

    code: int
    out: str
    err: str
    changes: int


def run(
    words: list[Any],
    folder: Path,
    at: int | None = None,
    number: int = signal.SIGKILL,
    after: float | None = None,
    file_size: int | None = None,
) -> Ended:
    """Run a command in a folder; send it a signal at the `at`-th change, or `after` seconds.

    `file_size` limits the size of every file, as a full disk does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    logs = Path(tempfile.mkdtemp(dir=names.scratch(), prefix="case-"))
    for name in LOGS:
        (logs / name).touch()  # a child may be killed before it has opened them
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _be_child([str(word) for word in words], folder, logs, at, number, file_size)
    code = _wait(child, number, after)
    said = {name: (logs / name).read_text("utf-8", "replace") for name in LOGS}
    shutil.rmtree(logs)
    return Ended(code, said["out"], said["err"], len(said["changes"]))


def _wait(child: int, number: int, after: float | None) -> int:
    begin = time.monotonic()
    sent = False
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        spent = time.monotonic() - begin
        if after is not None and spent > after and not sent:
            sent = True
            os.kill(child, number)
        if spent > LIMIT:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        time.sleep(0.002)


def _be_child(
    words: list[str], folder: Path, logs: Path, at: int | None, number: int, size: int | None
) -> None:
    code = 70
    try:
        os.setsid()
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(logs / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        sys.stdout, sys.stderr = (os.fdopen(i, "w", closefd=False) for i in (1, 2))
        os.chdir(folder)
        counter = os.open(logs / "changes", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        _count_changes(str(folder), counter, at, number)
        if size is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        code = main(words)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 2
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _count_changes(folder: str, counter: int, at: int | None, number: int) -> None:
    made = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal made
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & 0o3
        if not (writes or event in CHANGES):
            return
        with contextlib.suppress(TypeError):
            if not os.path.abspath(os.fsdecode(arguments[0])).startswith(folder):
                return
            made += 1
            os.write(counter, b".")
            if made - 1 == at:
                os.kill(os.getpid(), number)

    sys.addaudithook(hook)
