"""Tables in memory: a pandas frame, known by what it can do; pandas itself is never imported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from balancemix.data.tables.cells import text_of
from balancemix.data.tables.edits import Edits
from balancemix.data.tables.new import WRITERS
from balancemix.progress import Show, silence

NAME = Path("frame")  # in messages, where files have their names


class Frame(Protocol):
    """What is needed of a pandas frame."""

    @property
    def columns(self) -> Any:
        """The names of the columns."""

    @property
    def iloc(self) -> Any:
        """Columns by number."""


def is_frame(data: object) -> TypeGuard[Frame]:
    """Tell whether something is a frame.

    >>> is_frame("photos.csv")
    False
    """
    return hasattr(data, "iloc") and hasattr(data, "columns")


class FrameSheet:
    """A frame as a table, without its index; a copy, so that later changes do not show."""

    file = NAME

    def __init__(self, frame: Frame) -> None:
        self.header = [str(name) for name in frame.columns]
        columns = [_texts(frame.iloc[:, k]) for k in range(len(self.header))]
        self._records = list(map(list, zip(*columns, strict=True)))

    def records(self, show: Show = silence) -> Iterator[list[str]]:
        """Read record by record."""
        return map(list, self._records)

    def write(self, out: Path, edits: Edits) -> None:
        """Write all columns to a new file, of the kind that its ending names."""
        columns = zip(*edits.applied(self.records()), strict=True)
        WRITERS[out.suffix.lower()](out, dict(zip(self.header, map(list, columns), strict=True)))


def _texts(column: Any) -> list[str]:
    """Write the values of a column as text; what is missing is blank."""
    missing = column.isna().tolist()
    pairs = zip(column.tolist(), missing, strict=True)
    return ["" if gone else text_of(_plain(value)) for value, gone in pairs]


def _plain(value: Any) -> Any:
    """Make Python's own of an array or a number of NumPy."""
    return value.tolist() if hasattr(value, "tolist") else value
