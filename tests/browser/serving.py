"""Serve a review as a process of its own, which can be killed and started again.

Importing PyTorch takes seconds, so that one process does it and forks a server for each test:
`python -m tests.browser.serving` reads a command as a line of JSON and answers with a process id.
"""

import json
import os
import re
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

PATIENCE = float(
    os.environ.get("PATIENCE", 60)
)  # seconds until something counts as stuck, on a busy machine
PR_SET_PDEATHSIG = 1  # Linux
ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+)/#k=[\w-]+")
# Every decision with its names.
DECISIONS = """SELECT seq, client, reviewer.name AS reviewer, image.name AS image,
    class.name AS class, verdict, undoes, mode, batch, suggested, p, probe, width, whole, ms
    FROM decision JOIN reviewer ON reviewer.id=reviewer JOIN image ON image.id=image
    JOIN class ON class.id=class ORDER BY seq"""
STATES = """SELECT image.name AS image, class.name AS class, state, verdict, verified
    FROM label_state JOIN image ON image.id=image JOIN class ON class.id=class ORDER BY 1, 2"""


class Forge:
    """A process that has imported everything, and forks servers."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.browser.serving"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def start(self, arguments: list[str], log: Path, full: bool = False) -> int:
        """Run `balancemix ARGUMENTS` in a process; returns its number.

        `full` lets the store not grow by another page, as on a full disk.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        order = {"arguments": arguments, "log": str(log), "full": full}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self) -> None:
        """End it."""
        self.process.communicate(timeout=PATIENCE)


def free_port() -> int:
    """Find a port that no other test takes, and that the system does not give away."""
    while True:
        port = 11_000 + secrets.randbelow(20_000)  # browsers refuse 10080
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


class Served:
    """`balancemix review DATA` on a port of its own."""

    def __init__(self, forge: Forge, data: Path, folder: Path, *options: str) -> None:
        self.data, self.file = data, folder / "review.sqlite"
        self.port = free_port()
        self.options = ["--port", str(self.port), "--no-open", *options]
        self.log = folder.parent / "server.log"
        self.full = False
        self._forge, self._process = forge, 0
        self.url, self.address = "", ""

    def start(self) -> None:
        """Start the server, and wait until it listens."""
        self.log.write_text("")
        command = ["review", str(self.data), *self.options]
        self._process = self._forge.start(command, self.log, self.full)
        end = time.monotonic() + PATIENCE
        while (found := ADDRESS.search(self.log.read_text())) is None:
            if not self.alive() or time.monotonic() > end:
                raise AssertionError(self.log.read_text())
            time.sleep(0.02)
        self.address, self.url = found[0], found[1]

    def alive(self) -> bool:
        """Say whether the process is there."""
        with suppress(ProcessLookupError):
            os.kill(self._process, 0)
            return True
        return False

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        self._end(signal.SIGINT)

    def restart(self) -> None:
        """Kill it and start it again: the same port and key."""
        before = self.address
        self.kill()
        self.start()
        assert self.address == before

    def _end(self, sign: signal.Signals) -> None:
        if not self._process or not self.alive():
            return
        os.kill(self._process, sign)
        end = time.monotonic() + PATIENCE
        while self.alive():
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.01)

    # What is in the store, read beside the server

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Ask the database."""
        address = f"{self.file.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=5)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(sql)]

    def decisions(self) -> list[dict[str, Any]]:
        """List all decisions, undone ones and undos too, with their names."""
        return self.query(DECISIONS)

    def states(self) -> list[tuple[Any, ...]]:
        """List the cached state of every label: image, class, state, verdict, verified."""
        return [tuple(row.values()) for row in self.query(STATES)]


def wait_until(page: Any, holds: Callable[[], Any], what: str = "") -> Any:
    """Wait for something outside of the page, while the page goes on; returns what it gave."""
    end = time.monotonic() + PATIENCE
    while not (answer := holds()):
        assert time.monotonic() < end, f"waited in vain: {what or holds}"
        page.wait_for_timeout(20)
    return answer


def wait_decisions(page: Any, served: Served, count: int) -> list[dict[str, Any]]:
    """Wait until there are that many decisions; fails if there are more."""
    wait_until(page, lambda: len(served.decisions()) >= count, f"{count} decisions")
    page.wait_for_timeout(50)  # for one too many
    rows = served.decisions()
    assert len(rows) == count
    return rows


def fill_disk() -> None:
    """Let SQLite run out of pages, with the error of a disk that is full."""
    from balancemix.data.decisions import store

    connect = vars(store)["connect"]

    def limited(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA max_page_count=1")  # that is, as many as there are
        return connection

    vars(store)["connect"] = limited


def main() -> None:
    """Import what serves, and fork it for each line of standard input."""
    import ctypes

    import balancemix.auditing.sample
    import balancemix.commands.review_page
    import balancemix.review.server  # noqa: F401
    from balancemix.cli import main as command
    from balancemix.review.app import api_routes

    api_routes()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are buried at once
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child:
            print(child, flush=True)  # noqa: T201
            continue
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # not to outlive the tests
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for here, there in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(here, there)
        if order["full"]:
            fill_disk()
        code = 1
        try:
            code = command(order["arguments"])
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


if __name__ == "__main__":
    main()
