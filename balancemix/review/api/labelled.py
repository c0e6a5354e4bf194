"""All pictures that are labelled with a class: to look through one that is too rare to judge."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balancemix.review.api.queue import MOST
from balancemix.review.bodies import number_of, rows_of
from balancemix.review.desk import Desk
from balancemix.review.handling import answer, person_of
from balancemix.review.leases import counted
from balancemix.review.queue import Person, image_of, labels_of, minutes_left
from balancemix.review.refused import Refused


async def get_labelled(request: Request) -> Response:
    """Hand out the next pictures of a class."""
    who, source = person_of(request), request.app.state.desk.source
    column = number_of(request, "class", 0, len(source.classes) - 1, -1)
    if column < 0:
        raise Refused(400, "class", "Say of which class: ?class=NUMBER.")
    count = number_of(request, "n", 0, MOST, 6)
    anyway = bool(number_of(request, "anyway", 0, 1, 0))
    holding = rows_of(request, len(source))
    return await answer(
        request, lambda desk: next_labelled(desk, who, column, count, holding, anyway=anyway)
    )


def next_labelled(
    desk: Desk,
    who: Person,
    column: int,
    count: int,
    holding: Collection[int] = (),
    *,
    anyway: bool = False,
) -> dict[str, Any]:
    """Choose the next labelled pictures without an answer, as `next_items` does findings.

    There is no suggestion and no probability: the audit says nothing of these labels.
    """
    rows = (desk.source.given[:, column] == 1).nonzero()[:, 0].tolist()
    asked = [row for row in rows if _is_asked(desk, who, row, column)]
    taken = {} if anyway else desk.leases.others(who.tab)
    picked = [row for row in asked if row not in taken and row not in holding][:count]
    desk.leases.hold(who.tab, who.name or "", [*holding, *picked])
    return {
        "items": [
            {
                "image": image_of(desk, row),
                "labels": labels_of(desk.source, row),
                "findings": [_question(desk, row, column)],
            }
            for row in picked
        ],
        "open": len(asked),
        "answered": len(rows) - len(asked),
        "minutes": minutes_left(desk.log, who.name, len(asked)),
        "others": counted(taken[row] for row in asked if row in taken),
    }


def _is_asked(desk: Desk, who: Person, row: int, column: int) -> bool:
    if desk.state(row, column).state not in ("open", "unsure"):
        return False
    return who.name is None or desk.log.opinion(who.name, row, column) is None


def _question(desk: Desk, row: int, column: int) -> dict[str, Any]:
    return {
        "class": column,
        "problem": None,
        "given": 1,
        "suggested": None,
        "p": None,
        "measured": False,
        "probe": False,
        "state": desk.state(row, column).state,
        "mine": None,
    }


routes = [Route("/api/labelled", get_labelled, methods=["GET"])]
