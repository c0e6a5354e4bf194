"""Ridge: kernel ridge regression in closed form, every row scored by the others.

    score = y − [A⁻¹(y − ȳ)]ᵢ / [A⁻¹]ᵢᵢ,   A = kernel + λ                     leave-one-out
          = ȳ + (f − h·(y − ȳ)) / (1 − h)                                     the same by V and w

f is the fit of y − ȳ, h the leverage Σⱼ V²ᵢⱼ·wⱼ/(wⱼ + λ): nothing is fitted again. The mean ȳ and
the standardisation of the features are those of all rows. Where rows are compared with landmarks,
the first line is solved for up to 65,536 rows (judge/refine.py), and the second beyond.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from balancemix import processes
from balancemix.errors import InputError
from balancemix.judge.basis import Basis, Kernel, duplicates, make_basis
from balancemix.judge.blocks import blocks, local_blocks
from balancemix.judge.refine import is_refined, refined
from balancemix.judge.row_sets import patterns, shared_groups
from balancemix.judge.stages import Stages
from balancemix.models.kernel import KernelMachine, squared_exponential
from balancemix.progress import progress

GRID = tuple(2.0**power for power in range(-3, 8))
_WIDER = 8  # steps by which the grid may grow on each side
_SCORED = 20_000  # rows by which a penalty is chosen
_PATTERNS = 8  # sets of known rows by which a penalty is chosen
_LEAST = 1e-6  # of 1 − h


@dataclass(frozen=True)
class Penalty:
    """A penalty chosen by leave-one-out error."""

    best: float
    grid: list[float]
    errors: list[float]  # for each of the grid

    @property
    def at_edge(self) -> bool:
        """Whether a penalty beyond the grid might be better."""
        return self.best in (*self.grid[:1], *self.grid[-1:])


class Ridge:
    """N rows of features, factored once, to be fitted to any N×K targets.

    Rows of one of the `groups` (N numbers) are scored by the rows of other groups. `known` marks
    the targets to fit, N×K; a class is fitted on its known rows alone, and scored in all.
    """

    def __init__(
        self, basis: Basis, groups: Tensor | None = None, stages: Stages | None = None
    ) -> None:
        if groups is not None and groups.shape != (len(basis),):
            raise InputError(f"groups must be {len(basis)} numbers, not {tuple(groups.shape)}")
        self.basis, self.groups, self.stages = basis, groups, stages

    @classmethod
    def of(
        cls,
        features: Tensor,
        *,
        kernel: Kernel = "rbf",
        landmarks: int | None = None,
        groups: Tensor | None = None,
        seed: int = 0,
        device: torch.device | str = "cpu",
        stages: Stages | None = None,
    ) -> Ridge:
        """Factor N×D features; see `make_basis`."""
        basis = make_basis(
            features, kernel, landmarks=landmarks, seed=seed, device=device, stages=stages
        )
        if groups is None and (count := duplicates(features)):
            warnings.warn(
                f"{count:,} rows have the same features as another row and judge each other; give "
                "such rows one group",
                stacklevel=2,
            )
        return cls(basis, groups, stages)

    def __len__(self) -> int:
        return len(self.basis)

    def leave_one_out(self, target: Tensor, penalty: float, known: Tensor | None = None) -> Tensor:
        """Score every row of every class by the other rows: N×K."""
        target = self._checked(target, known)
        if known is None or bool(known.all()):
            return self._refined(target, penalty)
        scores = torch.zeros(target.shape)
        for classes, rows in patterns(known):
            rest = (~known[:, classes[0]]).nonzero()[:, 0]
            left_out, machine = self._at(rows, target[rows][:, classes], penalty)
            scores[rows[:, None], classes] = left_out
            for block in blocks(len(rest)):
                x = self.basis.features[rest[block]].to(self.basis.device).float()
                scores[rest[block][:, None], classes] = machine.scores(x).cpu()
        return scores

    def choose(
        self, target: Tensor, known: Tensor | None = None, counted: Tensor | None = None
    ) -> Penalty:
        """Choose the penalty with the least leave-one-out error, of all labels or of some.

        A class's squared error is divided by the sum of its targets, so that rare classes count.
        The grid grows as long as its edge is the best. With many patterns of known rows, some are
        enough to choose by. `counted` are N×K booleans: the labels whose errors count.
        """
        target = self._checked(target, known)
        every = torch.ones_like(target) if counted is None else counted.to(target)
        cases = [(self, target, every)]
        if known is not None and not bool(known.all()):
            some = list(patterns(known))
            some = some[:: -(-len(some) // _PATTERNS)]
            cases = [
                (self._only(rows), target[rows][:, classes], every[rows][:, classes])
                for classes, rows in some
            ]
        projected = [part.basis.projected(y, y.mean(0)) for part, y, _ in cases]
        errors = dict.fromkeys(GRID, 0.0)
        for grid in _growing(errors):
            each = [_errors(*case, v, grid) for case, v in zip(cases, projected, strict=True)]
            errors |= zip(grid, map(sum, zip(*each, strict=True)), strict=True)
        grid = sorted(errors)
        best = min(grid, key=errors.__getitem__)
        penalty = Penalty(best, grid, [errors[value] for value in grid])
        if penalty.at_edge:
            warnings.warn(
                f"the best penalty, {best:g}, is at the edge of those tried: the features say next "
                "to nothing of these labels, or fit them without error",
                stacklevel=2,
            )
        return penalty

    def solve(self, target: Tensor, penalty: float, known: Tensor | None = None) -> KernelMachine:
        """Fit all rows, and return what scores any others."""
        target, basis = self._checked(target, known), self.basis
        if known is None or bool(known.all()):
            mean = target.mean(0)
            projected = basis.projected(target, mean)
            coefficients = basis.lift @ (projected / (basis.spectrum + penalty)[:, None])
            return self._machine(coefficients, mean.to(basis.device))
        coefficients = basis.lift.new_zeros(len(basis.lift), target.shape[1])
        intercept = basis.lift.new_zeros(target.shape[1])
        for classes, rows in patterns(known):
            part = self._at(rows, target[rows][:, classes], penalty)[1]
            # Where all pairs are compared, the landmarks are the rows.
            places = slice(None) if basis.kept is None else rows[:, None]
            coefficients[places, classes] = part.coefficients
            intercept[classes] = part.intercept
        return self._machine(coefficients, intercept)

    def _refined(self, target: Tensor, penalty: float) -> Tensor:
        """Score every row by landmarks, and by all pairs where this takes minutes at most."""
        scores = None
        if is_refined(self.basis) and next(shared_groups(self.groups), None) is None:
            scores = refined(self.basis, target, penalty)
        return _left_out(self, target, penalty) if scores is None else scores

    def _machine(self, coefficients: Tensor, intercept: Tensor) -> KernelMachine:
        basis = self.basis
        return KernelMachine(basis.mean, basis.scale, basis.landmarks, coefficients, intercept)

    def _only(self, rows: Tensor) -> Ridge:
        groups = None if self.groups is None else self.groups[rows]
        return Ridge(self.basis.only(rows), groups)

    def _at(self, rows: Tensor, target: Tensor, penalty: float) -> tuple[Tensor, KernelMachine]:
        """Score some rows by each other and fit them at one penalty, without an eigenbasis."""
        groups = None if self.groups is None else self.groups[rows]
        if self.basis.whiten is None:
            return _compared_at(self.basis, rows, groups, target, penalty)
        part = Ridge(self.basis.penalised(rows, penalty), groups)
        return _left_out(part, target, 0.0), part.solve(target, 0.0)

    def _checked(self, target: Tensor, known: Tensor | None) -> Tensor:
        if target.ndim != 2 or len(target) != len(self):
            shape = "×".join(map(str, target.shape))
            raise InputError(f"targets must be {len(self)}×K, not {shape}")
        if known is not None and known.shape != target.shape:
            raise InputError("known must have the shape of the targets")
        return target.detach().cpu().float()


def _left_out(ridge: Ridge, target: Tensor, penalty: float) -> Tensor:
    """Score every row by the others, where every label is known."""
    basis, mean = ridge.basis, target.mean(0)
    projected = basis.projected(target, mean)
    scores = torch.zeros(target.shape)
    with progress("score", len(basis)) as show:
        for rows in local_blocks(len(basis)):
            vectors = basis.vectors(rows)
            scores[rows] = _scores(basis, vectors, projected, target[rows] - mean, penalty) + mean
            show.advance(len(vectors))
    processes.all_reduce(scores)
    for group in shared_groups(ridge.groups):
        centred = target[group] - mean
        scores[group] = _group_scores(basis, group, projected, centred, penalty) + mean
    return scores


def _compared_at(
    basis: Basis, rows: Tensor, groups: Tensor | None, target: Tensor, penalty: float
) -> tuple[Tensor, KernelMachine]:
    """Score rows by A⁻¹, where all pairs of them are compared, and fit them."""
    x, mean = basis.standardised(basis.features[rows]), target.mean(0)
    a = squared_exponential(x, x)
    a.diagonal().add_(penalty)
    factor, failed = torch.linalg.cholesky_ex(a)
    if int(failed):  # next to no penalty: float32 has too few digits
        factor = torch.linalg.cholesky(a.double())
    inverse = torch.cholesky_inverse(factor).float()
    weights = torch.cholesky_solve((target - mean).to(factor), factor).float()
    scores = target - (weights / inverse.diagonal()[:, None]).cpu()
    for group in shared_groups(groups):
        within = inverse[group][:, group]
        scores[group] = target[group] - torch.linalg.solve(within, weights[group]).cpu()
    return scores, KernelMachine(basis.mean, basis.scale, x, weights, mean.to(basis.device))


def _scores(
    basis: Basis, vectors: Tensor, projected: Tensor, target: Tensor, penalty: float
) -> Tensor:
    """Score rows of V with centred targets, each without itself."""
    shrunk = basis.spectrum / (basis.spectrum + penalty)
    fit = (vectors @ (shrunk[:, None] * projected)).cpu()
    leverage = (vectors.square() @ shrunk)[:, None].cpu()
    return (fit - leverage * target) / (1 - leverage).clamp(min=_LEAST)


def _group_scores(
    basis: Basis, rows: Tensor, projected: Tensor, target: Tensor, penalty: float
) -> Tensor:
    """Score the rows of a group without all of them."""
    shrunk, vectors = basis.spectrum / (basis.spectrum + penalty), basis.vectors(rows)
    hat = (vectors * shrunk) @ vectors.T
    rest = target - (vectors @ (shrunk[:, None] * projected)).cpu()
    without = torch.eye(len(rows)) - hat.cpu()
    solution: Tensor = torch.linalg.lstsq(without, rest).solution
    return target - solution


def _errors(
    ridge: Ridge, target: Tensor, counted: Tensor, projected: Tensor, grid: Sequence[float]
) -> list[float]:
    """Compute the leave-one-out error of each penalty, over some of the rows if there are many."""
    basis, mean, errors = ridge.basis, target.mean(0), [0.0] * len(grid)
    weight = len(target) / target.sum(0).clamp(min=1e-3)
    shared = list(shared_groups(ridge.groups))
    alone = torch.ones(len(basis), dtype=torch.bool)
    for group in shared:
        alone[group] = False
    singles = alone.nonzero()[:, 0]
    order = torch.randperm(len(singles), generator=torch.Generator().manual_seed(0))
    chosen = singles[order[:_SCORED].sort().values]
    shared = shared[: -(-len(shared) * max(len(chosen), 1) // max(len(singles), 1))]
    count = len(chosen) + sum(map(len, shared))

    def add(scores: Tensor, centred: Tensor, rows: Tensor, place: int) -> None:
        off = ((scores - centred).square() * counted[rows]).sum(0)
        errors[place] += float((off * weight).sum()) / count

    for block in blocks(len(chosen)):
        vectors, centred = basis.vectors(chosen[block]), target[chosen[block]] - mean
        for place, penalty in enumerate(grid):
            scores = _scores(basis, vectors, projected, centred, penalty)
            add(scores, centred, chosen[block], place)
    for group in shared:
        centred = target[group] - mean
        for place, penalty in enumerate(grid):
            add(_group_scores(basis, group, projected, centred, penalty), centred, group, place)
    return errors


def _growing(errors: dict[float, float]) -> Iterator[list[float]]:
    """List the grid, then one more penalty at a time beyond an edge that is the best so far."""
    yield list(errors)
    for _ in range(2 * _WIDER):
        best, least, most = min(errors, key=errors.__getitem__), min(errors), max(errors)
        if best == least and least > GRID[0] / 2**_WIDER:
            yield [least / 2]
        elif best == most and most < GRID[-1] * 2**_WIDER:
            yield [most * 2]
        else:
            return
