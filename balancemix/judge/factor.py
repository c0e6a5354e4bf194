"""make_basis(): factor the features of N rows for ridge regression.

Up to `EXACT` rows all pairs are compared (judge/pairs.py); more are compared with landmarks, or are
described by their features (judge/basis.py).
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from balancemix.errors import InputError
from balancemix.judge.basis import Streamed
from balancemix.judge.blocks import blocks
from balancemix.judge.factored import Factored
from balancemix.judge.pairs import compared
from balancemix.judge.stages import Stages, fingerprint
from balancemix.models.kernel import squared_exponential

Kernel = Literal["rbf", "linear"]

EXACT = 16_384  # rows of which all pairs are compared
FEWEST = 10  # rows
_WORK = 1e13  # rows × landmarks²: minutes on two cores
LONG = 1e12  # … : what takes less is not worth a file to go on from
_LANDMARKS = (1024, 8192)  # at least and at most
_JITTER = 1e-5  # added to each landmark's similarity to itself: two of them may be equal


def make_basis(
    features: Tensor,
    kernel: Kernel = "rbf",
    *,
    landmarks: int | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
    stages: Stages | None = None,
) -> Factored:
    """Factor N×D features.

    `landmarks` is the number of rows to compare all others with; None compares all pairs of up to
    16,384 rows, and of more takes as many as `landmarks_for` says. `seed` draws them. What takes
    minutes is stored in `stages`, or read from there.
    """
    check_features(features)
    mean, scale = _standard(features)
    mean, scale = mean.to(device), scale.to(device)
    if kernel == "linear":
        none, same = mean.new_zeros(0, len(mean)), torch.eye(len(mean), device=device)
        return Streamed.of(features, mean, scale, none, same)
    count = landmarks or landmarks_for(len(features))
    if count >= len(features):
        return compared(features, mean, scale)
    order = torch.randperm(len(features), generator=torch.Generator().manual_seed(seed))
    drawn = order[:count].sort().values
    chosen = (features[drawn].to(device).float() - mean) / scale
    if stages is None or len(features) * count**2 < LONG:
        made = Streamed.of(features, mean, scale, chosen, _whitening(chosen))
        return dataclasses.replace(made, drawn=drawn)
    key = fingerprint(features, count, seed)
    stored = stages.load("basis", key)
    if stored is None:
        whiten = _whitening(chosen)
        made = Streamed.of(features, mean, scale, chosen, whiten)
        parts = {"lift": made.lift, "spectrum": made.spectrum, "whiten": whiten}
        stages.save("basis", key, parts)
        return dataclasses.replace(made, drawn=drawn, key=key)
    lift, spectrum, whiten = (stored[name].to(device) for name in ("lift", "spectrum", "whiten"))
    return Streamed(
        features, mean, scale, chosen, lift, spectrum, whiten=whiten, drawn=drawn, key=key
    )


def landmarks_for(rows: int) -> int:
    """Choose all rows as landmarks, or as many as take minutes: fewer the more rows there are.

    >>> [landmarks_for(rows) for rows in (10_000, 20_000, 200_000, 1_000_000, 100_000_000)]
    [10000, 8192, 7071, 3162, 1024]
    """
    if rows <= EXACT:
        return rows
    least, most = _LANDMARKS
    return min(max(int((_WORK / rows) ** 0.5), least), most)


def check_features(features: Tensor) -> None:
    """Refuse features that say nothing, and values that are not finite."""
    if features.ndim != 2:
        shape = "×".join(map(str, features.shape))
        raise InputError(f"features must be an N×D matrix, not {shape}")
    if len(features) < FEWEST:
        raise InputError(
            f"{len(features)} rows are too few to be judged by each other: give {FEWEST}"
        )
    for rows in blocks(len(features)):
        bad = ~features[rows].isfinite().all(1)
        if bool(bad.any()):
            row = rows.start + int(bad.nonzero()[0])
            raise InputError(f"features of row {row} (counted from 0) are not finite")


def duplicates(features: Tensor) -> int:
    """Count the rows with the features of an earlier row.

    >>> duplicates(torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    1
    """
    direction = torch.randn(features.shape[1], generator=torch.Generator().manual_seed(0)).double()
    parts = [features[rows].double() @ direction for rows in blocks(len(features))]
    return len(features) - len(np.unique(torch.cat(parts).numpy()))


def _standard(features: Tensor) -> tuple[Tensor, Tensor]:
    """Compute mean and standard deviation of each feature; 1 in place of a deviation of 0."""
    total = square = torch.zeros(features.shape[1], dtype=torch.float64)
    shift = features[0].double()  # so that squares of a large mean do not cancel
    for rows in blocks(len(features)):
        x = features[rows].double() - shift
        total, square = total + x.sum(0), square + x.square().sum(0)
    mean = total / len(features)
    variance = (square / len(features) - mean.square()).clamp(min=0)
    # Rounding leaves a trace of variance in a feature that is constant.
    constant = variance <= 1e-12 * (1 + shift.square())
    if bool(constant.all()):
        raise InputError("all rows have the same features, so none says anything of another")
    scale = variance.sqrt().masked_fill(constant, 1.0)
    return (mean + shift).float(), scale.float()


def _whitening(landmarks: Tensor) -> Tensor:
    """Compute the M×M matrix that gives similarities coordinates with k(a, b) as dot product.

    It is that of the landmarks' similarities K: K⁻¹ = whiten · whitenᵀ.
    """
    between = squared_exponential(landmarks, landmarks).double()
    between.diagonal().add_(_JITTER)
    factor = torch.linalg.cholesky(between)
    unit = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)
    inverse: Tensor = torch.linalg.solve_triangular(factor, unit, upper=False)
    return inverse.T.float()
