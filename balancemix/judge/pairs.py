"""Pairs: rows of which all pairs are compared, factored for one penalty at a time.

    A = K + λ = L·Lᵀ,   weights = A⁻¹(y − ȳ),   [A⁻¹]ᵢᵢ = squares of column i of L⁻¹, summed

Eigenvectors serve every penalty (judge/basis.py), but of thousands of rows they take more than ten
times as long as L and the diagonal together, and few penalties need to be tried.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from balancemix import interrupts
from balancemix.models.kernel import KernelMachine, squared_exponential
from balancemix.progress import progress

_COLUMNS = 512  # of L⁻¹ at a time


class Pairs:
    """N rows of features, and the N×N similarities K of all pairs.

    Kept of each penalty that was asked for: the diagonal of A⁻¹, and the last target's weights.
    """

    whiten = key = None  # as a `Basis` that compares all pairs

    def __init__(self, features: Tensor, mean: Tensor, scale: Tensor) -> None:
        self.features, self.mean, self.scale = features, mean, scale
        self.landmarks = self.standardised(features)
        self.similar = squared_exponential(self.landmarks, self.landmarks)
        self._diagonals: dict[float, Tensor] = {}
        self._weights: dict[float, Tensor] = {}
        self._target = features.new_zeros(0)

    def __len__(self) -> int:
        return len(self.features)

    @property
    def device(self) -> torch.device:
        """Where matrices are multiplied."""
        return self.mean.device

    def standardised(self, features: Tensor) -> Tensor:
        """Standardise rows of raw features."""
        return (features.to(self.device).float() - self.mean) / self.scale

    def left_out(self, target: Tensor, penalty: float, groups: Sequence[Tensor] = ()) -> Tensor:
        """Score every row of N×K targets by the others, rows of a group by those of others."""
        weights = self.weights(target, penalty)
        if not groups:
            return target - (weights / self._diagonals[penalty][:, None]).cpu()
        inverse = torch.cholesky_inverse(self._factor(penalty)).float()
        scores = target - (weights / inverse.diagonal()[:, None]).cpu()
        for group in groups:
            within = inverse[group][:, group]
            scores[group] = target[group] - torch.linalg.solve(within, weights[group]).cpu()
        return scores

    def solve(self, target: Tensor, penalty: float) -> KernelMachine:
        """Fit all rows to N×K targets."""
        weights, mean = self.weights(target, penalty), target.mean(0).to(self.device)
        return KernelMachine(self.mean, self.scale, self.landmarks, weights, mean)

    def weights(self, target: Tensor, penalty: float) -> Tensor:
        """Compute the weights of N×K targets."""
        if not torch.equal(target, self._target):
            self._weights, self._target = {}, target.clone()
        if penalty not in self._weights:
            factor = self._factor(penalty)
            centred = (target - target.mean(0)).to(factor)
            self._weights[penalty] = torch.cholesky_solve(centred, factor).float()
            if penalty not in self._diagonals:
                self._diagonals[penalty] = _diagonal(factor)
        return self._weights[penalty]

    def _factor(self, penalty: float) -> Tensor:
        """Compute L."""
        a = self.similar.clone()
        a.diagonal().add_(penalty)
        factor: Tensor
        factor, failed = torch.linalg.cholesky_ex(a)
        if int(failed):  # next to no penalty: float32 has too few digits
            a = self.similar.double()
            a.diagonal().add_(penalty)
            factor = torch.linalg.cholesky(a)
        return factor


def _diagonal(factor: Tensor) -> Tensor:
    """Compute the diagonal of A⁻¹ of A = L·Lᵀ, some columns of L⁻¹ at a time.

    >>> _diagonal(torch.tensor([[2.0, 0.0], [1.0, 1.0]]))
    tensor([0.5000, 1.0000])
    """
    squares = []
    with progress(f"factor {len(factor):,} rows", len(factor)) as show:
        for start in range(0, len(factor), _COLUMNS):
            interrupts.check()
            rest = factor[start:, start:]  # above them L⁻¹ is 0
            unit = torch.eye(len(rest), min(_COLUMNS, len(rest))).to(rest)
            columns = torch.linalg.solve_triangular(rest, unit, upper=False)
            squares.append(columns.square().sum(0))
            show.advance(len(squares[-1]))
    diagonal: Tensor = torch.cat(squares).float()
    return diagonal
