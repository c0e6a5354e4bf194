"""Average precision on test rows drawn again with replacement, for intervals over rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from torch import Tensor

Counts = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

_BLOCK = 2**23  # rows × draws held at once


def draw_rows(rows: int, draws: int, generator: np.random.Generator) -> Counts:
    """Draw `rows` of as many rows with replacement: how often each row comes in each draw, N×R."""
    counts = np.empty((rows, draws), dtype=np.int32)
    for draw in range(draws):
        counts[:, draw] = np.bincount(generator.integers(0, rows, rows), minlength=rows)
    return counts


def resampled_ap(truth: Tensor, logits: Tensor, draws: int, seed: int = 0) -> Floats:
    """Compute the AP of each class, 0 to 1, in each draw of rows: K×R.

    The same number of rows, draws and seed give the same draws, so that two models can be compared
    draw by draw. Equal scores are one rank. A class without positives in a draw is NaN there, and a
    truth of −1 is left out.

    >>> import torch
    >>> truth, logits = torch.tensor([[1], [0], [1]]), torch.tensor([[3.0], [2.0], [1.0]])
    >>> resampled_ap(truth, logits, 4).shape
    (1, 4)
    """
    generator = np.random.default_rng(seed)
    rows, block = len(truth), max(_BLOCK // max(len(truth), 1), 1)
    parts = []
    for start in range(0, draws, block):
        counts = draw_rows(rows, min(block, draws - start), generator)
        columns = zip(logits.T.numpy(), truth.T.numpy(), strict=True)
        parts.append(np.stack([ap_of_draws(scores, labels, counts) for scores, labels in columns]))
    return np.concatenate(parts, axis=1)


def ap_of_draws(scores: Floats, labels: Floats, counts: Counts) -> Floats:
    """Compute a class's average precision in each draw; equal scores are one rank."""
    order = np.argsort(-scores, kind="stable")
    order = order[labels[order] >= 0]
    ranked, present = scores[order], labels[order] == 1
    ranks = counts[order].cumsum(0, dtype=np.int32)  # rows at or above each place
    hits = counts[order[present]].cumsum(0, dtype=np.int32)  # positives at or above each positive
    # A rank ends at the last row of its score, and so do the positives in it.
    places = np.flatnonzero(present)
    ends = np.searchsorted(-ranked, -ranked[places], side="right") - 1
    last = np.searchsorted(places, ends, side="right") - 1
    drawn = counts[order[present]]
    precision = hits[last] / np.maximum(ranks[ends], 1)
    positives = drawn.sum(0)
    with np.errstate(invalid="ignore"):
        average: Floats = (drawn * precision).sum(0) / np.where(positives, positives, np.nan)
    return average
