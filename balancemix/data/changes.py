"""The change log beside a file of labels, `noisy.csv.changes.csv` of `noisy.csv`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from torch import Tensor

from balancemix.data.source import Source
from balancemix.files import write_sheet

HEADER = ("row", "image", "class", "before", "after", "why")
WORDS = {1: "present", 0: "absent", -1: "unknown"}
BLOCK = 4096  # rows compared at once

Why = str | Callable[[int, int], str]  # a reason for all changes, or for that of row i, class k


def log_of(out: Path) -> Path:
    """Name the change log of a file.

    >>> log_of(Path("labels.corrected.xlsx")).name
    'labels.corrected.xlsx.changes.csv'
    """
    return out.with_name(f"{out.name}.changes.csv")


def write_changes(source: Source, given: Tensor, out: Path, why: Why) -> None:
    """Log each label of `given` that is not that of the source; rows count from 0.

    The log is written even if it is empty, so that none of an earlier file is taken for it.
    """
    write_sheet(log_of(out), HEADER, _lines(source, given, why))


def _lines(source: Source, given: Tensor, why: Why) -> Iterator[tuple[object, ...]]:
    for start in range(0, len(source), BLOCK):
        before, after = source.given[start : start + BLOCK], given[start : start + BLOCK]
        places = (before != after).nonzero().tolist()
        for i, k in places:
            row, values = start + i, (int(before[i, k]), int(after[i, k]))
            reason = why if isinstance(why, str) else why(row, k)
            names = source.names[row], source.classes[k]
            yield (row, *names, *(WORDS[value] for value in values), reason)
