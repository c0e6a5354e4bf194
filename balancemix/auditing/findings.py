"""Which labels to fix: given labels and a model's confidence in, findings out, worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from balancemix.errors import InputError
from balancemix.files import write_sheet
from balancemix.labels.mixtures import clean_probability
from balancemix.labels.table import Status, check_confidence, check_given
from balancemix.run import Run

HEADER = (
    "image", "class", "problem", "given", "suggested", "suspicion", "clean_probability",
    "confidence",
)  # fmt: skip


class Finding(NamedTuple):
    """One label believed wrong."""

    row: int
    column: int
    given: int
    suggested: int
    suspicion: float
    clean: float
    confidence: float

    @property
    def kind(self) -> str:
        """The problem: a positive that is wrong, or one that is missing."""
        return "wrong" if self.given else "missing"


@dataclass(frozen=True, eq=False)
class Findings:
    """Labels believed wrong, worst first: one array for each column, all of the same length.

    Iterating makes a `Finding` of each line; a slice is again `Findings`.
    """

    row: Tensor
    column: Tensor
    given: Tensor
    suggested: Tensor
    suspicion: Tensor  # 0 to 1: (1 − P(clean)) · |given − confidence|
    clean: Tensor  # P(clean | loss)
    confidence: Tensor  # in presence
    labels: Tensor  # the N×K given labels that were audited, not copied
    names: Sequence[str]  # of the N rows
    classes: Sequence[str]  # the K names

    def __len__(self) -> int:
        return len(self.row)

    def __iter__(self) -> Iterator[Finding]:
        columns = [getattr(self, name).tolist() for name in Finding._fields]
        return (Finding(*line) for line in zip(*columns, strict=True))

    def __getitem__(self, part: slice) -> Findings:
        return replace(self, **{name: getattr(self, name)[part] for name in Finding._fields})

    def lines(self) -> Iterator[tuple[object, ...]]:
        """Write each finding as the cells of a table under `HEADER`."""
        for f in self:
            shares = (f"{share:.4f}" for share in (f.suspicion, f.clean, f.confidence))
            place = self.names[f.row], self.classes[f.column]
            yield (*place, f.kind, f.given, f.suggested, *shares)

    def write(self, path: Path) -> None:
        """Write a CSV file with a line for each finding, for a spreadsheet."""
        write_sheet(path, HEADER, self.lines())

    def score(self, truth: Tensor) -> dict[str, float]:
        """Compare with the N×K truth: how many findings are errors, how many errors are found.

        Labels whose truth is unknown (−1) are left out.
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
        """Copy N×K labels and set each one found wrong to what is suggested."""
        self._check(given)
        if not torch.equal(given[self.row, self.column], self.given.to(given.dtype)):
            raise ValueError("the given labels are no longer those that were audited")
        labels = given.clone()
        labels[self.row, self.column] = self.suggested.to(labels.dtype)
        return labels

    def _check(self, labels: Tensor) -> None:
        check_given(labels)
        if labels.shape != self.labels.shape:
            shapes = f"{tuple(self.labels.shape)}, not {tuple(labels.shape)}"
            raise ValueError(f"these findings are of labels of shape {shapes}")


def suspicion(given: Tensor, clean: Tensor, confidence: Tensor) -> Tensor:
    """Rate how likely each label is wrong: doubted by its mixture and contradicted by the model.

    An unknown label (−1) is not suspected of anything.

    >>> suspicion(torch.tensor([1, 1, 0]), torch.tensor([0.1, 1.0, 0.2]), torch.tensor([0, 0, 1.0]))
    tensor([0.9000, 0.0000, 0.8000])
    """
    return ((1 - clean) * (given.int() - confidence).abs()).masked_fill(given < 0, 0.0)


def audit(
    given: Tensor,
    confidence: Tensor,
    clean: Tensor | None = None,
    *,
    verified: Tensor | None = None,
    above: float = 0.5,
    names: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
) -> Findings:
    """Find the labels with a suspicion over `above`, from 0 to 1, worst first.

    All matrices are N×K. Without `clean` (a model trained by a method that does not select labels)
    P(clean) is estimated from `confidence`, so the output of any model can be audited. Unknown
    labels (−1) and `verified` ones (bool) are never found. Rows and classes without names are
    numbered.

    >>> given, confidence = torch.tensor([[1, 0]]), torch.tensor([[0.2, 0.9]])
    >>> findings = audit(given, confidence, torch.tensor([[0.1, 0.0]]), classes=["cat", "dog"])
    >>> [line[:3] for line in findings.lines()]
    [('0', 'dog', 'missing'), ('0', 'cat', 'wrong')]
    """
    if not 0 <= above <= 1:  # NaN neither
        raise InputError(f"above must be between 0 and 1, it is {above}")
    check_confidence(given, confidence)
    if clean is None:
        clean = clean_probability(given, confidence)
    elif clean.shape != given.shape or not bool(((clean >= 0) & (clean <= 1)).all()):
        raise ValueError("clean must be N×K like the given labels, and between 0 and 1")
    clean = clean.float()  # half precision would round suspicion
    rating = suspicion(given, clean, confidence)
    if verified is not None:
        if verified.shape != given.shape:
            raise ValueError("verified must be N×K like the given labels")
        rating = rating.masked_fill(verified.bool(), 0.0)
    row, column = (rating > above).nonzero(as_tuple=True)
    order = rating[row, column].argsort(descending=True, stable=True)
    row, column = row[order], column[order]
    old = given[row, column].to(torch.int8)
    return Findings(
        row=row,
        column=column,
        given=old,
        suggested=1 - old,
        suspicion=rating[row, column],
        clean=clean[row, column],
        confidence=confidence[row, column],
        labels=given,
        names=_named(names, len(given), "names"),
        classes=_named(classes, given.shape[1], "classes"),
    )


def audit_run(run: Run, above: float = 0.5) -> Findings:
    """Audit the labels that a run was trained on."""
    return audit(
        run.table.given,
        run.confidence,
        table_clean(run.table.clean),
        verified=run.table.status == Status.VERIFIED,
        above=above,
        names=run.names,
        classes=run.classes,
    )


def table_clean(clean: Tensor) -> Tensor | None:
    """Return a table's clean probabilities, or None where its method left them all at one."""
    return None if bool(torch.all(clean == 1)) else clean


def _named(names: Sequence[str] | None, count: int, what: str) -> Sequence[str]:
    if names is None:
        return [str(number) for number in range(count)]
    if len(names) != count:
        raise ValueError(f"{what}: give {count}, not {len(names)}")
    return names
