"""What people agreed a class means."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balancemix.review.bodies import read_body, record, text
from balancemix.review.desk import Desk
from balancemix.review.handling import answer, named
from balancemix.review.refused import Refused

LONGEST = 200  # characters: a line
_BODY = record({"class": text(4096), "text": text(LONGEST, 0)})


async def post_rule(request: Request) -> Response:
    """Save the rule of a class; an empty one takes it away."""
    name, _ = named(request)
    body = await read_body(request, _BODY)
    return await answer(request, lambda desk: save_rule(desk, name, body["class"], body["text"]))


def save_rule(desk: Desk, name: str, class_: str, rule: str) -> dict[str, object]:
    """Save a rule as one line; all earlier ones stay on record."""
    if class_ not in desk.column:
        raise Refused(404, "class", f"“{class_}” is not a class of this data.")
    line = " ".join(rule.split())
    desk.store.add_rule(class_, line, name)
    return {"class": desk.column[class_], "rule": line}


routes = [Route("/api/rules", post_rule, methods=["POST"])]
