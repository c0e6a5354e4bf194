"""Requests to the review page, as its tabs send them, and damaged."""

import json
from typing import Any
from urllib.parse import quote

from tests.torture import decided
from tests.torture.draw import Draw
from tests.torture.literal_page import Asked
from tests.torture.mutate import mutate_bytes, mutate_tree, odd_text, write_json

KEY, HOST = "k" * 43, "127.0.0.1:8742"
IMAGES, CLASSES = list(decided.GIVEN), decided.CLASSES
CLIENTS = [f"answer-{i}" for i in range(12)]  # some are taken
VERDICTS = ["present", "absent", "unsure"]
GETS = (
    "/", "/static/app.css", "/api/state", "/api/queue", "/api/item", "/api/grid", "/api/settle",
    "/api/sample", "/api/changes", "/api/history", "/api/examples", "/api/disputes",
    "/api/progress", "/image/0/256",
)  # fmt: skip
QUERY = ("class", "kind", "n", "holding", "unsure", "anyway", "row", "since", "before", "order",
         "mine")  # fmt: skip
VALUES = ("0", "1", "2", "0,1", "wrong", "missing", "random", "errors", "sample", "-1", "9" * 30,
          "٣", "1,")  # fmt: skip


def request(draw: Draw, cookie: str) -> tuple[Asked, bool]:
    """Draw a request, and tell whether anything of it is odd."""
    touched = draw.chance(0.75)
    name = draw.pick(["Ana", "Ana", "Ben", "ana", "Zoë"])
    headers = [("host", HOST), ("cookie", f"{cookie}={KEY}.{quote(name)}"), ("tab", "1")]
    if draw.chance(0.3):
        parts = [(draw.pick(QUERY), draw.pick(VALUES)) for _ in range(draw.below(4))]
        query = "&".join(f"{key}={quote(value)}" for key, value in parts)
        return _touched("GET", draw.pick(GETS), query, headers, b"", draw), True
    path, body = draw.pick([decisions, decisions, settled, rule, sample, key])(draw)
    headers += [("origin", f"http://{HOST}"), ("content-type", "application/json")]
    if not touched:
        return Asked("POST", path, "", tuple(headers), json.dumps(body).encode()), False
    if draw.chance(0.7):
        body = mutate_tree(body, draw)
    content = write_json(body, draw)
    content = mutate_bytes(content, draw) if draw.chance(0.1) else content
    if draw.chance(0.7):
        return Asked("POST", path, "", tuple(headers), content), True
    return _touched("POST", path, "", headers, content, draw), True


def _touched(
    method: str, path: str, query: str, headers: list[tuple[str, str]], body: bytes, draw: Draw
) -> Asked:
    """Damage what stands around the body of a request."""
    kind = draw.below(8)
    i = draw.below(len(headers))
    odd = odd_text(draw).encode("utf-8", "replace").decode("latin-1")
    if kind == 0:
        method = draw.pick(["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "X", "get"])
    elif kind == 1:
        near = [path + "/", path + odd_text(draw), "/" + path, path.upper(), path[:-1]]
        path = draw.pick([*near, f"/static/../{path}", f"/image/{odd_text(draw)}/256"])
    elif kind == 2:
        query += f"&{draw.pick(QUERY)}={odd}"
    elif kind == 3:
        del headers[i]
    elif kind == 4:
        headers.append(draw.pick(headers))
    elif kind == 5:
        headers[i] = headers[i][0], draw.pick([odd, headers[i][1] + odd, headers[i][1].upper()])
    elif kind == 6:
        names = ("sec-fetch-site", "store", "content-length", "host", "origin", "x-forwarded-host")
        headers.append((draw.pick(names), draw.pick([odd, "cross-site", "evil.example", "null"])))
    return Asked(method, path, query, tuple(headers), body)


def decisions(draw: Draw) -> tuple[str, Any]:
    """Draw answers, undos, and what was passed over."""
    found = [_answer(draw) if draw.chance(0.8) else _undo(draw) for _ in range(draw.below(4))]
    passed = [{"image": draw.pick(IMAGES), "class": draw.pick(CLASSES)} for _ in range(2)]
    return "/api/decisions", {"decisions": found, "passed": passed[: draw.below(3)]}


def _answer(draw: Draw) -> dict[str, Any]:
    image, class_ = draw.pick(IMAGES), draw.pick(CLASSES)
    verdict, mode = draw.pick(VERDICTS), draw.pick(["focus", "sweep", "resolve"])
    if class_ in decided.GIVEN[image].split("|") and mode == "sweep":
        verdict = "present"
    facts = {"client": draw.pick(CLIENTS), "image": image, "class": class_, "verdict": verdict}
    more = {"batch": draw.pick([None, *CLIENTS]), "suggested": draw.below(2), "p": 0.5}
    more |= {"probe": draw.chance(0.5), "width": 640, "whole": draw.chance(0.5), "ms": 900}
    return {**facts, "mode": mode, **{key: more[key] for key in draw.some(list(more))}}


def _undo(draw: Draw) -> dict[str, Any]:
    return {"client": draw.pick(CLIENTS), "verdict": "undone", "undoes": draw.pick(CLIENTS)}


def settled(draw: Draw) -> tuple[str, Any]:
    """Draw a whole picture."""
    parts: dict[str, list[str]] = {"there": [], "not_there": [], "unsure": []}
    for class_ in draw.some(CLASSES):
        parts[draw.pick(list(parts))].append(class_)
    more = {"ms": 5} if draw.chance(0.5) else {}
    facts = {"client": draw.pick(CLIENTS), "image": draw.pick(IMAGES), "shown": CLASSES}
    return "/api/settle", {**facts, **parts, **more}


def rule(draw: Draw) -> tuple[str, Any]:
    """Draw what a class means."""
    words = draw.pick(["", "a cat", " big \n ones ", "é"])
    return "/api/rules", {"class": draw.pick(CLASSES), "text": words}


def sample(draw: Draw) -> tuple[str, Any]:
    """Draw the size of a random sample."""
    return "/api/sample", {"size": 1 + draw.below(6)}


def key(draw: Draw) -> tuple[str, Any]:
    """Draw what lets a browser in."""
    return "/api/key", draw.pick([{"key": KEY, "name": "Ana"}, {"key": KEY}, {"name": "Ben"}])
