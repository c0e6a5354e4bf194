"""How many labels are wrong: shares of wrong positives and of missing ones.

Idea: confidence on rows that were not trained on shows which labels look like the other side's. A
wrong positive is a negative, so it ranks anywhere among the negatives of its class; a right one
ranks high. If a part of the positives falls into the lowest fifth of the negatives, five times
that part is wrong. Likewise at the top: five times the negatives that rank among the highest fifth
of the positives are positives without a label.

    wrong   = #(positives below the fifth) / (#positives / 5)
    missing = (1 − wrong) · #(negatives above the fifth) / (#positives / 5)

These are slopes at the two ends of the ROC curve: the largest mixture proportions that the data
allow (Scott, Blanchard and Handy, COLT 2013). They are upper bounds if errors are independent of
the row, `missing` a loose one: a class that is hard to recognise has true negatives of high
confidence. Errors that prefer certain rows are found only in part (strips of digits with 39 % of
wrong positives: 19 %).

On rows that were trained on they mean nothing: a network that has seen a wrong label a few times is
more confident of it than of any negative.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from balancemix.labels.table import check_confidence

# A fifth: less would depend on a handful of labels, more would count right but hard positives.
_END = 0.2

# With fewer positives no setting is decided.
FEWEST = 100


@dataclass(frozen=True)
class LabelErrors:
    """Errors of the given labels, estimated from rows that were not trained on."""

    positives: int  # given positives in these rows
    wrong: float  # share of the given positives that are wrong
    missing: float  # positives without a label, for each right one with a label
    error: float = 0.0  # standard error of `wrong`

    @property
    def only_missing(self) -> bool:
        """Whether the labels are incomplete rather than wrong.

        Two thirds or more of the positives are missing, and it is not certain that over an eighth
        of the given ones is wrong. On COCO's features a pilot finds at most 0.7 missing for each of
        the right labels, 1.3 where a fifth is moved to wrong classes, 2.4 and more where one label
        of each image is left (1.9 in truth).
        """
        return self.positives >= FEWEST and self._certainly_wrong < 1 / 8 and self.missing > 2

    @property
    def mostly_wrong(self) -> bool:
        """Whether more than half of the given positives are certainly wrong."""
        return self.positives >= FEWEST and self._certainly_wrong > 1 / 2

    @property
    def _certainly_wrong(self) -> float:
        return self.wrong - 2 * self.error


def estimate_errors(given: Tensor, confidence: Tensor) -> LabelErrors:
    """Estimate the errors of N×K given labels from confidence in rows that were not trained on.

    Unknown labels (−1) are left out.

    >>> import torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> truth = torch.rand(4000, 2, generator=generator) < 0.3
    >>> confidence = (0.2 + 0.6 * truth + 0.2 * torch.rand(4000, 2, generator=generator))
    >>> kept = truth & (torch.rand(4000, 2, generator=generator) < 0.5)
    >>> errors = estimate_errors(kept, confidence)
    >>> round(errors.wrong, 2), round(errors.missing)
    (0.0, 1)
    """
    check_confidence(given, confidence)
    positives, low, chance, high, top = 0, 0, 0.0, 0, 0
    for p, labels in zip(confidence.T, given.T, strict=True):
        positive, negative = p[labels > 0].sort().values, p[labels == 0].sort().values
        positives += len(positive)
        lowest, highest = int(_END * len(negative)), int(_END * len(positive))
        if lowest:
            low += int((positive < negative[lowest]).sum())
            chance += len(positive) * lowest / len(negative)
        if highest:
            high += int((negative > positive[-highest]).sum())
            top += highest
    wrong = min(low / chance, 1.0) if chance else 0.0
    missing = (1 - wrong) * high / top if top else 0.0
    return LabelErrors(positives, wrong, missing, low**0.5 / chance if chance else 0.0)
