"""How far people are, what is left, and whether it is worth going on."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balancemix.auditing.agreement import agreement
from balancemix.review.answered import Answer, answers_of
from balancemix.review.desk import Desk
from balancemix.review.handling import answer
from balancemix.review.progress import interval, progress


async def get_progress(request: Request) -> Response:
    """Say how far people are, together."""
    return await answer(request, progress_of)


def progress_of(desk: Desk) -> dict[str, Any]:
    """Compute the numbers of the page."""
    given = (desk.source.given == 1).sum(0).tolist()
    stop = desk.settings.stop
    found = progress(desk.listed, desk.states, answers_on(desk), given, stop=stop)
    return {**found, "agreement": agreement_of(desk)}


def answers_on(desk: Desk) -> list[Answer]:
    """List the labels that people answered about."""
    table = desk.source.given
    return answers_of(desk.log.live(), desk.states, lambda row, column: int(table[row, column]))


def agreement_of(desk: Desk) -> dict[str, Any]:
    """Say whether people agree, and how many labels are in dispute."""
    found = agreement(desk.log.live())
    return {
        "people": list(desk.people),
        "both": found.both,
        "same": found.same,
        "kappa": interval(found.kappa, 3),
        "disputed": sum(state.state == "disputed" for state in desk.states.values()),
        "overlap": desk.settings.overlap,
    }


routes = [Route("/api/progress", get_progress, methods=["GET"])]
