"""Go through an N×K matrix piece by piece, so that nothing as large as it is made on the way."""

from __future__ import annotations

from collections.abc import Iterator

_LABELS = 1 << 17  # at once: temporary matrices stay in the cache


def chunks(rows: int, columns: int) -> Iterator[slice]:
    """Cut the rows of a matrix so that a piece fits the cache.

    >>> list(chunks(3, 1 << 16))
    [slice(0, 2, None), slice(2, 4, None)]
    """
    step = max(1, _LABELS // max(columns, 1))
    for start in range(0, rows, step):
        yield slice(start, start + step)
