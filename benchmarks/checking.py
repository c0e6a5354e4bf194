"""Which labels a person looks at in some time, by a list or image by image."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

# Of the review page's design: a picture and a question; a swept label and a settled image are
# guesses.
SECONDS = {"picture": 4.0, "question": 2.0, "swept": 1.0, "settled": 30.0}


class Checked(NamedTuple):
    """The labels that a person looked at, N×K bool, and the images that these are in."""

    labels: Tensor
    images: int


def settled(shape: torch.Size, order: Tensor, count: int) -> Checked:
    """Look at all labels of the first images."""
    labels = torch.zeros(shape, dtype=torch.bool)
    labels[order[:count]] = True
    return Checked(labels, min(count, len(order)))


def swept(doubt: Tensor, seconds: float) -> Checked:
    """Look at the most doubtful labels at a glance each."""
    order = doubt.flatten().argsort(descending=True, stable=True)
    return _first(doubt, order, int(seconds / SECONDS["swept"]))


def listed(doubt: Tensor, seconds: float) -> Checked:
    """Look at the most doubtful labels as far as the time lasts, one image after another.

    A list of m labels in n images takes 4·n + 2·m seconds.

    >>> listed(torch.tensor([[3.0, 2.0], [1.0, 0.0]]), 8.0).labels
    tensor([[ True,  True],
            [False, False]])
    """
    order = doubt.flatten().argsort(descending=True, stable=True)
    image = order // doubt.shape[1]
    place = torch.arange(len(order))
    first = torch.full((len(doubt),), len(order)).scatter_reduce(0, image, place, "amin")
    images = torch.zeros(len(order)).index_fill_(0, first, 1.0).cumsum(0, dtype=torch.float64)
    cost = SECONDS["picture"] * images + SECONDS["question"] * (place + 1)
    return _first(doubt, order, int((cost <= seconds).sum()))


def _first(doubt: Tensor, order: Tensor, count: int) -> Checked:
    labels = torch.zeros(doubt.numel(), dtype=torch.bool)
    labels[order[:count]] = True
    labels = labels.view_as(doubt)
    return Checked(labels, int(labels.any(1).sum()))
