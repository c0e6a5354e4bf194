"""Ridge: kernel ridge regression in closed form, every row scored by the others.

    score = y − [A⁻¹(y − ȳ)]ᵢ / [A⁻¹]ᵢᵢ,   A = kernel + λ                     leave-one-out
          = ȳ + (f − h·(y − ȳ)) / (1 − h)                                     the same by V and w

f is the fit of y − ȳ, h the leverage Σⱼ V²ᵢⱼ·wⱼ/(wⱼ + λ): nothing is fitted again. The mean ȳ and
the standardisation of the features are those of all rows. The first line is solved for many rows
whose pairs are all compared (judge/pairs.py), and for up to 32,768 rows compared with landmarks
(judge/refine.py); the second for others (judge/basis.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from balancemix import processes
from balancemix.errors import InputError
from balancemix.judge.basis import FEW, Basis, Kernel, compared, duplicates, make_basis
from balancemix.judge.blocks import blocks, local_blocks
from balancemix.judge.pairs import Pairs
from balancemix.judge.penalty import GRID, Penalty, growing, least
from balancemix.judge.refine import is_refined, refined
from balancemix.judge.row_sets import patterns, shared_groups
from balancemix.judge.stages import Stages
from balancemix.models.kernel import KernelMachine
from balancemix.progress import progress

_SCORED = 20_000  # rows by which a penalty is chosen
_PATTERNS = 8  # sets of known rows by which a penalty is chosen
_LEAST = 1e-6  # of 1 − h


class Ridge:
    """N rows of features, factored once, to be fitted to any N×K targets.

    Rows of one of the `groups` (N numbers) are scored by the rows of other groups. `known` marks
    the targets to fit, N×K; a class is fitted on its known rows alone, and scored in all.
    """

    def __init__(
        self, basis: Basis | Pairs, groups: Tensor | None = None, stages: Stages | None = None
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
        The grid grows as long as its edge is the best. Where each penalty takes a factor of its
        own, some of the rows choose from the grid, and the search begins with their penalty and its
        double. With many patterns of known rows, some are enough to choose by. `counted` are N×K
        booleans: the labels whose errors count.
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
        grid: Sequence[float] = GRID
        if any(isinstance(part.basis, Pairs) for part, _, _ in cases):
            begin = least(_searched([_some(*case) for case in cases], GRID))
            grid = begin, begin * 2  # more rows bear no smaller penalty, as a rule
        penalty = Penalty.of(_searched(cases, grid))
        if penalty.at_edge:
            warnings.warn(
                f"the best penalty, {penalty.best:g}, is at the edge of those tried: the features "
                "say next to nothing of these labels, or fit them without error",
                stacklevel=2,
            )
        return penalty

    def solve(self, target: Tensor, penalty: float, known: Tensor | None = None) -> KernelMachine:
        """Fit all rows, and return what scores any others."""
        target, basis = self._checked(target, known), self.basis
        if known is None or bool(known.all()):
            if isinstance(basis, Pairs):
                return basis.solve(target, penalty)
            mean = target.mean(0)
            projected = basis.projected(target, mean)
            coefficients = basis.lift @ (projected / (basis.spectrum + penalty)[:, None])
            return self._machine(coefficients, mean.to(basis.device))
        inputs = len(basis.landmarks) or len(basis.mean)
        coefficients = basis.mean.new_zeros(inputs, target.shape[1])
        intercept = basis.mean.new_zeros(target.shape[1])
        for classes, rows in patterns(known):
            part = self._at(rows, target[rows][:, classes], penalty)[1]
            # Where all pairs are compared, the landmarks are the rows.
            places = rows[:, None] if basis.whiten is None else slice(None)
            coefficients[places, classes] = part.coefficients
            intercept[classes] = part.intercept
        return self._machine(coefficients, intercept)

    def _refined(self, target: Tensor, penalty: float) -> Tensor:
        """Score every row; landmarks are refined by all pairs, if these are few enough."""
        basis, scores = self.basis, None
        alone = next(shared_groups(self.groups), None) is None
        if is_refined(basis) and alone:
            scores = refined(basis, target, penalty)
        return _left_out(self, target, penalty) if scores is None else scores

    def _machine(self, coefficients: Tensor, intercept: Tensor) -> KernelMachine:
        basis = self.basis
        return KernelMachine(basis.mean, basis.scale, basis.landmarks, coefficients, intercept)

    def _only(self, rows: Tensor) -> Ridge:
        basis = self.basis
        groups = None if self.groups is None else self.groups[rows]
        if isinstance(basis, Basis) and basis.whiten is not None:
            return Ridge(basis.only(rows), groups)
        return Ridge(compared(basis.features[rows], basis.mean, basis.scale), groups)

    def _at(self, rows: Tensor, target: Tensor, penalty: float) -> tuple[Tensor, KernelMachine]:
        """Score some rows by each other and fit them at one penalty, without an eigenbasis."""
        groups = None if self.groups is None else self.groups[rows]
        basis = self.basis
        if isinstance(basis, Basis) and basis.whiten is not None:
            part = Ridge(basis.penalised(rows, penalty), groups)
            return _left_out(part, target, 0.0), part.solve(target, 0.0)
        part = Ridge(Pairs(basis.features[rows], basis.mean, basis.scale), groups)
        return _left_out(part, target, penalty), part.solve(target, penalty)

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
    if isinstance(basis, Pairs):
        return basis.left_out(target, penalty, list(shared_groups(ridge.groups)))
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


Labels = tuple[Ridge, Tensor, Tensor]  # rows, their targets, and which of these count


def _some(ridge: Ridge, target: Tensor, counted: Tensor) -> Labels:
    """Draw rows that are so few that eigenvectors take next to no time."""
    order = torch.randperm(len(ridge), generator=torch.Generator().manual_seed(0))
    rows = order[:FEW].sort().values
    return ridge._only(rows), target[rows], counted[rows]


def _searched(cases: Sequence[Labels], grid: Sequence[float]) -> dict[float, float]:
    """Compute the leave-one-out error of each penalty of a grid, and beyond it if need be."""
    projected = [
        None if isinstance(part.basis, Pairs) else part.basis.projected(y, y.mean(0))
        for part, y, _ in cases
    ]
    errors = dict.fromkeys(grid, 0.0)
    for more in growing(errors):
        each = [_errors(*case, v, more) for case, v in zip(cases, projected, strict=True)]
        errors |= zip(more, map(sum, zip(*each, strict=True)), strict=True)
    return errors


def _errors(
    ridge: Ridge, target: Tensor, counted: Tensor, projected: Tensor | None, grid: Sequence[float]
) -> list[float]:
    """Compute the leave-one-out error of each penalty, over some of the rows if there are many.

    Where pairs are compared, nothing is `projected`.
    """
    basis, mean, errors = ridge.basis, target.mean(0), [0.0] * len(grid)
    weight = len(target) / target.sum(0).clamp(min=1e-3)
    if isinstance(basis, Pairs):
        left_out = (_left_out(ridge, target, penalty) for penalty in grid)
        off = (((scores - target).square() * counted).sum(0) for scores in left_out)
        return [float((each * weight).sum()) / len(target) for each in off]
    assert projected is not None
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
