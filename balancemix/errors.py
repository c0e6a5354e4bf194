"""Every error that balancemix raises on purpose, and how to word one: the place and what to do.

    BalanceMixError
    ├── InputError      a mistake in a file or an argument: one line, exit code 2
    │   └── DamagedFile a file that balancemix wrote no longer holds what it wrote
    └── (Stopped)       a signal asked to stop; a KeyboardInterrupt, see `interrupts`

Whatever else reaches the command line is a bug in balancemix, and is reported as one.
"""

import difflib
from collections.abc import Sequence


class BalanceMixError(Exception):
    """The root of all errors that balancemix raises on purpose."""


class InputError(BalanceMixError, ValueError):
    """A mistake in a file or an argument; the commands print it and end with exit code 2."""


class DamagedFile(InputError):  # noqa: N818  # what it is, not how it is raised
    """A file that balancemix wrote and that has changed since, or cannot be read any more."""


def printable(text: str) -> str:
    """Show control characters as escapes, so that no name moves a terminal's cursor.

    >>> printable("cat\\x1b[2J"), printable("a\\tb")
    ('cat\\\\x1b[2J', 'a\\\\tb')
    """
    return "".join(_escaped(char) if _is_control(char) else char for char in text)


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


# Marks that reorder text or end a line, which a terminal obeys although they print nothing.
_INVISIBLE = "\u2028\u2029\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"


def counted(count: int, what: str) -> str:
    """Write a number and what it counts.

    >>> counted(1, "label"), counted(1200, "label")
    ('1 label', '1,200 labels')
    """
    return f"{count:,} {what}{'s' * (count != 1)}"


def _is_control(char: str) -> bool:
    code = ord(char)
    return code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or char in _INVISIBLE


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
