"""What a person gave us wrong, and how to say it: one line with the place and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


class InputError(ValueError):
    """A mistake in a file or an argument; the commands print it and end with exit code 2."""


def suggest(word: str, known: Sequence[str]) -> str:
    """Name the nearest known word, if one is near, and list them all.

    >>> suggest("flp", ["flip", "drop"])
    "did you mean 'flip'? Known: flip, drop"
    """
    near = difflib.get_close_matches(word, known, n=1)
    listed = ", ".join(known)
    return f"did you mean {near[0]!r}? Known: {listed}" if near else f"use one of: {listed}"


def listing(items: Sequence[str], most: int = 10) -> str:
    """Join the first items and count the others.

    >>> listing(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest} more" if rest > 0 else "")
