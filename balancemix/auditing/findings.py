"""Which labels to fix: the label table and the model's confidence in, ranked findings out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from balancemix.labels.mixtures import clean_probability
from balancemix.labels.table import check_confidence
from balancemix.run import Run


@dataclass(frozen=True)
class Finding:
    """One label believed wrong: a given positive that is not there, or a positive missing."""

    row: int
    column: int
    given: int
    suggested: int
    suspicion: float  # 0 to 1, the worst first
    clean: float  # P(clean | loss)
    confidence: float  # in presence

    @property
    def kind(self) -> str:
        """What is the matter."""
        return "wrong" if self.given else "missing"


def suspicion(given: Tensor, clean: Tensor, confidence: Tensor) -> Tensor:
    """Rate how surely each label is wrong: doubted by its mixture and contradicted by the model.

    >>> suspicion(torch.tensor([1, 1, 0]), torch.tensor([0.1, 1.0, 0.2]), torch.tensor([0, 0, 1.0]))
    tensor([0.9000, 0.0000, 0.8000])
    """
    return (1 - clean) * (given - confidence).abs()


def audit(
    given: Tensor, confidence: Tensor, clean: Tensor | None = None, *, above: float = 0.5
) -> list[Finding]:
    """List the labels whose suspicion is over `above`, the worst first.

    All are N×K. Without `clean` (a model trained by a method that does not select) the clean
    probabilities are estimated from `confidence`, so the output of any model can be audited.
    """
    check_confidence(given, confidence)
    if clean is None:
        clean = clean_probability(given, confidence)
    rating = suspicion(given, clean, confidence)
    rows, columns = (rating > above).nonzero(as_tuple=True)
    order = rating[rows, columns].argsort(descending=True, stable=True)
    findings = []
    for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        label = int(given[row, column])
        facts = (float(matrix[row, column]) for matrix in (rating, clean, confidence))
        findings.append(Finding(row, column, label, 1 - label, *facts))
    return findings


def score(findings: Sequence[Finding], given: Tensor, truth: Tensor) -> dict[str, float]:
    """Compare findings with the truth: how many are errors, and how many errors were found."""
    wrong = given != truth
    hits = sum(bool(wrong[finding.row, finding.column]) for finding in findings)
    errors = int(wrong.sum())
    return {
        "findings": len(findings),
        "errors": errors,
        "precision": hits / len(findings) if findings else float("nan"),
        "recall": hits / errors if errors else float("nan"),
    }


def corrected(given: Tensor, findings: Sequence[Finding]) -> Tensor:
    """Apply every finding to a copy of the labels."""
    labels = given.clone()
    for finding in findings:
        labels[finding.row, finding.column] = finding.suggested
    return labels


def audit_run(run: Run, above: float) -> list[Finding]:
    """Audit a run's label table."""
    record = {
        name: torch.from_numpy(array)
        for name, array in run.read_arrays("labels.npz").items()
        if array.dtype.kind in "fiu"
    }
    clean = table_clean(record["clean"])
    return audit(record["given"], record["confidence"], clean, above=above)


def table_clean(clean: Tensor) -> Tensor | None:
    """Return a table's clean probabilities, or None where its method left them all at one."""
    return None if bool(torch.all(clean == 1)) else clean
