"""Cells of files that have types: their text, and a value of the same kind for another text."""

from __future__ import annotations

import json
import math
from typing import Any

from balancemix.files import from_json


def text_of(value: Any) -> str:
    """Write a value as the text of a cell: blank for none, 1 for 1.0, JSON for lists.

    >>> [text_of(value) for value in (None, True, 1.0, 0.5, "a", ["a", 1], float("nan"))]
    ['', 'true', '1', '0.5', 'a', '["a", 1]', '']
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, default=text_of)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def value_like(old: Any, text: str) -> Any:
    """Read a text as a value of the kind of `old`: a number stays a number, a list a list.

    Where there was nothing, a number or a list of JSON is read as such; other text is text. Raises
    ValueError if the text is of no such kind.

    >>> value_like(1.0, "0"), value_like(True, "false"), value_like("1", "0"), value_like(2, "")
    (0.0, False, '0', None)
    >>> value_like(["a"], '["b"]'), value_like(None, "1"), value_like(None, "cat")
    (['b'], 1, 'cat')
    """
    if isinstance(old, str):
        return text
    if text == "":
        return None
    if isinstance(old, bool):
        return _truth(text)
    if isinstance(old, float):
        return float(text)
    if isinstance(old, int):
        return int(text)
    if isinstance(old, list | tuple | dict):
        value = from_json(text)
        if isinstance(value, dict) != isinstance(old, dict) or not isinstance(value, list | dict):
            raise ValueError(f"{text!r} is no JSON list")
        return value
    if old is not None:
        raise ValueError(f"a {type(old).__name__} cannot become {text!r}")
    try:
        value = from_json(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float | list) else text


def _truth(text: str) -> bool:
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if text.lower() not in known:
        raise ValueError(f"{text!r} is neither true nor false")
    return known[text.lower()]
