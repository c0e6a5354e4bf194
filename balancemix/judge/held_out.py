"""Which labels are wrong, in the large: how many given positives, and how many positives hide.

Idea: confidence on rows that were not trained on says which labels look like the other side's. A
wrong positive is a negative, so among the negatives of its class it may stand anywhere; a right
one stands high. Whatever part of the positives falls into the lowest fifth of the negatives, five
times that part is wrong. Likewise from above: of the highest fifth of the positives, five times
the negatives that stand among them are positives without a label.

    wrong   = #(positives below the fifth) / (#positives / 5)
    missing = (1 − wrong) · #(negatives above the fifth) / (#positives / 5)

These are slopes at the two ends of the ROC curve: the mixture proportions that Scott, Blanchard
and Handy (COLT 2013) show to be the largest that the data allow. They are upper bounds if errors
fall on any row alike, `missing` a loose one: a class that is hard to recognise has confident
negatives of its own. Errors that prefer certain rows are found in part (strips of digits with 39 %
of wrong positives: 19 %).

On rows that were trained on they say nothing: a network that has seen a wrong label a few times
is surer of it than of any negative.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from balancemix.labels.table import check_confidence

# A fifth: less would rest on a handful of labels, more would count right but hard positives.
_END = 0.2

# Fewer positives than this decide nothing.
FEWEST = 100


@dataclass(frozen=True)
class LabelErrors:
    """What unseen rows say of the given labels."""

    positives: int  # given ones that were looked at
    wrong: float  # share of the given positives that are not there
    missing: float  # positives without a label, for each right one with a label
    error: float = 0.0  # standard error of `wrong`

    @property
    def only_missing(self) -> bool:
        """Are the labels incomplete rather than wrong?

        Two thirds or more of the positives hide, and it is not sure that over an eighth of the
        given ones is false. On COCO's features a pilot finds at most 0.7 missing for each of the
        right labels, 1.3 where a fifth is moved to wrong classes, 2.4 and more where one label an
        image is left (1.9 in truth).
        """
        return self.positives >= FEWEST and self._surely_wrong < 1 / 8 and self.missing > 2

    @property
    def mostly_wrong(self) -> bool:
        """Is it sure that more than half of the given positives are false?"""
        return self.positives >= FEWEST and self._surely_wrong > 1 / 2

    @property
    def _surely_wrong(self) -> float:
        return self.wrong - 2 * self.error


def estimate_errors(given: Tensor, confidence: Tensor) -> LabelErrors:
    """Estimate the errors of N×K given labels from confidence in rows that were not trained on.

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
    for said, labels in zip(confidence.T, given.T > 0, strict=True):
        positive, negative = said[labels].sort().values, said[~labels].sort().values
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
