"""Near-duplicates: images that look alike to the backbone and yet have contradicting labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from balancemix.judge.blocks import blocks

if TYPE_CHECKING:
    from balancemix.auditing.judged import Judged

MOST = 20_000  # rows of which all pairs are compared
NEAR = 0.1  # of the median distance between nearest neighbours


def contradicting_pairs(judged: Judged) -> dict[str, Any] | None:
    """List pairs of rows that are near-duplicates and differ in a known label, nearest first.

    Of more than 20,000 rows, as many are drawn and compared; `compared` says how many were. None
    without features.
    """
    if judged.features is None:
        return None
    rows = torch.arange(len(judged))
    if len(rows) > MOST:
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
        rows = order[:MOST].sort().values
    distance, neighbour = nearest(judged.features[rows])
    near = distance <= NEAR * distance.median()
    pairs = {
        tuple(sorted((i, int(neighbour[i])))): float(distance[i])
        for i in near.nonzero()[:, 0].tolist()
    }
    listed = []
    for i, j in sorted(pairs, key=pairs.__getitem__):
        a, b = int(rows[i]), int(rows[j])
        differ = (judged.given[a] != judged.given[b]) & (judged.given[[a, b]] >= 0).all(0)
        if bool(differ.any()):
            classes = [judged.classes[k] for k in differ.nonzero()[:, 0].tolist()]
            listed.append({"images": [judged.names[a], judged.names[b]], "classes": classes})
    return {"compared": len(rows), "pairs": listed}


def nearest(features: Tensor) -> tuple[Tensor, Tensor]:
    """Find the nearest other row of each, by standardised features: distance and row number.

    >>> nearest(torch.tensor([[0.0], [5.0], [5.5]]))[1].tolist()
    [1, 2, 1]
    """
    x = features.float()
    x = (x - x.mean(0)) / x.std(0).clamp(min=1e-6)
    square = x.square().sum(1)
    distances, places = [], []
    for rows in blocks(len(x)):
        apart = torch.addmm(square, x[rows], x.T, alpha=-2).add_(square[rows, None])
        own = torch.arange(rows.start, rows.stop)
        apart[own - rows.start, own] = torch.inf
        least, place = apart.min(1)
        distances.append(least.clamp(min=0).sqrt())
        places.append(place)
    return torch.cat(distances), torch.cat(places)
