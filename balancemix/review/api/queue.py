"""The next questions."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balancemix.review.bodies import number_of, rows_of
from balancemix.review.desk import Desk
from balancemix.review.handling import answer, person_of
from balancemix.review.listed import PROBLEMS
from balancemix.review.queue import Filter, item, next_items
from balancemix.review.refused import Refused

MOST = 60  # findings that a browser holds


async def get_queue(request: Request) -> Response:
    """Hand out the next pictures."""
    who, chosen = person_of(request), filter_of(request)
    count = number_of(request, "n", 0, MOST, 6)
    anyway = bool(number_of(request, "anyway", 0, 1, 0))
    holding = rows_of(request, len(request.app.state.desk.source))
    return await answer(
        request, lambda desk: next_items(desk, who, chosen, count, holding, anyway=anyway)
    )


async def get_item(request: Request) -> Response:
    """Describe one picture."""
    who, row = person_of(request), number_of(request, "row", 0, 10**12, -1)
    return await answer(request, lambda desk: item(desk, check_row(desk, row), who))


def filter_of(request: Request) -> Filter:
    """Read which findings are asked for."""
    classes = len(request.app.state.desk.source.classes)
    column = number_of(request, "class", 0, classes - 1, -1)
    problem = request.query_params.get("kind") or None
    if problem is not None and problem not in PROBLEMS:
        raise Refused(400, "kind", f"kind must be one of: {', '.join(PROBLEMS)}.")
    unsure = bool(number_of(request, "unsure", 0, 1, 0))
    return Filter(None if column < 0 else column, problem, unsure)


def check_row(desk: Desk, row: int) -> int:
    """Refuse a picture that is not there."""
    if not 0 <= row < len(desk.source):
        raise Refused(404, "row", f"There is no picture {row}.")
    return row


routes = [
    Route("/api/queue", get_queue, methods=["GET"]),
    Route("/api/item", get_item, methods=["GET"]),
]
