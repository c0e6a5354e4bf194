"""Pairs: rows of which all pairs are compared, factored for one penalty at a time.

    A = K + λ = L·Lᵀ,   weights = A⁻¹(y − ȳ),   [A⁻¹]ᵢᵢ = squares of column i of L⁻¹, summed
    score = y − weightsᵢ / [A⁻¹]ᵢᵢ                                             leave-one-out

Eigenvectors serve every penalty (judge/basis.py), but of thousands of rows they take more than ten
times as long as L and the diagonal together, and few penalties need to be tried. `FewPairs` has
them, of rows that are so few that they take next to no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor

from balancemix import interrupts
from balancemix.judge.basis import Basis
from balancemix.judge.factored import Errors, Factored, class_weights
from balancemix.models.kernel import KernelMachine, squared_exponential
from balancemix.progress import progress

FEW = 1024  # rows of which eigenvectors take next to no time
_COLUMNS = 256  # of L⁻¹ at a time
_ROWS = 512  # of K at a time


def compared(features: Tensor, mean: Tensor, scale: Tensor) -> Factored:
    """Compare all pairs of rows, with standardisation as it is; a few are factored for good."""
    x = (features.to(mean.device).float() - mean) / scale
    similar = similarities(x)
    if len(features) > FEW:
        return Pairs(features, mean, scale, x, similar)
    spectrum, vectors = torch.linalg.eigh(similar)
    return FewPairs(features, mean, scale, x, vectors, spectrum.clamp(min=0))


def similarities(x: Tensor) -> Tensor:
    """Compute the similarity of every two of N rows, each pair once: N×N.

    >>> similarities(torch.tensor([[0.0, 0.0], [2.0, 0.0]]))
    tensor([[1.0000, 0.3679],
            [0.3679, 1.0000]])
    """
    similar = x.new_empty(len(x), len(x))
    for start in range(0, len(x), _ROWS):
        stop = min(start + _ROWS, len(x))
        part = squared_exponential(x[start:stop], x[:stop])
        similar[start:stop, :stop] = part
        similar[:start, start:stop] = part[:, :start].T
    return similar


class Compared(Factored):
    """Rows that are the landmarks themselves, so that some of them are factored anew."""

    def only(self, rows: Tensor) -> Factored:
        """Factor some of the rows alone, standardised as they are."""
        return compared(self.features[rows], self.mean, self.scale)

    def at(self, rows: Tensor, penalty: float) -> tuple[Factored, float]:
        """Factor some of the rows for one penalty; all of it is left to ask for."""
        x = self.landmarks[rows]
        similar = similarities(x)
        return Pairs(self.features[rows], self.mean, self.scale, x, similar), penalty

    def places(self, rows: Tensor) -> Tensor:
        """Say that each row has coefficients of its own."""
        return rows[:, None]


@dataclass(eq=False)
class FewPairs(Compared, Basis):
    """Rows with the eigenvectors of their N×N similarities, which are kept: V is `lift`."""

    def vectors(self, rows: slice | Tensor) -> Tensor:
        """Return some rows of V."""
        return self.lift[rows]

    def projected(self, target: Tensor, mean: Tensor) -> Tensor:
        """Compute Vᵀ(y − ȳ): r×K."""
        return self.lift.T @ (target - mean).to(self.device)


@dataclass(eq=False)
class Pairs(Compared):
    """N rows of features, and the N×N similarities K of all pairs.

    Kept of each penalty that was asked for: the diagonal of A⁻¹, and the last target's weights.
    """

    similar: Tensor
    _diagonals: dict[float, Tensor] = field(default_factory=dict, init=False)
    _weights: dict[float, Tensor] = field(default_factory=dict, init=False)
    _target: Tensor = field(default_factory=lambda: torch.empty(0), init=False)

    for_one_penalty: ClassVar[bool] = True

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

    def errors(self, target: Tensor, counted: Tensor, groups: Sequence[Tensor] = ()) -> Errors:
        """Prepare the leave-one-out error of each penalty."""
        weight = class_weights(target)

        def error(penalty: float) -> float:
            scores = self.left_out(target, penalty, groups)
            off = ((scores - target).square() * counted).sum(0)
            return float((off * weight).sum()) / len(target)

        return lambda grid: [error(penalty) for penalty in grid]

    def solve(self, target: Tensor, penalty: float) -> KernelMachine:
        """Fit all rows to N×K targets."""
        return self.machine(self.weights(target, penalty), target.mean(0).to(self.device))

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

    By forward substitution in blocks: only those on L's diagonal are inverted, and all else is
    products, which read L where it is. A solver of triangular systems would copy parts of it.

    >>> _diagonal(torch.tensor([[2.0, 0.0], [1.0, 1.0]]))
    tensor([0.5000, 1.0000])
    """
    edges = pairwise([*range(0, len(factor), _COLUMNS), len(factor)])
    blocks = [(start, stop, _inverse(factor[start:stop, start:stop])) for start, stop in edges]
    squares = []
    with progress(f"factor {len(factor):,} rows", len(factor)) as show:
        for number, (left, right, inverse) in enumerate(blocks):
            interrupts.check()
            columns = factor.new_empty(len(factor) - left, right - left)
            columns[: right - left] = inverse  # above them L⁻¹ is 0
            for start, stop, below in blocks[number + 1 :]:
                known = factor[start:stop, left:start] @ columns[: start - left]
                columns[start - left : stop - left] = -(below @ known)
            squares.append(columns.square().sum(0))
            show.advance(right - left)
    diagonal: Tensor = torch.cat(squares).float()
    return diagonal


def _inverse(triangle: Tensor) -> Tensor:
    """Invert a lower triangular matrix."""
    unit = torch.eye(len(triangle)).to(triangle)
    inverse: Tensor = torch.linalg.solve_triangular(triangle, unit, upper=False)
    return inverse
