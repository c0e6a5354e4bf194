"""Pictures that surely have a class."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balancemix.review.bodies import number_of
from balancemix.review.desk import Desk
from balancemix.review.handling import answer
from balancemix.review.queue import image_of
from balancemix.review.refused import Refused

COUNT = 6


async def get_examples(request: Request) -> Response:
    """Show pictures of a class that people verified, the newest first."""
    classes = len(request.app.state.desk.source.classes)
    column = number_of(request, "class", 0, classes - 1, -1)
    if column < 0:
        raise Refused(400, "class", "Say of which class: ?class=NUMBER.")
    return await answer(request, lambda desk: examples_of(desk, column))


def examples_of(desk: Desk, column: int) -> dict[str, Any]:
    """Choose verified pictures of a class: those that people saw, and those of the files."""
    seen = sorted(
        (
            (state.seq, row)
            for (row, k), state in desk.states.items()
            if k == column and state.verified and state.verdict == "present"
        ),
        reverse=True,
    )
    rows = [row for _, row in seen]
    source = desk.source
    if source.verified is not None:
        sure = (source.verified[:, column] & (source.given[:, column] == 1)).nonzero()[:, 0]
        answered = {row for row, k in desk.states if k == column}
        rows += [row for row in sure.tolist() if row not in answered][:COUNT]
    return {"class": column, "images": [image_of(desk, row) for row in rows[:COUNT]]}


routes = [Route("/api/examples", get_examples, methods=["GET"])]
