"""Take answers: each saved once, a request all or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balancemix.data.decisions.answers import Decision
from balancemix.data.decisions.undoing import Undo
from balancemix.review.bodies import (
    client,
    flag,
    many,
    maybe,
    one_of,
    probability,
    read_body,
    record,
    text,
    whole,
)
from balancemix.review.desk import Desk
from balancemix.review.handling import answer, named
from balancemix.review.queue import Person
from balancemix.review.refused import Refused

MOST = 200  # answers in a request
NAME = text(4096)
_ANSWER = record(
    {
        "client": client,
        "image": NAME,
        "class": NAME,
        "verdict": one_of("present", "absent", "unsure"),
        "mode": one_of("focus", "sweep", "resolve"),
        "batch": maybe(client),
        "suggested": maybe(whole(0, 1)),
        "p": maybe(probability),
        "probe": flag,
        "width": maybe(whole(0, 100_000)),
        "whole": flag,
        "ms": maybe(whole(0, 2**31)),
    },
    {
        "batch": None, "suggested": None, "p": None, "probe": False, "width": None, "whole": False,
        "ms": None,
    },
)  # fmt: skip
_UNDO = record({"client": client, "verdict": one_of("undone"), "undoes": client})
_LABEL = record({"image": NAME, "class": NAME})


def _either(name: str, value: Any) -> Any:
    undoes = isinstance(value, dict) and value.get("verdict") == "undone"
    return (_UNDO if undoes else _ANSWER)(name, value)


_BODY = record(
    {"decisions": many(_either, MOST), "passed": many(_LABEL, MOST)},
    {"decisions": [], "passed": []},
)


async def post_decisions(request: Request) -> Response:
    """Save answers, and say what became of each."""
    name, who = named(request)
    body = await read_body(request, _BODY)
    return await answer(request, lambda desk: save(desk, name, who, body))


def save(desk: Desk, name: str, who: Person, body: dict[str, Any]) -> dict[str, Any]:
    """Save a request, and say what became of each answer."""
    answers = [_answer_of(desk, name, each) for each in body["decisions"]]
    passed = [(each["image"], each["class"]) for each in body["passed"]]
    for image, class_ in passed:
        _check_label(desk, image, class_)
    new = [each for each in answers if desk.log.by_client(each.client) is None]
    told = [line for each in new if isinstance(each, Decision) for line in _told(desk, each, who)]
    desk.tabs |= {each.client: who.tab for each in new}
    counts = desk.save(answers, passed, name)
    saved = [_saved(desk, each, count) for each, count in zip(answers, counts, strict=True)]
    return {"saved": saved, "seq": len(desk.log), "told": told}


def _answer_of(desk: Desk, name: str, each: dict[str, Any]) -> Decision | Undo:
    if each["verdict"] == "undone":
        return Undo(each["undoes"], name, each["client"])
    image, class_ = each["image"], each["class"]
    row = _check_label(desk, image, class_)
    given = -1 if row is None else int(desk.source.given[row, desk.column[class_]])
    if each["mode"] == "sweep" and each["verdict"] == "absent" and given == 1:
        raise Refused(
            400, "sweep", "A sweep never removes a label: look at the picture by itself first."
        )
    return Decision(
        image,
        class_,
        each["verdict"],
        name,
        each["mode"],
        each["client"],
        each["batch"],
        desk.snapshot.id if desk.snapshot is not None else None,
        each["suggested"],
        each["p"],
        each["probe"],
        each["width"],
        each["whole"],
        each["ms"],
    )


def _check_label(desk: Desk, image: str, class_: str) -> int | None:
    """Find the row of a label; None for a picture that the data no longer has."""
    if class_ not in desk.column:
        raise Refused(404, "class", f"“{class_}” is not a class of this data.")
    row = desk.place.get(image)
    if row is None and not desk.store.knows_image(image):
        raise Refused(404, "image", f"{image} is not a picture of this data.")
    return row


def _told(desk: Desk, each: Decision, who: Person) -> Sequence[dict[str, Any]]:
    """Say who answered the same before: somebody else, or oneself in another tab.

    Not where two people are asked on purpose.
    """
    row, column = desk.place.get(each.image), desk.column[each.class_]
    if row is None or each.mode == "resolve":
        return []
    i = desk.index.get((row, column))
    if i is not None and desk.shared()[i]:
        return []
    for entry in desk.log.about(row, column):
        mine = entry.reviewer.casefold() == each.reviewer.casefold()
        if mine and desk.tabs.get(entry.client, who.tab) == who.tab:
            continue
        verdict = "absent" if entry.column is None else entry.verdict
        return [{"image": each.image, "class": each.class_, "who": entry.reviewer,
                 "verdict": verdict}]  # fmt: skip
    return []


def _saved(desk: Desk, each: Decision | Undo, count: int) -> dict[str, Any]:
    entry = desk.log.by_client(each.client)
    state = desk.state(entry.row, entry.column) if entry and entry.column is not None else None
    facts: dict[str, Any] = {
        "client": each.client,
        "seq": entry.seq if entry else None,
        "state": state.state if state else None,
        "verified": bool(state and state.verified),
    }
    return {**facts, "undone": count} if isinstance(each, Undo) else facts


routes = [Route("/api/decisions", post_decisions, methods=["POST"])]
