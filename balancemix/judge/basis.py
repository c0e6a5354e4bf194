"""Basis: rows in the directions in which ridge regression shrinks them.

Ridge regression with penalty λ fits N×K targets y by V·diag(w/(w + λ))·Vᵀy. V has N rows and
orthonormal columns; with a kernel, V and w are the eigenvectors and eigenvalues of the N×N matrix
of similarities. They depend only on the features: factored once, they serve any target and penalty.

    score = ȳ + (f − h·(y − ȳ)) / (1 − h)        leave-one-out

f is the fit of y − ȳ, h the leverage Σⱼ V²ᵢⱼ·wⱼ/(wⱼ + λ).

Of many rows, each is described by its similarity to M of them, the landmarks (Nyström; Williams and
Seeger, NIPS 2000): a sum over the rows gives an M×M matrix to factor instead, and V is computed
again, block by block, whenever it is needed (`Streamed`). Time grows as N·M·(M + D), memory does
not grow with N·M. Linear ridge regression is the same with the features in place of similarities.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from balancemix import processes
from balancemix.judge.blocks import blocks, local_blocks
from balancemix.judge.factored import Errors, Factored, class_weights
from balancemix.models.kernel import KernelMachine, squared_exponential
from balancemix.progress import progress

_SCORED = 20_000  # rows by which a penalty is chosen
_LEAST = 1e-6  # of 1 − h
_RANK = 1e-9  # directions of a smaller share of the largest eigenvalue are rounding


@dataclass(eq=False)
class Basis(Factored):
    """V and w of the module's docstring, and what is needed for rows that are not among the N."""

    lift: Tensor  # M×r: a row with similarities z has coordinates z @ lift / spectrum
    spectrum: Tensor  # r: w

    def vectors(self, rows: slice | Tensor) -> Tensor:
        """Compute some rows of V."""
        return self.coordinates(self.features[rows])

    def coordinates(self, features: Tensor) -> Tensor:
        """Place rows of raw features in the basis."""
        return self.similarities(features) @ (self.lift / self.spectrum)

    def similarities(self, features: Tensor) -> Tensor:
        """Compare rows of raw features with the landmarks; without these, standardise them."""
        return _similarities(self.standardised(features), self.landmarks)

    def projected(self, target: Tensor, mean: Tensor) -> Tensor:
        """Compute Vᵀ(y − ȳ): r×K."""
        total = self.lift.new_zeros(len(self.lift), target.shape[1])
        for rows in local_blocks(len(self)):
            z = self.similarities(self.features[rows])
            total += z.T @ (target[rows] - mean).to(self.device)
        return (self.lift / self.spectrum).T @ processes.all_reduce(total)

    def left_out(self, target: Tensor, penalty: float, groups: Sequence[Tensor] = ()) -> Tensor:
        """Score every row of N×K targets by the others, rows of a group by those of others."""
        mean = target.mean(0)
        projected, scores = self.projected(target, mean), torch.zeros(target.shape)
        with progress("score", len(self)) as show:
            for rows in local_blocks(len(self)):
                vectors = self.vectors(rows)
                scored = self._scores(vectors, projected, target[rows] - mean, penalty)
                scores[rows] = scored + mean
                show.advance(len(vectors))
        processes.all_reduce(scores)
        for group in groups:
            centred = target[group] - mean
            scores[group] = self._group_scores(group, projected, centred, penalty) + mean
        return scores

    def errors(self, target: Tensor, counted: Tensor, groups: Sequence[Tensor] = ()) -> Errors:
        """Prepare the leave-one-out error of each penalty, over some of the rows if many."""
        mean, weight = target.mean(0), class_weights(target)
        projected = self.projected(target, mean)
        alone = torch.ones(len(self), dtype=torch.bool)
        for group in groups:
            alone[group] = False
        singles = alone.nonzero()[:, 0]
        order = torch.randperm(len(singles), generator=torch.Generator().manual_seed(0))
        chosen = singles[order[:_SCORED].sort().values]
        some = groups[: -(-len(groups) * max(len(chosen), 1) // max(len(singles), 1))]
        count = len(chosen) + sum(map(len, some))

        def error(scores: Tensor, centred: Tensor, rows: Tensor) -> float:
            off = ((scores - centred).square() * counted[rows]).sum(0)
            return float((off * weight).sum()) / count

        def measure(grid: Sequence[float]) -> list[float]:
            errors = [0.0] * len(grid)
            for block in blocks(len(chosen)):
                rows = chosen[block]
                vectors, centred = self.vectors(rows), target[rows] - mean
                for i, penalty in enumerate(grid):
                    scores = self._scores(vectors, projected, centred, penalty)
                    errors[i] += error(scores, centred, rows)
            for rows in some:
                centred = target[rows] - mean
                for i, penalty in enumerate(grid):
                    scores = self._group_scores(rows, projected, centred, penalty)
                    errors[i] += error(scores, centred, rows)
            return errors

        return measure

    def solve(self, target: Tensor, penalty: float) -> KernelMachine:
        """Fit all rows to N×K targets."""
        mean = target.mean(0)
        projected = self.projected(target, mean)
        coefficients = self.lift @ (projected / (self.spectrum + penalty)[:, None])
        return self.machine(coefficients, mean.to(self.device))

    def _scores(self, vectors: Tensor, projected: Tensor, target: Tensor, penalty: float) -> Tensor:
        """Score rows of V with centred targets, each without itself."""
        shrunk = self.spectrum / (self.spectrum + penalty)
        fit = (vectors @ (shrunk[:, None] * projected)).cpu()
        leverage = (vectors.square() @ shrunk)[:, None].cpu()
        return (fit - leverage * target) / (1 - leverage).clamp(min=_LEAST)

    def _group_scores(
        self, rows: Tensor, projected: Tensor, target: Tensor, penalty: float
    ) -> Tensor:
        """Score the rows of a group without all of them."""
        shrunk, vectors = self.spectrum / (self.spectrum + penalty), self.vectors(rows)
        hat = (vectors * shrunk) @ vectors.T
        rest = target - (vectors @ (shrunk[:, None] * projected)).cpu()
        without = torch.eye(len(rows)) - hat.cpu()
        solution: Tensor = torch.linalg.lstsq(without, rest).solution
        return target - solution


@dataclass(eq=False)
class Streamed(Basis):
    """Rows described by landmarks or, for linear regression, by their features."""

    whiten: Tensor = field(kw_only=True)  # M×M: similarities times it have k(a, b) as dot product
    drawn: Tensor | None = field(default=None, kw_only=True)  # M: which rows are the landmarks

    @classmethod
    def of(
        cls, features: Tensor, mean: Tensor, scale: Tensor, landmarks: Tensor, whiten: Tensor
    ) -> Streamed:
        """Factor the rows."""
        gram = _gram(features, mean, scale, landmarks, whiten)
        spectrum, turn = torch.linalg.eigh(gram)
        large = spectrum > _RANK * spectrum[-1]
        spectrum, turn = spectrum[large], turn[:, large]
        lift = ((whiten.double() @ turn) * spectrum.sqrt()).float()
        return cls(features, mean, scale, landmarks, lift, spectrum.float(), whiten=whiten)

    def only(self, rows: Tensor) -> Streamed:
        """Factor some of the rows alone, standardised as they are."""
        part = self.features[rows]
        return Streamed.of(part, self.mean, self.scale, self.landmarks, self.whiten)

    def at(self, rows: Tensor, penalty: float) -> tuple[Streamed, float]:
        """Factor some of the rows with a penalty included, so that the one left to add is 0.

        It takes a Cholesky factor instead of eigenvectors.
        """
        part = self.features[rows]
        gram = _gram(part, self.mean, self.scale, self.landmarks, self.whiten)
        gram.diagonal().add_(penalty)
        factor = torch.linalg.cholesky(gram)
        lift = torch.linalg.solve_triangular(factor, self.whiten.T.double(), upper=False).T.float()
        ones = lift.new_ones(lift.shape[1])
        made = dataclasses.replace(self, features=part, lift=lift, spectrum=ones, drawn=None)
        return made, 0.0

    def places(self, rows: Tensor) -> slice:
        """Say that some rows have coefficients of all landmarks."""
        return slice(None)


def _similarities(x: Tensor, landmarks: Tensor) -> Tensor:
    """Compare standardised rows with the landmarks; without these, return them."""
    return squared_exponential(x, landmarks) if len(landmarks) else x


def _gram(
    features: Tensor, mean: Tensor, scale: Tensor, landmarks: Tensor, whiten: Tensor
) -> Tensor:
    """Sum the products of whitened similarities over the rows: M×M, float64."""
    gram = torch.zeros(whiten.shape, dtype=torch.float64, device=whiten.device)
    with progress("factor", len(features)) as show:
        for rows in local_blocks(len(features)):
            x = (features[rows].to(mean.device).float() - mean) / scale
            # Whitened before they are multiplied: squares of similarities would lose half of the
            # digits.
            z = _similarities(x, landmarks) @ whiten
            gram += z.T @ z
            show.advance(len(z))
    return processes.all_reduce(gram)
