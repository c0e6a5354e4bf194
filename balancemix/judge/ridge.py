"""Ridge: kernel ridge regression in closed form, every row scored by the others.

    score = y − [A⁻¹(y − ȳ)]ᵢ / [A⁻¹]ᵢᵢ,   A = kernel + λ                     leave-one-out

Nothing is fitted again. The mean ȳ and the standardisation of the features are those of all rows.
It is computed by A where all pairs of rows are compared (judge/pairs.py), and for up to 32,768 rows
that are compared with landmarks (judge/refine.py); for others by eigenvectors (judge/basis.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from balancemix.errors import InputError
from balancemix.judge.blocks import blocks
from balancemix.judge.factor import Kernel, duplicates, make_basis
from balancemix.judge.factored import Factored
from balancemix.judge.pairs import FEW
from balancemix.judge.penalty import GRID, Penalty, growing, least
from balancemix.judge.refine import is_refined, refined
from balancemix.judge.row_sets import patterns, shared_groups
from balancemix.judge.stages import Stages
from balancemix.models.kernel import KernelMachine

_PATTERNS = 8  # sets of known rows by which a penalty is chosen


class Ridge:
    """N rows of features, factored once, to be fitted to any N×K targets.

    Rows of one of the `groups` (N numbers) are scored by the rows of other groups. `known` marks
    the targets to fit, N×K; a class is fitted on its known rows alone, and scored in all.
    """

    def __init__(
        self, basis: Factored, groups: Tensor | None = None, stages: Stages | None = None
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
            return self._left_out(target, penalty)
        scores = torch.zeros(target.shape)
        for classes, rows in patterns(known):
            rest = (~known[:, classes[0]]).nonzero()[:, 0]
            part, left = self.basis.at(rows, penalty)
            some = target[rows][:, classes]
            scores[rows[:, None], classes] = part.left_out(some, left, self._shared(rows))
            machine = part.solve(some, left)
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
        double; smaller ones are tried unless `is_low_enough`. With many patterns of known rows,
        some are enough to choose by. `counted` are N×K booleans: the labels whose errors count.
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
        few: dict[float, float] | None = None
        if any(part.basis.for_one_penalty for part, _, _ in cases):
            few = _searched([_some(*case) for case in cases], GRID)
            grid = least(few), 2 * least(few)
        penalty = Penalty.of(_searched(cases, grid, few), few)
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
            return basis.solve(target, penalty)
        inputs = len(basis.landmarks) or len(basis.mean)
        coefficients = basis.mean.new_zeros(inputs, target.shape[1])
        intercept = basis.mean.new_zeros(target.shape[1])
        for classes, rows in patterns(known):
            part, rest = basis.at(rows, penalty)
            machine = part.solve(target[rows][:, classes], rest)
            coefficients[basis.places(rows), classes] = machine.coefficients
            intercept[classes] = machine.intercept
        return basis.machine(coefficients, intercept)

    def _shared(self, rows: Tensor | None = None) -> list[Tensor]:
        """List the rows of each group of two or more, of all rows or by their places among some."""
        groups = self.groups if rows is None or self.groups is None else self.groups[rows]
        return list(shared_groups(groups))

    def _only(self, rows: Tensor) -> Ridge:
        """Factor some of the rows alone."""
        return Ridge(self.basis.only(rows), None if self.groups is None else self.groups[rows])

    def _left_out(self, target: Tensor, penalty: float) -> Tensor:
        """Score every row; landmarks are refined by all pairs, if these are few enough."""
        basis, groups, scores = self.basis, self._shared(), None
        if is_refined(basis) and not groups:
            scores = refined(basis, target, penalty)
        return basis.left_out(target, penalty, groups) if scores is None else scores

    def _checked(self, target: Tensor, known: Tensor | None) -> Tensor:
        if target.ndim != 2 or len(target) != len(self):
            shape = "×".join(map(str, target.shape))
            raise InputError(f"targets must be {len(self)}×K, not {shape}")
        if known is not None and known.shape != target.shape:
            raise InputError("known must have the shape of the targets")
        return target.detach().cpu().float()


Labels = tuple[Ridge, Tensor, Tensor]  # rows, their targets, and which of these count


def _some(ridge: Ridge, target: Tensor, counted: Tensor) -> Labels:
    """Draw rows that are so few that eigenvectors take next to no time."""
    order = torch.randperm(len(ridge), generator=torch.Generator().manual_seed(0))
    rows = order[:FEW].sort().values
    return ridge._only(rows), target[rows], counted[rows]


def _searched(
    cases: Sequence[Labels], grid: Sequence[float], few: Mapping[float, float] | None = None
) -> dict[float, float]:
    """Compute the leave-one-out error of each penalty of a grid, and beyond it if need be."""
    measures = [part.basis.errors(y, counted, part._shared()) for part, y, counted in cases]
    errors = dict.fromkeys(grid, 0.0)
    for more in growing(errors, few):
        each = [measure(more) for measure in measures]
        errors |= zip(more, map(sum, zip(*each, strict=True)), strict=True)
    return errors
