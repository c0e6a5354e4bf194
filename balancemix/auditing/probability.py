"""modelled(): how likely each label is wrong, as far as the judge's model of errors is right.

The posterior gives each label a probability of being wrong, and doubt an order. Of each side
(given, not given, unknown) the probabilities are averaged over labels of similar doubt, made
increasing by isotonic regression, and interpolated: labels with more doubt get more, and the sum
over all labels stays that of the posterior.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from balancemix.labels.chunks import chunks

SIDES = {"wrong": 1, "missing": 0, "unknown": -1}  # each problem, and the given value

_GROWTH = 0.1  # a bin's share of the labels above it; at the top, a label is a bin
_TIES = 1e-3  # the weight of doubt itself, which orders labels of equal probability
_MOST = 1 - 2.0**-24  # the last float32 before 1: nothing is certain


def modelled(given: Tensor, doubt: Tensor, posterior: Tensor) -> Tensor:
    """Compute the probability that N×K labels are wrong, of unknown ones that they are present.

    On each side it is an increasing function of `doubt`: N×K float32. Labels with a doubt of −inf
    are not judged, and have 0.

    >>> given, q = torch.ones(4, 1), torch.tensor([[0.9], [0.2], [0.5], [0.9]])
    >>> modelled(given, -q.logit(), q)[:, 0].argsort(descending=True).tolist()[:2]
    [1, 2]
    """
    result = torch.zeros(given.shape)
    for side in SIDES.values():
        curve = _curve(given, doubt, posterior, side)
        if curve is None:
            continue
        for rows in chunks(*given.shape):
            mask = (given[rows] == side) & doubt[rows].isfinite()
            result[rows][mask] = torch.from_numpy(_read_off(doubt[rows][mask].numpy(), *curve))
    return result


Array = npt.NDArray[np.float64]


def _read_off(doubt: npt.NDArray[np.float32], centres: Array, heights: Array) -> Array:
    """Interpolate a curve at each doubt; where it is flat, a little of the doubt itself remains."""
    own = 1 / (1 + np.exp(-doubt.astype(np.float64)))
    level = np.interp(doubt, centres, heights)
    mixed: Array = (1 - _TIES) * level + _TIES * own
    return mixed.clip(0, _MOST).astype(np.float32)


def _curve(
    given: Tensor, doubt: Tensor, posterior: Tensor, side: int
) -> tuple[Array, Array] | None:
    """Average the errors of a side in bins of doubt: mean doubt and increasing mean error."""
    from sklearn.isotonic import isotonic_regression

    values = doubt[(given == side) & doubt.isfinite()].numpy()
    if not len(values):
        return None
    values.sort()
    edges = np.unique(values[[place for place in _places(len(values)) if place]])
    del values
    count, total, errors = np.zeros((3, len(edges) + 1))
    for rows in chunks(*given.shape):
        mask = (given[rows] == side) & doubt[rows].isfinite()
        d, q = (matrix[rows][mask].double().numpy() for matrix in (doubt, posterior))
        place = np.searchsorted(edges, d, side="right")
        count += np.bincount(place, minlength=len(count))
        total += np.bincount(place, d, minlength=len(count))
        errors += np.bincount(place, 1 - q if side > 0 else q, minlength=len(count))
    filled = count > 0
    count, total, errors = count[filled], total[filled], errors[filled]
    heights = isotonic_regression(errors / count, sample_weight=count, y_min=0, y_max=1)
    return total / count, heights


def _places(count: int) -> list[int]:
    """Place the lower ends of bins in an increasing order, fine at the top.

    >>> _places(24)
    [0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]
    """
    places, rest = [], count
    while rest > 0:
        rest -= max(1, int(_GROWTH * (count - rest)))
        places.append(max(rest, 0))
    return places[::-1]
