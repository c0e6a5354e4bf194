"""Refine: leave-one-out scores by all pairs of rows, found from landmarks in a few passes.

    score = y − x / a,   A·x = y − ȳ,   a = diag(A⁻¹),   A = kernel + λ         (judge/ridge.py)

x is found by conjugate gradients: a step multiplies A, made tile by tile and never stored. P, the
matrix that landmarks make of A, with what a row's similarity to itself lacks (δ, the mean of δᵢ),
is easy to invert and so near that few steps are needed:

    P = V·diag(w)·Vᵀ + λ + δ,   δᵢ = 1 − Σⱼ V²ᵢⱼ·wⱼ

a matters more than x: where it is a thousandth too small, rows are judged by their own labels. Of a
sample of rows it is exact: their unit vectors are further right sides. From these follow the others

    aᵢ = c₀ + c₁·[P⁻¹]ᵢᵢ + c₂·δᵢ

by least squares, for landmarks (where δᵢ is 0) and the other rows apart.
"""

from __future__ import annotations

import warnings
from typing import TypeGuard

import torch
from torch import Tensor

from balancemix import processes
from balancemix.judge.basis import Streamed
from balancemix.judge.blocks import blocks, local_blocks
from balancemix.judge.factored import Factored
from balancemix.models.kernel import squared_exponential
from balancemix.progress import progress

MOST = 32_768  # rows: time grows as their square
_SAMPLE = 128  # landmarks, and as many other rows, of which a is exact
_STEPS = 40
_SMALL = 1e-4  # what may be left of a right side


def is_refined(basis: Factored) -> TypeGuard[Streamed]:
    """Whether there are landmarks, drawn from rows few enough to be compared pair by pair."""
    return isinstance(basis, Streamed) and basis.drawn is not None and len(basis) <= MOST


def refined(basis: Streamed, target: Tensor, penalty: float) -> Tensor | None:
    """Score each row by the others, N×K; None (and a warning) if the steps do not suffice."""
    mean, rows = target.mean(0), _sample(basis)
    shift = penalty + float(1 - basis.spectrum.sum() / len(basis))
    right = torch.zeros(len(basis), target.shape[1] + len(rows), device=basis.device)
    right[:, : target.shape[1]] = target - mean
    right[rows, target.shape[1] + torch.arange(len(rows))] = 1
    solved = _solved(basis, right, penalty, shift)
    if solved is None:
        warnings.warn(
            f"at the penalty {penalty:g} {_STEPS} steps do not refine the scores of landmarks; "
            "they stay as they are",
            stacklevel=2,
        )
        return None
    solved = solved.cpu()
    exact = solved[rows, target.shape[1] + torch.arange(len(rows))]
    diagonal = _diagonal(basis, shift, rows, exact)
    # 1/a is λ and what the other rows leave open of a similarity of 1.
    diagonal.clamp_(1 / (penalty + 1), 1 / penalty)
    return target - solved[:, : target.shape[1]] / diagonal[:, None]


def _sample(basis: Streamed) -> Tensor:
    """Draw landmarks and other rows."""
    assert basis.drawn is not None
    order = torch.randperm(len(basis), generator=torch.Generator().manual_seed(0))
    landmark = _landmarks(basis)[order]
    return torch.cat([order[landmark][:_SAMPLE], order[~landmark][:_SAMPLE]])


def _landmarks(basis: Streamed) -> Tensor:
    """Mark the rows that are landmarks."""
    marks = torch.zeros(len(basis), dtype=torch.bool)
    marks[basis.drawn] = True
    return marks


def _solved(basis: Streamed, right: Tensor, penalty: float, shift: float) -> Tensor | None:
    """Solve A·x = right for each column, by conjugate gradients from P⁻¹·right."""
    solution = _near(basis, right, shift)
    rest = right - _times(basis, solution, penalty)
    bound = _SMALL * right.norm(dim=0)
    direction = torch.zeros_like(right)
    size = right.new_ones(right.shape[1])
    for _ in range(_STEPS):
        if bool((rest.norm(dim=0) <= bound).all()):
            return solution
        near = _near(basis, rest, shift)
        before, size = size, (rest * near).sum(0)
        direction = near + (size / before.clamp(min=1e-30)) * direction
        image = _times(basis, direction, penalty)
        step = size / (direction * image).sum(0).clamp(min=1e-30)
        solution, rest = solution + step * direction, rest - step * image
    return None


def _near(basis: Streamed, right: Tensor, shift: float) -> Tensor:
    """Compute P⁻¹·right."""
    shrunk = basis.spectrum / (basis.spectrum + shift)
    projected = basis.projected(right, right.new_zeros(()))
    lifted = (basis.lift / basis.spectrum) @ (shrunk[:, None] * projected)
    fit = torch.zeros_like(right)
    for rows in local_blocks(len(basis)):
        fit[rows] = basis.similarities(basis.features[rows]) @ lifted
    return (right - processes.all_reduce(fit)) / shift


def _times(basis: Streamed, right: Tensor, penalty: float) -> Tensor:
    """Compute A·right; a tile of A serves its mirror image too."""
    total = torch.zeros_like(right)
    with progress("compare all pairs", len(basis)) as show:
        for rows in local_blocks(len(basis)):
            x = basis.standardised(basis.features[rows])
            for others in blocks(len(basis)):
                if others.start < rows.start:
                    continue
                tile = squared_exponential(x, basis.standardised(basis.features[others]))
                total[rows] += tile @ right[others]
                if others.start > rows.start:
                    total[others] += tile.T @ right[rows]
            show.advance(len(x))
    return processes.all_reduce(total) + penalty * right


def _diagonal(basis: Streamed, shift: float, sample: Tensor, exact: Tensor) -> Tensor:
    """Estimate the diagonal of A⁻¹ from its values at a sample of rows."""
    terms = torch.ones(len(basis), 3, dtype=torch.float64)
    terms[:, 1:] = 0
    for rows in local_blocks(len(basis)):
        squares = basis.vectors(rows).square()
        fit = squares @ (basis.spectrum / (basis.spectrum + shift))
        terms[rows, 1] = ((1 - fit) / shift).cpu().double()
        terms[rows, 2] = (1 - squares @ basis.spectrum).cpu().double()
    terms[:, 1:] = processes.all_reduce(terms[:, 1:].contiguous())
    diagonal, landmark = torch.empty(len(basis)), _landmarks(basis)
    for part, count in ((landmark, 2), (~landmark, 3)):  # landmarks lack nothing: their δᵢ is 0
        chosen, used = part[sample], terms[:, :count]
        there, known = used[sample[chosen]], exact[chosen, None].double()
        factors = torch.linalg.lstsq(there, known, driver="gelsd").solution
        diagonal[part] = (used[part] @ factors)[:, 0].float()
    diagonal[sample] = exact
    return diagonal
