"""Basis: rows in the directions in which ridge regression shrinks them.

Ridge regression with penalty λ fits N×K targets y by V·diag(w/(w + λ))·Vᵀy. V has N rows and
orthonormal columns; with a kernel, V and w are the eigenvectors and eigenvalues of the N×N matrix
of similarities. They depend only on the features: factored once, they serve any target and penalty.

Up to `EXACT` rows all pairs are compared; beyond `FEW`, without eigenvectors (judge/pairs.py). Of
more rows, each is described by its similarity to M of them, the landmarks (Nyström; Williams and
Seeger, NIPS 2000): a sum over the rows gives an M×M matrix to factor instead, and V is computed
again, block by block, whenever it is needed. Time grows as N·M·(M + D), memory does not grow with
N·M. Linear ridge regression is the same with the features in place of similarities.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from balancemix import processes
from balancemix.errors import InputError
from balancemix.judge.blocks import blocks, local_blocks
from balancemix.judge.pairs import Pairs
from balancemix.judge.stages import Stages, fingerprint
from balancemix.models.kernel import squared_exponential
from balancemix.progress import progress

Kernel = Literal["rbf", "linear"]

EXACT = 16_384  # rows of which all pairs are compared
FEW = 1024  # rows of which eigenvectors take next to no time
FEWEST = 10  # rows
_WORK = 1e13  # rows × landmarks²: minutes on two cores
LONG = 1e12  # … : what takes less is not worth a file to go on from
_LANDMARKS = (1024, 8192)  # at least and at most
_JITTER = 1e-5  # added to each landmark's similarity to itself: two of them may be equal
_RANK = 1e-9  # directions of a smaller share of the largest eigenvalue are rounding


@dataclass(frozen=True)
class Basis:
    """V and w of the module's docstring, and what is needed for rows that are not among the N."""

    features: Tensor  # N×D, raw
    mean: Tensor  # D: they standardise the features
    scale: Tensor
    landmarks: Tensor  # M×D, standardised; 0×D for linear regression
    lift: Tensor  # M×r: a row with similarities z has coordinates z @ lift / spectrum
    spectrum: Tensor  # r: w
    kept: Tensor | None = None  # N×r: V, where all pairs were compared
    whiten: Tensor | None = None  # M×M, where they were not: see `_whitening`
    drawn: Tensor | None = None  # M: which rows are the landmarks, where rows were drawn
    key: bytes | None = None  # of the features and settings, where a stage is stored

    def __len__(self) -> int:
        return len(self.features)

    @property
    def device(self) -> torch.device:
        """Where matrices are multiplied."""
        return self.lift.device

    def vectors(self, rows: slice | Tensor) -> Tensor:
        """Compute some rows of V."""
        if self.kept is not None:
            return self.kept[rows]
        return self.coordinates(self.features[rows])

    def coordinates(self, features: Tensor) -> Tensor:
        """Place rows of raw features in the basis."""
        return self.similarities(features) @ (self.lift / self.spectrum)

    def similarities(self, features: Tensor) -> Tensor:
        """Compare rows of raw features with the landmarks; without these, standardise them."""
        x = self.standardised(features)
        return squared_exponential(x, self.landmarks) if len(self.landmarks) else x

    def projected(self, target: Tensor, mean: Tensor) -> Tensor:
        """Compute Vᵀ(y − ȳ): r×K."""
        if self.kept is not None:
            return self.kept.T @ (target - mean).to(self.device)
        total = self.lift.new_zeros(len(self.lift), target.shape[1])
        for rows in local_blocks(len(self)):
            z = self.similarities(self.features[rows])
            total += z.T @ (target[rows] - mean).to(self.device)
        return (self.lift / self.spectrum).T @ processes.all_reduce(total)

    def standardised(self, features: Tensor) -> Tensor:
        """Standardise rows of raw features."""
        return (features.to(self.device).float() - self.mean) / self.scale

    def only(self, rows: Tensor) -> Basis:
        """Factor some of the rows alone, standardised as they are. Not of compared pairs."""
        assert self.whiten is not None
        return _streamed(self.features[rows], self.mean, self.scale, self.landmarks, self.whiten)

    def penalised(self, rows: Tensor, penalty: float) -> Basis:
        """Factor some of the rows with a penalty included, so that the one left to add is 0.

        It takes a Cholesky factor instead of eigenvectors. Not where all pairs are compared.
        """
        assert self.whiten is not None
        part = self.features[rows]
        gram = _gram(part, self.mean, self.scale, self.landmarks, self.whiten)
        gram.diagonal().add_(penalty)
        factor = torch.linalg.cholesky(gram)
        lift = torch.linalg.solve_triangular(factor, self.whiten.T.double(), upper=False).T.float()
        ones = lift.new_ones(lift.shape[1])
        return dataclasses.replace(self, features=part, lift=lift, spectrum=ones, drawn=None)


def make_basis(
    features: Tensor,
    kernel: Kernel = "rbf",
    *,
    landmarks: int | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
    stages: Stages | None = None,
) -> Basis | Pairs:
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
        return _streamed(features, mean, scale, none, same)
    count = landmarks or landmarks_for(len(features))
    if count >= len(features):
        return compared(features, mean, scale)
    order = torch.randperm(len(features), generator=torch.Generator().manual_seed(seed))
    drawn = order[:count].sort().values
    chosen = (features[drawn].to(device).float() - mean) / scale
    if stages is None or len(features) * count**2 < LONG:
        made = _streamed(features, mean, scale, chosen, _whitening(chosen))
        return dataclasses.replace(made, drawn=drawn)
    key = fingerprint(features, count, seed)
    stored = stages.load("basis", key)
    if stored is None:
        whiten = _whitening(chosen)
        made = _streamed(features, mean, scale, chosen, whiten)
        parts = {"lift": made.lift, "spectrum": made.spectrum, "whiten": whiten}
        stages.save("basis", key, parts)
        return dataclasses.replace(made, drawn=drawn, key=key)
    lift, spectrum, whiten = (stored[name].to(device) for name in ("lift", "spectrum", "whiten"))
    made = Basis(features, mean, scale, chosen, lift, spectrum, whiten=whiten)
    return dataclasses.replace(made, drawn=drawn, key=key)


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


def compared(features: Tensor, mean: Tensor, scale: Tensor) -> Basis | Pairs:
    """Compare all pairs of rows, with standardisation as it is; a few are factored for good."""
    if len(features) > FEW:
        return Pairs(features, mean, scale)
    x = (features.to(mean.device).float() - mean) / scale
    spectrum, vectors = torch.linalg.eigh(squared_exponential(x, x))
    return Basis(features, mean, scale, x, vectors, spectrum.clamp(min=0), vectors)


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


def _streamed(
    features: Tensor, mean: Tensor, scale: Tensor, landmarks: Tensor, whiten: Tensor
) -> Basis:
    """Factor the rows by their similarities to landmarks, or by their features."""
    gram = _gram(features, mean, scale, landmarks, whiten)
    spectrum, turn = torch.linalg.eigh(gram)
    large = spectrum > _RANK * spectrum[-1]
    spectrum, turn = spectrum[large], turn[:, large]
    lift = (whiten.double() @ turn) * spectrum.sqrt()
    return Basis(features, mean, scale, landmarks, lift.float(), spectrum.float(), whiten=whiten)


def _gram(
    features: Tensor, mean: Tensor, scale: Tensor, landmarks: Tensor, whiten: Tensor
) -> Tensor:
    """Sum the products of whitened similarities over the rows: M×M, float64."""
    plain = Basis(features, mean, scale, landmarks, whiten, whiten.new_ones(1))
    gram = torch.zeros(whiten.shape, dtype=torch.float64, device=whiten.device)
    with progress("factor", len(features)) as show:
        for rows in local_blocks(len(features)):
            # Whitened before they are multiplied: squares of similarities would lose half of the
            # digits.
            z = plain.coordinates(features[rows])
            gram += z.T @ z
            show.advance(len(z))
    return processes.all_reduce(gram)
