"""Bodies of requests, checked field by field: what is not expected is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request

from balancemix.files import from_json
from balancemix.review.refused import Refused

LARGEST = 256 * 1024  # bytes
Check = Callable[[str, Any], Any]
_CLIENT = re.compile(r"[A-Za-z0-9-]{8,64}")


async def read_body(request: Request, check: Check) -> Any:
    """Read JSON, of which `check` returns the value, or refuses it."""
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and int(length) > LARGEST:
        raise _too_large()
    raw = b""
    async for part in request.stream():
        raw += part
        if len(raw) > LARGEST:
            raise _too_large()
    try:
        content = from_json(raw)
    except (ValueError, RecursionError):
        raise Refused(400, "body", "The request is not JSON.") from None
    return check("The request", content)


def record(fields: Mapping[str, Check], optional: Mapping[str, Any] | None = None) -> Check:
    """Expect an object with exactly these fields; `optional` ones may be missing."""

    def check(name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong(name, "must be an object")
        unknown = sorted(set(value) - set(fields))
        if unknown:
            raise _wrong(name, f"has an unknown field {unknown[0]!r}")
        value = {**(optional or {}), **value}
        missing = sorted(set(fields) - set(value))
        if missing:
            raise _wrong(name, f"lacks the field {missing[0]!r}")
        return {field: check_(field, value[field]) for field, check_ in fields.items()}

    return check


def many(check: Check, most: int) -> Check:
    """Expect a list of at most `most` such values."""

    def check_all(name: str, value: Any) -> list[Any]:
        if not isinstance(value, list) or len(value) > most:
            raise _wrong(name, f"must be a list of at most {most}")
        return [check(name, each) for each in value]

    return check_all


def maybe(check: Check) -> Check:
    """Expect such a value, or null."""
    return lambda name, value: None if value is None else check(name, value)


def text(most: int, least: int = 1) -> Check:
    """Expect a text of so many characters."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or not least <= len(value) <= most or not _is_kept(value):
            raise _wrong(name, f"must be a text of {least} to {most} characters")
        return value

    return check


def client(name: str, value: Any) -> str:
    """Expect what makes an answer unique, such as a UUID."""
    if not isinstance(value, str) or not _CLIENT.fullmatch(value):
        raise _wrong(name, "must be 8 to 64 letters, digits and hyphens")
    return value


def one_of(*words: str) -> Check:
    """Expect one of these words."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise _wrong(name, f"must be one of: {', '.join(words)}")
        return value

    return check


def whole(least: int, most: int) -> Check:
    """Expect an integer within bounds."""

    def check(name: str, value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise _wrong(name, f"must be an integer from {least} to {most}")
        return value

    return check


def probability(name: str, value: Any) -> float:
    """Expect a number from 0 to 1."""
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise _wrong(name, "must be a number from 0 to 1")
    return float(value)


def flag(name: str, value: Any) -> bool:
    """Expect true or false."""
    if not isinstance(value, bool):
        raise _wrong(name, "must be true or false")
    return value


def number_of(request: Request, name: str, least: int, most: int, default: int) -> int:
    """Read an integer from the address of a request."""
    value = request.query_params.get(name, "")
    if not value:
        return default
    if not re.fullmatch(r"[0-9]{1,12}", value) or not least <= int(value) <= most:
        raise _wrong(name, f"must be an integer from {least} to {most}")
    return int(value)


def rows_of(request: Request, rows: int, most: int = 100) -> list[int]:
    """Read `holding`: the rows that a tab has already."""
    value = request.query_params.get("holding", "")
    if not value:
        return []
    if not re.fullmatch(r"[0-9]{1,12}(,[0-9]{1,12})*", value) or value.count(",") >= most:
        raise _wrong("holding", f"must be at most {most} rows, joined by commas")
    return [row for row in map(int, value.split(",")) if row < rows]


def _is_kept(value: str) -> bool:
    """Tell whether a store can hold a text; names of files may have bytes that are not UTF-8."""
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _wrong(name: str, what: str) -> Refused:
    return Refused(400, "body", f"{name} {what}.")


def _too_large() -> Refused:
    return Refused(413, "size", f"The request is larger than {LARGEST // 1024} kB.")
