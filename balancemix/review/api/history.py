"""Every answer in its order, newest first."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balancemix.review.api.state import is_hidden
from balancemix.review.bodies import number_of
from balancemix.review.desk import Desk
from balancemix.review.handling import answer, person_of
from balancemix.review.log import Entry
from balancemix.review.queue import Person

PAGE = 50


async def get_history(request: Request) -> Response:
    """List answers before a number of the log; with `mine=1` one's own that still stand."""
    who = person_of(request)
    before = number_of(request, "before", 0, 10**12, 10**12)
    mine = bool(number_of(request, "mine", 0, 1, 0))
    count = number_of(request, "n", 1, PAGE, PAGE)
    return await answer(request, lambda desk: history_of(desk, who, before, mine, count))


def history_of(
    desk: Desk, who: Person, before: int, mine: bool, count: int = PAGE
) -> dict[str, Any]:
    """Describe a page of answers; `before` is where the next page starts, null at the end.

    Undos are not listed, the answers they took back are marked. The labels that a settled picture
    names belong to its one line. What others say of a label that two people are asked about does
    not show before one has answered.
    """
    settled = {entry.client for entry in desk.log.entries if entry.column is None}
    found: list[dict[str, Any]] = []
    for entry in reversed(desk.log.entries[: max(before - 1, 0)]):
        if len(found) == count:
            return {"entries": found, "before": found[-1]["seq"]}
        own = entry.reviewer == who.name
        undone = entry.seq in desk.log.undone
        if entry.verdict == "undone" or entry.batch in settled or (mine and (undone or not own)):
            continue
        if not own and entry.column is not None:
            i = desk.index.get((entry.row, entry.column))
            if i is not None and is_hidden(desk, i, who):
                continue
        found.append(_line(entry, undone))
    return {"entries": found, "before": None}


def _line(entry: Entry, undone: bool) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "client": entry.client,
        "batch": entry.batch,
        "who": entry.reviewer,
        "image": entry.image,
        "row": entry.row if entry.row >= 0 else None,
        "class": entry.class_,
        "verdict": entry.verdict,
        "mode": entry.mode,
        "at": entry.at,
        "undone": undone,
    }


routes = [Route("/api/history", get_history, methods=["GET"])]
