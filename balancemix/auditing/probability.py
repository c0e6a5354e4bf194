"""modelled(): how likely each label is wrong, as far as the judge's model of errors is right.

The posterior gives each label a probability of being wrong, and doubt an order. Of each side
(given, not given, unknown) the probabilities are averaged over labels of similar doubt, made
increasing by isotonic regression, and interpolated: labels with more doubt get more, and the sum
over all labels stays that of the posterior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from balancemix.labels.chunks import chunks

SIDES = {"wrong": 1, "missing": 0, "unknown": -1}  # each problem, and the given value
NOT_JUDGED = 0.5  # labels of a class that cannot be judged stay below

_GROWTH = 0.1  # a bin's share of the labels above it; at the top, a label is a bin
_TIES = 1e-3  # the weight of doubt itself, which orders labels of equal probability
_MOST = 1 - 2.0**-24  # the last float32 before 1: nothing is certain

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Probability by doubt: linear between points, level beyond them."""

    doubt: Floats
    height: Floats  # never falls

    def at(self, doubt: Tensor) -> Tensor:
        """Read off the probability; where the curve is level, a little of the doubt remains."""
        d = doubt.double().numpy()
        level = np.interp(d, self.doubt, self.height)
        mixed = (1 - _TIES) * level + _TIES / (1 + np.exp(-d))
        return torch.from_numpy(mixed.clip(0, _MOST).astype(np.float32))

    def where(self, probability: Tensor) -> Tensor:
        """Find the doubt below which probabilities are lower; −inf if there is none."""
        level = (probability.double().numpy() - _TIES) / (1 - _TIES)
        doubt = np.interp(level, self.height, self.doubt, left=-np.inf)
        return torch.from_numpy(doubt.astype(np.float32))


def modelled(
    given: Tensor, doubt: Tensor, posterior: Tensor, judged: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Compute the probability that N×K labels are wrong, of unknown ones that they are present.

    On each side it is an increasing function of doubt. Only the classes that are `judged` (K
    booleans; all by default) shape it. The doubt of the others is limited, so that they get at most
    what the posterior gives them, and less than 0.5. Labels with a doubt of −inf have 0. Returns
    this doubt and the probability, both N×K float32.

    >>> given, q = torch.ones(4, 1), torch.tensor([[0.9], [0.2], [0.5], [0.9]])
    >>> modelled(given, -q.logit(), q)[1][:, 0].argsort(descending=True).tolist()[:2]
    [1, 2]
    """
    able = torch.ones(given.shape[1], dtype=torch.bool) if judged is None else judged
    doubt, result = doubt.clone(), torch.zeros(given.shape)
    for side in SIDES.values():
        curve = _fit(given[:, able], doubt[:, able], posterior[:, able], side)
        if curve is None:
            continue
        for rows in chunks(*given.shape):
            is_side = given[rows] == side
            others = is_side & ~able
            error = _error(posterior[rows][others], side).clamp(max=NOT_JUDGED)
            doubt[rows][others] = doubt[rows][others].minimum(curve.where(error))
            mask = is_side & doubt[rows].isfinite()
            result[rows][mask] = curve.at(doubt[rows][mask])
    return doubt, result


def _fit(given: Tensor, doubt: Tensor, posterior: Tensor, side: int) -> Curve | None:
    """Average the errors of a side in bins of doubt, and make them increase."""
    from scipy.optimize import isotonic_regression

    values = doubt[(given == side) & doubt.isfinite()].numpy()
    if not len(values):
        return None
    values.sort()
    edges = np.unique(values[[place for place in _places(len(values)) if place]])
    del values
    count, total, errors = np.zeros((3, len(edges) + 1))
    for rows in chunks(*given.shape):
        mask = (given[rows] == side) & doubt[rows].isfinite()
        d = doubt[rows][mask].double().numpy()
        e = _error(posterior[rows][mask], side).double().numpy()
        place = np.searchsorted(edges, d, side="right")
        count += np.bincount(place, minlength=len(count))
        total += np.bincount(place, d, minlength=len(count))
        errors += np.bincount(place, e, minlength=len(count))
    filled = count > 0
    count, total, errors = count[filled], total[filled], errors[filled]
    heights = isotonic_regression(errors / count, weights=count).x.clip(0, 1)
    return Curve(total / count, heights)


def _error(posterior: Tensor, side: int) -> Tensor:
    return 1 - posterior if side > 0 else posterior


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
