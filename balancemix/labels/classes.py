"""Describe classes by how often they occur: counts, many, medium and few, imbalance ratios."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from balancemix.labels.chunks import chunks

Groups = dict[str, Tensor]
Rule = Literal["paper", "auto"]

NAMES = ("many", "medium", "few")
MANY, FEW = 10_000, 1_000  # positives in the training set, COCO's size


def class_counts(given: Tensor) -> Tensor:
    """Count the positives of each class in an N×K matrix of 0, 1 and −1 (unknown).

    >>> import torch
    >>> class_counts(torch.tensor([[1, 0], [1, -1], [0, 1]]))
    tensor([2, 1])
    """
    counts = given.new_zeros(given.shape[1], dtype=torch.int64)
    for rows in chunks(*given.shape):  # a sum over all rows would widen each label to eight bytes
        counts += (given[rows] == 1).sum(0)
    return counts


def class_groups(counts: Tensor, rule: Rule = "paper") -> Groups:
    """Split class indices into "many", "medium" and "few" by their number of positives, shape (K,).

    "paper" divides at 10,000 and 1,000, each of which belongs to the more frequent group. "auto"
    makes thirds of the classes, the most frequent first; ties go by class index, and a remainder to
    the more frequent groups. Count clean training labels where they are known, so that the groups
    do not depend on the noise.

    >>> import torch
    >>> class_groups(torch.tensor([20_000, 10, 1_000, 999]))
    {'many': tensor([0]), 'medium': tensor([2]), 'few': tensor([1, 3])}
    """
    if counts.ndim != 1:
        raise ValueError(f"counts must have shape (K,), not {tuple(counts.shape)}")
    if rule == "auto":
        thirds = counts.argsort(descending=True, stable=True).tensor_split(3)
        return {name: third.sort().values for name, third in zip(NAMES, thirds, strict=True)}
    if rule != "paper":
        raise ValueError(f'rule must be "paper" or "auto", not {rule!r}')
    parts = (counts >= MANY, (counts >= FEW) & (counts < MANY), counts < FEW)
    return {name: part.nonzero().flatten() for name, part in zip(NAMES, parts, strict=True)}


def imbalance(given: Tensor) -> dict[str, float]:
    """Return the two imbalance ratios of an N×K matrix of 0, 1 and −1 (unknown) (App. C).

    `class_ratio`: positives of the most frequent class over those of the rarest that has any.
    `positive_negative_ratio`: negatives over positives. Unknown labels count as neither. Without
    any positive there is no ratio, and the result is empty.

    >>> import torch
    >>> imbalance(torch.tensor([[1, 1], [1, 0], [0, 0]]))
    {'class_ratio': 2.0, 'positive_negative_ratio': 1.0}
    """
    counts = class_counts(given)
    counts = counts[counts > 0]
    if not len(counts):
        return {}
    negatives = sum(int((given[rows] == 0).sum()) for rows in chunks(*given.shape))
    return {
        "class_ratio": counts.max().item() / counts.min().item(),
        "positive_negative_ratio": negatives / counts.sum().item(),
    }


def _count_labels(given: Tensor, verified: Tensor | None) -> dict[str, int]:
    counts = {"unknown": 0, "verified": 0}
    for rows in chunks(*given.shape):
        unknown = given[rows] < 0
        counts["unknown"] += int(unknown.sum())
        if verified is not None:
            counts["verified"] += int((verified[rows] & ~unknown).sum())
    return counts


def describe(
    given: Tensor, classes: Sequence[str], verified: Tensor | None = None
) -> dict[str, Any]:
    """Count rows, classes and positives, the most frequent class first, and both ratios.

    `unknown` and `verified` count labels of all rows and classes; one that is unknown is not
    verified, whatever the file says.

    >>> describe(torch.tensor([[0, 1], [0, 1]]), ["cat", "dog"])["positives"]
    {'dog': 2, 'cat': 0}
    """
    counts = class_counts(given)
    order = counts.argsort(descending=True, stable=True).tolist()
    return {
        "rows": len(given),
        "classes": len(classes),
        "positives_per_row": int(counts.sum()) / len(given),
        **_count_labels(given, verified),
        **imbalance(given),
        "groups": {name: len(index) for name, index in class_groups(counts, "auto").items()},
        "positives": {classes[k]: int(counts[k]) for k in order},
    }
