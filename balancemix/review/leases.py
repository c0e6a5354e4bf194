"""Leases: which pictures a tab has been given, so that two people do not look at the same one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

SECONDS = 120.0  # after which a picture is given to somebody else


class Lease(NamedTuple):
    """Who looks at a picture, in which tab, and until when."""

    tab: str
    name: str
    until: float


class Leases:
    """The pictures that tabs look at, in memory only: by row."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._leases: dict[int, Lease] = {}

    def hold(self, tab: str, name: str, rows: Iterable[int]) -> None:
        """Give a tab these pictures, and take back the others that it had.

        What another tab holds stays with it.
        """
        now = self._clock()
        kept = {
            row: lease
            for row, lease in self._leases.items()
            if lease.until > now and lease.tab != tab
        }
        for row in rows:
            kept.setdefault(row, Lease(tab, name, now + SECONDS))
        self._leases = kept

    def others(self, tab: str) -> dict[int, str]:
        """List the pictures that other tabs hold, and whose they are."""
        now = self._clock()
        return {
            row: lease.name
            for row, lease in self._leases.items()
            if lease.until > now and lease.tab != tab
        }


def counted(names: Iterable[str]) -> dict[str, int]:
    """Count the pictures of each person.

    >>> counted(["Ben", "Ana", "Ben"])
    {'Ben': 2, 'Ana': 1}
    """
    return dict(Counter(names))
