"""Findings: which labels to look at, worst first; audit() finds them in labels and features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from balancemix.auditing.judged import Judged, judge_confidence, judge_features
from balancemix.auditing.probability import SIDES
from balancemix.auditing.summary import summarise
from balancemix.errors import InputError
from balancemix.files import write_sheet
from balancemix.labels.table import LabelMatrix, as_given
from balancemix.options import ABOVE

if TYPE_CHECKING:  # SciPy takes its time
    from balancemix.estimates import Calibration

HEADER = (
    "image", "class", "problem", "given", "suggested", "probability", "rank", "basis", "split",
    "verdict",
)  # fmt: skip
PROBLEMS = {value: problem for problem, value in SIDES.items()}
_CHUNK = 10_000  # findings that are Python objects at a time


class Finding(NamedTuple):
    """One label to look at."""

    row: int
    column: int
    given: int
    probability: float  # that it is wrong; of an unknown label, that it is present
    rank: int  # from 1, among the findings of the same problem

    @property
    def problem(self) -> str:
        """`wrong`, `missing`, or `unknown`: not known, and looks present."""
        return PROBLEMS[self.given]

    @property
    def suggested(self) -> int:
        """The label as it should be."""
        return int(self.given < 1)


@dataclass(frozen=True, eq=False)
class Findings:
    """Labels to look at: first the wrong ones, then the missing, then the unknown, each by rank.

    One array for each column, all of the same length. Iterating makes a `Finding` of each; a slice
    is again `Findings`.
    """

    judged: Judged  # what is believed of all labels
    row: Tensor
    column: Tensor
    probability: Tensor
    rank: Tensor
    measured: frozenset[str] = frozenset()  # the problems with probabilities that were measured

    def __len__(self) -> int:
        return len(self.row)

    def __iter__(self) -> Iterator[Finding]:
        for start in range(0, len(self), _CHUNK):
            part = self[start : start + _CHUNK]
            columns = [getattr(part, name).tolist() for name in Finding._fields]
            yield from map(Finding._make, zip(*columns, strict=True))

    def __getitem__(self, part: slice | Tensor) -> Findings:
        return replace(
            self,
            row=self.row[part],
            column=self.column[part],
            probability=self.probability[part],
            rank=self.rank[part],
        )

    @property
    def labels(self) -> Tensor:
        """The N×K given labels that were audited, not copied."""
        return self.judged.given

    @property
    def names(self) -> list[str]:
        """The names of the N rows."""
        return list(self.judged.names)

    @property
    def classes(self) -> list[str]:
        """The names of the K classes."""
        return list(self.judged.classes)

    @property
    def given(self) -> Tensor:
        """The given labels: 1, 0 or −1."""
        return self.labels[self.row, self.column].to(torch.int8)

    @property
    def suggested(self) -> Tensor:
        """The labels as they should be."""
        return (self.given < 1).to(torch.int8)

    @property
    def problem(self) -> list[str]:
        """`wrong`, `missing` or `unknown`."""
        return [PROBLEMS[value] for value in self.given.tolist()]

    def of(self, problem: str) -> Findings:
        """Keep the findings of one problem."""
        return self[self.given == SIDES[problem]]

    def lines(self) -> Iterator[tuple[object, ...]]:
        """Write each finding as the cells of a table under `HEADER`; `verdict` is left to people.

        A probability has as many digits as a float32.
        """
        names, classes, split = self.judged.names, self.judged.classes, self.judged.split
        for f in self:
            basis = "measured" if f.problem in self.measured else "modelled"
            facts = (f.problem, f.given, f.suggested, f"{f.probability:.9g}", f.rank)
            yield (names[f.row], classes[f.column], *facts, basis, split[f.row], "")

    def write(self, path: Path) -> None:
        """Write a CSV file with a line for each finding, for a spreadsheet."""
        write_sheet(path, HEADER, self.lines())

    def to_frame(self) -> Any:
        """Make a pandas frame with the columns of `HEADER`."""
        try:
            import pandas
        except ImportError:
            raise InputError("to_frame() needs pandas; install it, or use write()") from None
        given, row, column = self.given.numpy(), self.row.numpy(), self.column.numpy()
        problem = np.array(["unknown", "missing", "wrong"])[given.astype(int) + 1]
        columns = {
            "image": np.array(self.judged.names, dtype=object)[row],
            "class": np.array(self.judged.classes, dtype=object)[column],
            "problem": problem,
            "given": given,
            "suggested": self.suggested.numpy(),
            "probability": self.probability.numpy(),
            "rank": self.rank.numpy(),
            "basis": np.where(np.isin(problem, list(self.measured)), "measured", "modelled"),
            "split": np.array(self.judged.split, dtype=object)[row],
            "verdict": "",
        }
        return pandas.DataFrame(columns)

    def _repr_html_(self, most: int = 20) -> str:
        """Show the first findings of each problem as a table in a notebook."""
        header = HEADER[:7]
        rows = [
            "".join(f"<td>{escape(str(cell))}</td>" for cell in line[: len(header)])
            for problem in SIDES
            for line in self.of(problem)[:most].lines()
        ]
        heads = "".join(f"<th>{name}</th>" for name in header)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<p>{escape(repr(self))}</p><table><tr>{heads}</tr>{body}</table>"

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(self.of(problem)):,} {problem}" for problem in SIDES)
        return f"<Findings: {counts}, of {self.labels.numel():,} labels>"

    def summary(self) -> dict[str, Any]:
        """Count the findings, and name the classes, pairs and images to look at."""
        return summarise(self)

    def score(self, truth: Tensor) -> dict[str, float]:
        """Compare with the N×K truth: how many findings are errors, how many errors are found.

        Labels that are unknown (−1), or have an unknown truth, are left out.
        """
        self._check(truth)
        known = (self.labels >= 0) & (truth >= 0)
        wrong = known & (self.labels != truth)
        hits, judged = (int(each[self.row, self.column].sum()) for each in (wrong, known))
        errors = int(wrong.sum())
        return {
            "findings": len(self),
            "errors": errors,
            "precision": hits / judged if judged else float("nan"),
            "recall": hits / errors if errors else float("nan"),
        }

    def applied(self, given: Tensor) -> Tensor:
        """Copy N×K labels and set each one that was found to what is suggested."""
        self._check(given)
        if not torch.equal(given[self.row, self.column], self.given.to(given.dtype)):
            raise ValueError("the given labels are no longer those that were audited")
        labels = given.clone()
        labels[self.row, self.column] = self.suggested.to(labels.dtype)
        return labels

    def _check(self, labels: Tensor) -> None:
        as_given(labels)
        if labels.shape != self.labels.shape:
            shapes = f"{tuple(self.labels.shape)}, not {tuple(labels.shape)}"
            raise ValueError(f"these findings are of labels of shape {shapes}")


def find(
    judged: Judged,
    above: float = ABOVE,
    calibration: Mapping[str, Calibration] | None = None,
    also: Tensor | None = None,
) -> Findings:
    """List the labels with a probability of at least `above`, from 0 to 1; 0 lists every label.

    `calibration` measures the probabilities of its problems. `also`, N×K, marks labels to list
    however improbable.
    """
    check_above(above)
    calibration = calibration or {}
    parts = [_listed(judged, problem, above, calibration.get(problem), also) for problem in SIDES]
    row, column, probability, rank = (torch.cat(columns) for columns in zip(*parts, strict=True))
    return Findings(judged, row, column, probability, rank, frozenset(calibration))


def check_above(above: float) -> None:
    """Refuse what is not a probability.

    >>> check_above(0.5)
    """
    if not 0 <= above <= 1:  # NaN neither
        raise InputError(f"above must be between 0 and 1, it is {above}")


def _listed(
    judged: Judged,
    problem: str,
    above: float,
    measured: Calibration | None,
    also: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rank the labels of one problem: row, column, probability and rank of each."""
    listed = judged.given == SIDES[problem]
    if measured is None:
        listed &= (judged.probability >= above) | (False if also is None else also)
    row, column = listed.nonzero(as_tuple=True)
    doubt = judged.doubt[row, column]
    if measured is None:
        probability = judged.probability[row, column]
    else:
        probability = torch.from_numpy(measured.probability(doubt.numpy())).float()
        kept = (probability >= above) | (False if also is None else also[row, column])
        row, column, doubt, probability = row[kept], column[kept], doubt[kept], probability[kept]
    order = doubt.argsort(descending=True, stable=True)
    rank = torch.arange(1, len(order) + 1)
    return row[order], column[order], probability[order], rank


def audit(
    given: LabelMatrix,
    *others: object,
    features: Any = None,
    confidence: Any = None,
    verified: LabelMatrix | None = None,
    before: LabelMatrix | None = None,
    groups: Any = None,
    above: float = ABOVE,
    names: list[str] | None = None,
    classes: list[str] | None = None,
) -> Findings:
    """Find the labels that look wrong or missing, by `features` or by a model's `confidence`.

    Give one of them: N×D features of any backbone, of which the judge makes its own opinion, or the
    N×K confidence in presence of a model, best by cross-validation, on rows that it was not trained
    on. Listed are labels with a probability of at least `above`. `verified` labels (N×K booleans)
    are never listed; for `before` and `groups` see `judge`. What has no name is numbered.

    >>> generator = torch.Generator().manual_seed(0)
    >>> features = torch.randn(300, 4, generator=generator)
    >>> given = (features[:, :2] > 0.5).int()
    >>> given[7, 0] = 1 - given[7, 0]
    >>> findings = audit(given, features=features, classes=["cat", "dog"])
    >>> [line[:3] for line in findings[:1].lines()]
    [('7', 'cat', 'missing')]
    """
    if others or (features is None) == (confidence is None):
        raise TypeError("give one by its name: audit(given, features=…) or audit(…, confidence=…)")
    check_above(above)  # before minutes of work
    labels = as_given(given)
    facts: dict[str, Any] = {"names": names, "classes": classes}
    facts |= {"verified": verified, "before": before}
    if features is not None:
        numbers = None if groups is None else torch.as_tensor(groups)
        judged = judge_features(labels, torch.as_tensor(features), groups=numbers, **facts)
    else:
        judged = judge_confidence(labels, torch.as_tensor(confidence), **facts)
    return find(judged, above)
