"""How requests are answered: checked here, worked on in the desk's own thread."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from balancemix.errors import InputError
from balancemix.files import to_json
from balancemix.review.desk import Desk
from balancemix.review.queue import Person
from balancemix.review.refused import Refused
from balancemix.review.security import Gate

NO_NAME = "Say who you are first: your name goes with your answers."
WAITS = "this answer is not saved. It waits in this browser."
_LONGEST_TAB = 64


class DeskThread:
    """The one thread in which a desk is made and used: SQLite's connections do not change it."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "desk")

    def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Work in the thread, and wait for it."""
        return self._pool.submit(work, *arguments).result()

    async def wait(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Work in the thread, without holding up other requests."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)

    def close(self) -> None:
        """End the thread, after what it still does."""
        self._pool.shutdown()


async def answer(request: Request, work: Callable[[Desk], Any]) -> Response:
    """Let the desk work, and answer with what it returns as JSON."""
    desk: Desk = request.app.state.desk

    def do() -> str:
        try:
            desk.refresh()
            return to_json(work(desk))
        except InputError as error:
            raise _explain(error) from error

    text = await request.app.state.thread.wait(do)
    return Response(text, media_type="application/json")


def person_of(request: Request) -> Person:
    """Say who asks, and in which tab."""
    gate: Gate = request.app.state.gate
    name, tab = gate.person(request)[1], request.headers.get("tab", "")[:_LONGEST_TAB]
    return Person(None if name is None else request.app.state.desk.spelled(name), tab)


def named(request: Request) -> tuple[str, Person]:
    """Say who asks; refuse whoever has not said."""
    who = person_of(request)
    if who.name is None:
        raise Refused(403, "name", NO_NAME)
    return who.name, who


def _explain(error: InputError) -> Refused:
    """Word what the store complains about for the person at the page."""
    cause = error.__cause__
    if not isinstance(cause, sqlite3.Error):
        return Refused(400, "input", str(error))
    code = (getattr(cause, "sqlite_errorcode", None) or 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return Refused(507, "disk", f"The disk is full: {WAITS}")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Refused(503, "busy", f"Another process is writing: {WAITS}")
    return Refused(507, "disk", f"The store cannot be written ({cause}): {WAITS}")
