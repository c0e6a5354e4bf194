"""What a request to the review page should save, read literally from docs/review-server.md.

`saved_by` names the rows that a request adds to the store, or raises RefusedError.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tests.torture.literal import is_text
from tests.torture.literal_npz import BYTES
from tests.torture.outcome import RefusedError, UnsureError

Rows = dict[str, list[tuple[Any, ...]]]  # of each table, by names
CLIENT = re.compile(r"[A-Za-z0-9-]{8,64}\Z")
TABLES = ("decision", "settled", "passed", "rule", "sample")
SIZE = 256 * 1024


@dataclass(frozen=True)
class Asked:
    """A request as the server gets it."""

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def all(self, name: str) -> list[str]:
        """Find all headers of a name."""
        return [value for key, value in self.headers if key.lower() == name]

    def one(self, name: str) -> str | None:
        """Find the first header of a name."""
        return next(iter(self.all(name)), None)


@dataclass(frozen=True)
class Known:
    """What the server holds: its names, its key, and the rows saved so far."""

    hosts: tuple[str, ...]
    cookie: str
    key: str
    given: dict[str, set[str]]
    classes: tuple[str, ...]
    people: tuple[str, ...]
    drawn: int
    rows: Rows


def saved_by(asked: Asked, known: Known) -> Rows:
    """List the rows that a request adds; refuse one that must not be answered."""
    new: Rows = {table: [] for table in TABLES}
    savers = {
        "/api/decisions": _decisions,
        "/api/settle": _settled,
        "/api/rules": _rule,
        "/api/sample": _sample,
    }
    if asked.path in ("/", "/api/key") or asked.path.startswith("/static/"):
        return new
    person = _person(asked, known)
    if asked.method in ("GET", "HEAD"):
        return new
    if asked.method != "POST" or asked.path not in savers:
        raise RefusedError("nothing is saved there")
    if asked.all("origin") != [f"http://{asked.all('host')[0]}"]:
        raise RefusedError("another page")
    if (asked.one("content-type") or "").split(";")[0].strip().lower() != "application/json":
        raise RefusedError("another type")
    try:
        body = json.loads(asked.body, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise RefusedError("not JSON") from None
    if len(asked.body) > SIZE:
        raise RefusedError("too large")
    savers[asked.path](body, _named(person, known), known, new)
    return new


def _person(asked: Asked, known: Known) -> str:
    """Find who asks: the cookie holds the key and a name."""
    hosts = asked.all("host")
    if len(hosts) != 1 or hosts[0] not in known.hosts:
        raise RefusedError("another host")
    if asked.one("sec-fetch-site") not in (None, "same-origin", "none"):
        raise RefusedError("another site")
    if asked.one("store") not in (None, known.cookie.removeprefix("balancemix-")):
        raise RefusedError("another store")
    parts = [part.strip() for each in asked.all("cookie") for part in each.split(";")]
    mine = [part for part in parts if part.startswith(f"{known.cookie}=")]
    if len(mine) > 1:
        raise UnsureError("two cookies of one name")
    for part in mine:
        key, _, person = part.partition("=")[2].partition(".")
        if key == known.key:
            return unquote(person, errors="replace")
    raise RefusedError("no key")


def _named(person: str, known: Known) -> str:
    """Write a name as it was written first; capitals of English letters are the same."""
    person = " ".join(person.split())
    if not person:
        raise RefusedError("no name")
    if len(person) > 200 or not is_text(person):
        raise UnsureError("an odd name")
    same = (name for name in known.people if name.encode().lower() == person.encode().lower())
    return next(same, person)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise RefusedError("a key twice")
    return dict(pairs)


def _record(value: Any, needed: set[str], optional: Iterable[str] = ()) -> dict[str, Any]:
    if not isinstance(value, dict) or not needed <= set(value) <= needed.union(optional):
        raise RefusedError("other fields")
    return value


def _whole(value: Any, least: int, most: int) -> None:
    if value is not None and (type(value) is not int or not least <= value <= most):
        raise RefusedError("not a number of that size")


def _client(value: Any) -> str:
    if not isinstance(value, str) or not CLIENT.match(value):
        raise RefusedError("no client")
    return value


def _label(image: Any, class_: Any, known: Known) -> None:
    if not isinstance(image, str) or not isinstance(class_, str):
        raise RefusedError("no text")
    if image not in known.given or class_ not in known.classes:
        raise RefusedError("no such label")


def _decisions(body: Any, name: str, known: Known, new: Rows) -> None:
    """Answers, undos, and what was passed over."""
    body = _record(body, set(), {"decisions", "passed"})
    lists = [body.get("decisions", []), body.get("passed", [])]
    if any(not isinstance(each, list) or len(each) > 200 for each in lists):
        raise RefusedError("no list, or too long")
    rows = list(known.rows["decision"])
    for each in lists[0]:
        undo = isinstance(each, dict) and each.get("verdict") == "undone"
        found = _undo(each, name, known, rows, new) if undo else _answer(each, name, known)
        if undo or found[0][0] not in {row[0] for row in rows}:
            rows += found
            new["decision"] += found
    for each in lists[1]:
        each = _record(each, {"image", "class"})
        _label(each["image"], each["class"], known)
        row = (name, each["image"], each["class"])
        if row not in known.rows["passed"] + new["passed"]:
            new["passed"].append(row)


def _answer(each: Any, name: str, known: Known) -> list[tuple[Any, ...]]:
    optional = {"batch", "suggested", "p", "probe", "width", "whole", "ms"}
    each = _record(each, {"client", "image", "class", "verdict", "mode"}, optional)
    _label(each["image"], each["class"], known)
    if each["verdict"] not in ("present", "absent", "unsure"):
        raise RefusedError("no verdict")
    if each["mode"] not in ("focus", "sweep", "resolve"):
        raise RefusedError("no mode")
    given = each["class"] in known.given[each["image"]]
    if each["mode"] == "sweep" and each["verdict"] == "absent" and given:
        raise RefusedError("a sweep removes no label")
    batch, p = each.get("batch"), each.get("p")
    if batch is not None:
        _client(batch)
    _whole(each.get("suggested"), 0, 1)
    _whole(each.get("width"), 0, 100_000)
    _whole(each.get("ms"), 0, 2**31)
    if p is not None and (type(p) not in (int, float) or not 0 <= p <= 1):
        raise RefusedError("not a probability")
    if any(type(each.get(key, False)) is not bool for key in ("probe", "whole")):
        raise RefusedError("not true or false")
    facts = (each["verdict"], "", each["mode"], batch, each.get("suggested"))
    more = (None if p is None else float(p), int(each.get("probe", False)), each.get("width"))
    last = (int(each.get("whole", False)), each.get("ms"))
    return [(_client(each["client"]), name, each["image"], each["class"], *facts, *more, *last)]


def _undo(
    each: Any, name: str, known: Known, rows: list[tuple[Any, ...]], new: Rows
) -> list[tuple[Any, ...]]:
    """Take back one's own answer, all of a batch, or a settled picture."""
    each = _record(each, {"client", "verdict", "undoes"})
    by, what = _client(each["client"]), _client(each["undoes"])
    wholes = known.rows["settled"] + new["settled"]
    if by in {row[0] for row in (*rows, *wholes)}:
        return []
    gone = {row[5] for row in rows}
    mine = [
        row
        for row in rows
        if what in (row[0], row[7]) and row[1] == name and row[4] != "undone" and row[0] not in gone
    ]
    for row in wholes:
        taken = {each[2] for each in wholes}
        if row[0] == what and row[1] == name and not row[2] and row[0] not in taken:
            new["settled"].append((by, name, what, *row[3:7], None))
    blank = (None, None, None, 0, None, 0, None)
    return [
        (f"{by}:{i}" if i else by, name, row[2], row[3], "undone", row[0], row[6], *blank)
        for i, row in enumerate(mine)
    ]


def _settled(body: Any, name: str, known: Known, new: Rows) -> None:
    """A whole picture."""
    needed = {"client", "image", "there", "not_there", "unsure", "shown"}
    body = _record(body, needed, {"sample", "ms"})
    client, image, sample = _client(body["client"]), body["image"], body.get("sample")
    parts = {"present": body["there"], "unsure": body["unsure"], "absent": body["not_there"]}
    for part in (*parts.values(), body["shown"]):
        if not isinstance(part, list):
            raise RefusedError("no list")
        for class_ in part:
            _label(image, class_, known)
    if not isinstance(image, str) or image not in known.given:
        raise RefusedError("no such picture")
    named = sorted((class_, verdict) for verdict, part in parts.items() for class_ in part)
    if len({class_ for class_, _ in named}) < len(named):
        raise RefusedError("a class twice")
    shown = {*body["shown"], *(class_ for class_, _ in named)}
    _whole(sample, 1, 2**31)
    _whole(body.get("ms"), 0, 2**31)
    if sample is not None and (sample != 1 or not known.drawn or shown != set(known.classes)):
        raise RefusedError("no such sample, or not every class")
    if client in {row[0] for row in known.rows["decision"]}:
        raise UnsureError("the number of an answer")
    if client in {row[0] for row in known.rows["settled"]}:
        return
    blank = (client, None, None, 0, None, 0, None)
    new["decision"] += [
        (f"{client}:{i}", name, image, class_, verdict, "", "settle", *blank)
        for i, (class_, verdict) in enumerate(named)
    ]
    row = (client, name, "", image, "settle", sample, tuple(sorted(shown)), body.get("ms"))
    new["settled"].append(row)


def _rule(body: Any, name: str, known: Known, new: Rows) -> None:
    """What a class means, on one line."""
    body = _record(body, {"class", "text"})
    _label(next(iter(known.given)), body["class"], known)
    rule = body["text"]
    if not isinstance(rule, str) or len(rule) > 200 or not is_text(rule, BYTES):
        raise RefusedError("no text")
    line = " ".join(rule.split())
    before = [text for _, class_, text in known.rows["rule"] if class_ == body["class"]]
    if line != (before or [""])[-1]:  # what holds already is not saved again
        new["rule"].append((name, body["class"], line))


def _sample(body: Any, name: str, known: Known, new: Rows) -> None:
    """A random sample, drawn or extended."""
    size = _record(body, {"size"})["size"]
    if size is None:
        raise RefusedError("no size")
    _whole(size, 1, 10_000)
    most = min(size, len(known.given))
    new["sample"] += [(i,) for i in range(known.drawn, most)]
