"""Listed: the findings of the newest audit as arrays, by the rows and classes of the data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from balancemix.data.decisions.snapshots import Suspicion

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
PROBLEMS = ("unknown", "missing", "wrong")  # by the given value, from −1


@dataclass(frozen=True, eq=False)
class Listed:
    """F findings, an entry of each array for one; those of a picture stand together, surest first.

    row, column   the label
    given         1, 0 or −1
    suggested     1 or 0
    p             that the given label is wrong; of an unknown one, that it is present
    measured      whether p was measured
    """

    row: Ints
    column: Ints
    given: npt.NDArray[np.int8]
    suggested: npt.NDArray[np.int8]
    p: npt.NDArray[np.float64]
    measured: Bools

    @classmethod
    def of(
        cls,
        findings: Sequence[Suspicion],
        place: Mapping[str, int],
        column: Mapping[str, int],
        labels: npt.NDArray[Any],
        measured: Collection[str] = (),
    ) -> Listed:
        """Look up the findings' rows and columns.

        Those about what the data lacks, or about a label that is no longer what it was among the
        N×K `labels`, are left out.
        """
        kept = [f for f in findings if f.image in place and f.class_ in column]
        kept = [f for f in kept if labels[place[f.image], column[f.class_]] == f.given]
        arrays: dict[str, npt.NDArray[Any]] = {
            "row": np.array([place[f.image] for f in kept], dtype=np.int64),
            "column": np.array([column[f.class_] for f in kept], dtype=np.int64),
            "given": np.array([f.given for f in kept], dtype=np.int8),
            "suggested": np.array([f.suggested for f in kept], dtype=np.int8),
            "p": np.array([f.probability for f in kept], dtype=np.float64),
            "measured": np.array([f.problem in measured for f in kept], dtype=np.bool_),
        }
        order = np.lexsort((arrays["column"], -arrays["p"], arrays["row"]))
        return cls(**{name: array[order] for name, array in arrays.items()})

    def __len__(self) -> int:
        return len(self.row)

    @property
    def problem(self) -> npt.NDArray[np.str_]:
        """`wrong`, `missing` or `unknown`."""
        return np.array(PROBLEMS)[self.given.astype(np.int64) + 1]

    def of_row(self, row: int) -> range:
        """Find the findings of a picture."""
        first, last = np.searchsorted(self.row, [row, row + 1])
        return range(int(first), int(last))

    def mask(self, column: int | None = None, problem: str | None = None) -> Bools:
        """Choose the findings of a class and of a problem."""
        chosen = np.ones(len(self), dtype=np.bool_)
        if column is not None:
            chosen &= self.column == column
        if problem is not None:
            chosen &= self.given == PROBLEMS.index(problem) - 1
        return chosen
