"""Requests to the review page, damaged: methods, addresses, headers and bodies.

Each case opens the page on the same store and sends it some requests, without a socket. An answer
is below 500; a refusal is one sentence and saves nothing; what is saved is what a literal reading
of the request says. Afterwards the page still answers, and holds what the store holds.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from balancemix.auditing.snapshot import fingerprint_of
from balancemix.data import ReadOptions, Source, read
from balancemix.data.decisions.answers import Decision, Settled
from balancemix.data.decisions.snapshots import Suspicion
from balancemix.data.decisions.store import Store
from balancemix.review.app import make_app
from balancemix.review.desk import Desk, Settings
from balancemix.review.pictures import Pictures
from balancemix.review.security import Gate, hosts_of
from tests.torture import decided
from tests.torture.draw import Draw
from tests.torture.literal_page import TABLES, Asked, Known, Rows, saved_by
from tests.torture.outcome import (
    READ,
    REFUSED,
    TRACEBACK,
    UNTIDY,
    WRONG,
    Outcome,
    RefusedError,
    UnsureError,
    attempt,
    listening,
)
from tests.torture.readers import LABEL_READERS, put
from tests.torture.requests import CLIENTS, HOST, KEY, VERDICTS, request

IMAGES, CLASSES = list(decided.GIVEN), decided.CLASSES
SQL = {
    "decision": """SELECT d.client, r.name, i.name, c.name, d.verdict, coalesce(u.client, ''),
        d.mode, d.batch, d.suggested, d.p, d.probe, d.width, d.whole, d.ms FROM decision AS d
        JOIN reviewer AS r ON r.id=d.reviewer JOIN image AS i ON i.id=d.image
        JOIN class AS c ON c.id=d.class LEFT JOIN decision AS u ON u.seq=d.undoes ORDER BY d.seq""",
    "settled": """SELECT s.client, r.name, coalesce(u.client, ''), i.name, s.mode, s.sample,
        p.classes, s.ms FROM settled AS s JOIN reviewer AS r ON r.id=s.reviewer
        JOIN image AS i ON i.id=s.image JOIN palette AS p ON p.id=s.shown
        LEFT JOIN settled AS u ON u.seq=s.undoes ORDER BY s.seq""",
    "passed": """SELECT r.name, i.name, c.name FROM passed AS p JOIN reviewer AS r
        ON r.id=p.reviewer JOIN image AS i ON i.id=p.image JOIN class AS c ON c.id=p.class""",
    "rule": """SELECT r.name, c.name, t.text FROM rule AS t JOIN reviewer AS r ON r.id=t.reviewer
        JOIN class AS c ON c.id=t.class ORDER BY t.seq""",
    "sample": "SELECT row_number() OVER () - 1 FROM sample_unit",
}


class Inline:
    """Works at once, in the one thread there is."""

    def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Work."""
        return work(*arguments)

    async def wait(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Work, too."""
        return work(*arguments)


class Page:
    """The review page, asked odd things."""

    name, group, chunk = "review page: requests", "readers", 500
    modules = tuple(
        f"balancemix.review.{name}"
        for name in (
            *("app", "bodies", "handling", "security", "settling", "sampling"),
            *(f"api.{each}" for each in ("decisions", "settle", "rules", "key", "queue", "grid")),
            *(f"api.{each}" for each in ("state", "history", "examples", "disputes", "image")),
        )
    )

    def prepare(self, folder: Path) -> None:
        """Write pictures, an audit and some answers."""
        images = {f"photos/{name}": LABEL_READERS[0].fixed[name] for name in IMAGES}
        put(folder, images | {"photos/labels.csv": decided.TABLE.encode()})
        self.options = ReadOptions(skip_bad=True, verified=False)
        self.source: Source = read(folder / "photos", self.options)
        self.home = folder / "photos.balancemix"
        with Store.open(self.home, create=True) as store:
            fill(store, self.source)
        self.whole = (self.home / "review.sqlite").read_bytes()
        self.before = files_of(folder / "photos")
        self.loop = asyncio.new_event_loop()

    def open(self) -> None:
        """Open the page on the first store."""
        for end in ("-wal", "-shm"):
            (self.home / f"review.sqlite{end}").unlink(missing_ok=True)
        (self.home / "review.sqlite").write_bytes(self.whole)
        pictures = Pictures.of(self.source, self.options, self.home / "thumbs")
        self.desk = Desk(self.source, Store.open(self.home), Settings("photos"), pictures)
        self.gate = Gate(KEY, self.desk.store_id, hosts_of(8742))
        self.app = make_app(self.desk, Inline(), self.gate)  # type: ignore[arg-type]

    def case(self, draw: Draw, number: int, folder: Path) -> Outcome:
        """Send some requests, then see what is saved."""
        _, opened = attempt(self.open, ("review.sqlite",))
        if opened.kind != READ:
            return opened
        try:
            kinds = []
            for _ in range(1 + draw.below(3)):
                asked, touched = request(draw, self.gate.cookie)
                outcome = self.ask(asked, touched)
                if outcome.kind not in (READ, REFUSED):
                    return outcome
                kinds.append(outcome.kind)
            return self.alive(folder) or Outcome(READ if READ in kinds else REFUSED)
        finally:
            self.desk.store.close()

    def ask(self, asked: Asked, touched: bool) -> Outcome:
        """Send a request, and compare what it saved with what it says."""
        before = self.known()
        with listening():
            reply, outcome = attempt(lambda: self.loop.run_until_complete(send(self.app, asked)))
        if os.environ.get("TORTURE_KEEP"):
            sys.stdout.write(f"{asked} {reply}\n")
        if outcome.kind != READ:
            return Outcome(TRACEBACK, f"{asked.path}: {outcome.detail or outcome.kind}")
        status, body = reply
        if status >= 500:
            return Outcome(TRACEBACK, f"{status} of {asked.path[:20]}")
        after = self.known().rows
        if status >= 300:
            if after != before.rows:
                return Outcome(WRONG, f"{asked.path}: refused, and saved all the same")
            if not touched:
                return Outcome(UNTIDY, f"refused what is right: {asked.path} {status}")
            is_one = asked.method == "HEAD" or is_sentence(body)
            return Outcome(REFUSED) if is_one else Outcome(UNTIDY, f"{status} without a sentence")
        try:
            new = saved_by(asked, before)
        except UnsureError:
            return outcome
        except RefusedError as error:
            return Outcome(WRONG, f"answered {status} what should be refused: {error}")
        expected = {table: in_order(table, before.rows[table] + new[table]) for table in TABLES}
        differ = [table for table in TABLES if after[table] != expected[table]]
        return Outcome(WRONG, f"saved otherwise: {', '.join(differ)}") if differ else outcome

    def known(self) -> Known:
        """Read the store literally."""
        run = self.desk.store._connection.execute
        names = dict(run("SELECT id, name FROM class"))
        rows: Rows = {table: [tuple(row) for row in run(SQL[table])] for table in TABLES}
        rows["settled"] = [
            (*row[:6], tuple(sorted(names[k] for k in json.loads(row[6]))), row[7])
            for row in rows["settled"]
        ]
        people = tuple(row[0] for row in run("SELECT name FROM reviewer ORDER BY id"))
        given = {name: set(labels.split("|")) - {""} for name, labels in decided.GIVEN.items()}
        rows = {table: in_order(table, found) for table, found in rows.items()}
        hosts, drawn = tuple(hosts_of(8742)), len(rows["sample"])
        return Known(hosts, self.gate.cookie, KEY, given, tuple(CLASSES), people, drawn, rows)

    def alive(self, folder: Path) -> Outcome | None:
        """Ask once more: the page answers, holds what is saved, and has changed no file."""
        cookie = (("cookie", f"{self.gate.cookie}={KEY}.Ana"),)
        asked = Asked("GET", "/api/state", "", (("host", HOST), *cookie), b"")
        reply, outcome = attempt(lambda: self.loop.run_until_complete(send(self.app, asked)))
        if outcome.kind != READ or reply[0] != 200:
            return Outcome(TRACEBACK, f"no answer afterwards: {outcome.detail}")
        rows = self.known().rows
        if json.loads(reply[1])["seq"] != len(rows["decision"]) + len(rows["settled"]):
            return Outcome(WRONG, "the page counts other answers than are saved")
        fresh = Desk(self.source, self.desk.store, Settings("photos"))
        if fresh.states != self.desk.states or fresh.status.tolist() != self.desk.status.tolist():
            return Outcome(WRONG, "the page holds other answers than are saved")
        if files_of(folder / "photos") != self.before:
            return Outcome(WRONG, "a file of the data has changed")
        return None


def fill(store: Store, source: Source) -> None:
    """Keep an audit, and answers of two people."""
    found = [("a.png", "cat", 1), ("b.png", "cat", 0), ("c.png", "dog", 0), ("ä.png", "dog", 1)]
    store.add_snapshot(
        source="photos", fingerprint=fingerprint_of(source), seed=0, expected=(1.5, 2.5),
        judge='{"measured": [], "not_judged": []}', names=source.names,
        findings=[
            Suspicion(image, class_, "wrong" if given else "missing", given, 1 - given, 0.75)
            for image, class_, given in found
        ],
    )  # fmt: skip
    people = ("Ana", "Ana", "Ben", "Ben")
    for i, (image, class_, _) in enumerate(found):
        store.record([Decision(image, class_, VERDICTS[i % 3], people[i], "focus", CLIENTS[i])])
    store.settle([Settled("c.png", "Ben", ["cat"], CLASSES, client=CLIENTS[4])])


def files_of(folder: Path) -> dict[str, bytes]:
    """Read all files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def in_order(table: str, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Sort what the store keeps in no order."""
    return sorted(rows) if table == "passed" else rows


def is_sentence(body: bytes) -> bool:
    """Tell whether an answer says why, in one line."""
    try:
        said = json.loads(body)
        return set(said) == {"error", "message"} and said["message"].splitlines()[1:] == []
    except (ValueError, TypeError, AttributeError):
        return False


async def send(app: Any, asked: Asked) -> tuple[int, bytes]:
    """Hand a request to the application, as a server does."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
        "method": asked.method, "path": asked.path, "root_path": "",
        "raw_path": quote(asked.path, errors="replace").encode(),
        "query_string": asked.query.encode("latin-1", "replace"),
        "headers": [(k.encode("latin-1"), v.encode("latin-1")) for k, v in asked.headers],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8742),
    }  # fmt: skip
    said: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": asked.body, "more_body": False}

    async def take(message: Any) -> None:
        said.append(message)

    await app(scope, receive, take)
    body = b"".join(each.get("body", b"") for each in said[1:])
    return said[0]["status"], body
