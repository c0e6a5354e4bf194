"""The style in which a piece of JSON is written, so that a changed one keeps it."""

from __future__ import annotations

import json
from itertools import product
from typing import Any, NamedTuple

STEPS = ("  ", "    ", "\t", " ", "   ", "        ")


class Style(NamedTuple):
    """One line, or with a `step` a line for each key; `short` puts each value on its key's line."""

    step: str | None = None
    comma: str = ", "
    colon: str = ": "
    ascii_only: bool = False
    short: bool = False
    end: str = "\n"

    def write(self, content: Any, margin: str) -> str:
        """Write a value; the lines after its first begin with `margin`.

        >>> Style(step="  ", short=True).write({"labels": ["cat", "dog"]}, "")
        '{\\n  "labels": ["cat", "dog"]\\n}'
        """
        if self.step is None:
            return self._line(content)
        if not (self.short and isinstance(content, dict)):
            text = json.dumps(content, indent=self.step, ensure_ascii=self.ascii_only)
            return text.replace("\n", f"{self.end}{margin}")
        start = f"{self.end}{margin}{self.step}"
        pairs = (f"{self._line(key)}: {self._line(value)}" for key, value in content.items())
        return "{" + start + f",{start}".join(pairs) + f"{self.end}{margin}" + "}"

    def _line(self, content: Any) -> str:
        between = self.comma, self.colon
        return json.dumps(content, separators=between, ensure_ascii=self.ascii_only)


def style_of(content: Any, text: str, margin: str) -> Style:
    """Find the style in which `content` is written as `text`, or one that is near.

    >>> style_of({"a": [1, 2]}, '{"a":[1,2]}', "")[:3]
    (None, ',', ':')
    """
    end = "\r\n" if "\r\n" in text else "\n"
    if "\n" not in text:
        pairs = ((", ", ": "), (",", ":"), (",", ": "))
        known = [Style(None, *pair, a) for pair, a in product(pairs, (False, True))]
    else:
        ways = product(STEPS, (False, True), (False, True))
        known = [Style(step, ascii_only=a, short=short, end=end) for step, a, short in ways]
    return next((style for style in known if style.write(content, margin) == text), known[0])
