"""Settle whole pictures, draw the random sample, and say what it measured."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balancemix.data.decisions.answers import Settled
from balancemix.review.bodies import (
    client,
    many,
    maybe,
    number_of,
    one_of,
    read_body,
    record,
    rows_of,
    text,
    whole,
)
from balancemix.review.desk import Desk
from balancemix.review.handling import answer, named, person_of
from balancemix.review.measuring import Measuring
from balancemix.review.queue import Person
from balancemix.review.refused import Refused
from balancemix.review.settling import Settling

MOST = 20  # pictures in an answer
LARGEST = 10_000  # pictures of a sample
CLASSES = 100_000
_NAME = text(4096)
_NAMES = many(_NAME, CLASSES)
_SETTLED = record(
    {
        "client": client,
        "image": _NAME,
        "there": _NAMES,
        "not_there": _NAMES,
        "unsure": _NAMES,
        "shown": _NAMES,
        "sample": maybe(whole(1, 2**31)),
        "ms": maybe(whole(0, 2**31)),
    },
    {"sample": None, "ms": None},
)
_SIZE = record({"size": whole(1, LARGEST)})
_ORDER = one_of("sample", "random", "errors")


async def get_settle(request: Request) -> Response:
    """Hand out the next pictures."""
    who = person_of(request)
    order = _ORDER("order", request.query_params.get("order"))
    count = number_of(request, "n", 0, MOST, 3)
    holding = rows_of(request, len(request.app.state.desk.source))
    anyway = bool(number_of(request, "anyway", 0, 1, 0))
    settling: Settling = request.app.state.settling
    return await answer(
        request, lambda desk: settling.next_pictures(who, order, count, holding, anyway=anyway)
    )


async def post_settle(request: Request) -> Response:
    """Save what is in a picture."""
    name, who = named(request)
    body = await read_body(request, _SETTLED)
    return await answer(request, lambda desk: settle(desk, name, who, body))


def settle(desk: Desk, name: str, who: Person, body: dict[str, Any]) -> dict[str, Any]:
    """Save a whole picture, once; in a sample only if every class was shown."""
    if body["image"] not in desk.place and not desk.store.knows_image(body["image"]):
        raise Refused(404, "image", f"{body['image']} is not a picture of this data.")
    parts = {key: body[key] for key in ("there", "not_there", "unsure")}
    said = [class_ for part in parts.values() for class_ in part]
    for class_ in {*said, *body["shown"]} - desk.column.keys():
        raise Refused(404, "class", f"“{class_}” is not a class of this data.")
    if len(set(said)) < len(said):
        raise Refused(400, "body", "A class is named twice: give it one answer.")
    if body["sample"] is not None:
        if body["sample"] not in {each.id for each in desk.store.samples()}:
            raise Refused(404, "sample", f"There is no sample {body['sample']}.")
        if not desk.column.keys() <= {*said, *body["shown"]}:
            raise Refused(400, "sample", "In a sample every class must be shown.")
    desk.tabs.setdefault(body["client"], who.tab)
    desk.settle(
        Settled(
            body["image"],
            name,
            parts["there"],
            body["shown"],
            parts["unsure"],
            parts["not_there"],
            sample=body["sample"],
            client=body["client"],
            ms=body["ms"],
        )
    )
    return {"client": body["client"], "seq": len(desk.log), "sample": desk.sampling.facts()}


async def post_sample(request: Request) -> Response:
    """Draw a sample, or extend it."""
    named(request)
    body = await read_body(request, _SIZE)

    def draw(desk: Desk) -> dict[str, Any]:
        desk.sampling.draw(body["size"])
        return {"sample": desk.sampling.facts()}

    return await answer(request, draw)


async def get_sample(request: Request) -> Response:
    """Say how far the sample is and, once all of it is answered, what it measured."""
    measuring: Measuring = request.app.state.measuring
    return await answer(request, lambda _: measuring.facts())


routes = [
    Route("/api/settle", get_settle, methods=["GET"]),
    Route("/api/settle", post_settle, methods=["POST"]),
    Route("/api/sample", get_sample, methods=["GET"]),
    Route("/api/sample", post_sample, methods=["POST"]),
]
