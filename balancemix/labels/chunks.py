"""Work through an N×K matrix in chunks, so that no temporary is as large as the matrix."""

from collections.abc import Iterator

_LABELS = 1 << 17  # in a chunk: temporary matrices stay in the cache


def chunks(rows: int, columns: int) -> Iterator[slice]:
    """Split the rows of a matrix into chunks that fit the cache.

    >>> list(chunks(3, 1 << 16))
    [slice(0, 2, None), slice(2, 4, None)]
    """
    step = max(1, _LABELS // max(columns, 1))
    for start in range(0, rows, step):
        yield slice(start, start + step)
