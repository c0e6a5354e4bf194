"""Labels on which people differ."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balancemix.review.desk import Desk
from balancemix.review.handling import answer
from balancemix.review.log import Entry
from balancemix.review.queue import image_of, labels_of

MOST = 50  # disputes in a reply


async def get_disputes(request: Request) -> Response:
    """List the labels on which people differ, the oldest dispute first."""
    return await answer(request, disputes_of)


def disputes_of(desk: Desk) -> dict[str, Any]:
    """Describe each disputed label, with what everybody says of it."""
    found = sorted(
        (state.seq, row, column)
        for (row, column), state in desk.states.items()
        if state.state == "disputed"
    )
    return {
        "disputed": len(found),
        "items": [
            {
                "image": image_of(desk, row),
                "labels": labels_of(desk.source, row),
                "class": column,
                "given": int(desk.source.given[row, column]),
                "opinions": opinions_of(desk, row, column),
            }
            for _, row, column in found[:MOST]
        ],
    }


def opinions_of(desk: Desk, row: int, column: int) -> list[dict[str, Any]]:
    """List what each person says of a label, in the order of their answers."""
    newest: dict[str, Entry] = {}
    for entry in desk.log.about(row, column):
        newest.setdefault(entry.reviewer, entry)
    return [
        {
            "who": entry.reviewer,
            "verdict": "absent" if entry.column is None else entry.verdict,
            "mode": entry.mode,
            "ms": entry.ms,
            "at": entry.at,
        }
        for entry in sorted(newest.values(), key=lambda entry: entry.seq)
    ]


routes = [Route("/api/disputes", get_disputes, methods=["GET"])]
