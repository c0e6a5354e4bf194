"""Mixup of two batches (Eq. 5), and of labels of which some do not count."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from balancemix.labels.table import LabelTable
from balancemix.processes import Shard


def draw_lambda(
    alpha: float,
    generator: torch.Generator,
    pairs: int | Shard = 1,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Draw λ = max(λ', 1 − λ'), λ' ~ Beta(α, α), once or for each of `pairs`; α = 0 gives 1.

    For a shard, λ is drawn for all pairs of the batch and the shard's are returned.

    >>> draw_lambda(0.0, torch.Generator())
    tensor([1.])
    """
    if alpha < 0:
        raise ValueError(f"alpha must not be negative, it is {alpha}")
    if isinstance(pairs, Shard):
        return pairs.take(draw_lambda(alpha, generator, pairs.total, dtype))
    if alpha < 0.01:  # λ' rounds to 0 or 1
        return torch.ones(pairs, dtype=dtype)
    # Beta is a ratio of Gamma variables, which torch can draw from a generator.
    shape = torch.full((2, pairs), alpha, dtype=torch.float64)
    first, second = torch._standard_gamma(shape, generator=generator)
    lam = first / (first + second)
    return torch.maximum(lam, 1 - lam).to(dtype)


def mix(first: Tensor, second: Tensor, lam: Tensor) -> Tensor:
    """Mix two batches, λ of the first and 1 − λ of the second; λ is one number or one for each row.

    >>> mix(torch.ones(2, 3), torch.zeros(2, 3), torch.tensor([0.75, 0.5]))[:, 0]
    tensor([0.7500, 0.5000])
    """
    lam = lam.to(first.device, first.dtype).view(-1, *[1] * (first.ndim - 1))
    return lam * first + (1 - lam) * second


class Weighted(NamedTuple):
    """Labels to train on, B×K each."""

    target: Tensor
    weight: Tensor


class Part(NamedTuple):
    """The labels of one of two batches to be mixed, B×K each; an unknown target is 0."""

    target: Tensor
    weight: Tensor
    known: Tensor  # 1, or 0 for a label that is unknown and not filled in
    verified: Tensor  # booleans

    @classmethod
    def of(cls, table: LabelTable, index: Tensor, target: Tensor, weight: Tensor) -> Part:
        """Say which labels of a batch are unknown, and which are verified."""
        given = table.given[index.cpu()].to(weight.device)
        known = (given >= 0) | (weight > 0)  # one that is filled in has full weight
        return cls(target, weight, known.to(weight), table.verified(index).to(weight.device))

    def take(self, rows: slice | Tensor) -> Part:
        """Return some rows."""
        return Part(*(matrix[rows] for matrix in self))


def mix_parts(random: Part, partner: Part, lam: Tensor, *, blend: bool) -> Weighted:
    """Mix labels that are weighted by the random row, which has the larger share (§4.3).

    An unknown label leaves the mix to the other row's, which then has its own weight and share. A
    partner's verified label has full weight. `blend` mixes the weights like the labels.
    """
    known = mix(random.known, partner.known, lam)
    target = by_weight(mix(random.target, partner.target, lam), known).target
    if blend:
        return Weighted(target, mix(random.weight, partner.weight, lam))
    weight = known * torch.where(random.known > 0, random.weight, partner.weight)
    if bool(partner.verified.any()):
        ones, total = (
            torch.ones_like(weight),
            mix(random.weight * random.target, partner.target, lam),
        )
        sure = by_weight(total, mix(random.weight, ones, lam))
        target = torch.where(partner.verified, sure.target, target)
        weight = torch.where(partner.verified, sure.weight, weight)
    return Weighted(target, weight)


def by_weight(total: Tensor, weight: Tensor) -> Weighted:
    """Make a target of mixed weight · target, and of the mixed weight.

    Then weight · loss(target) is λ·w_a·loss(y_a) + (1 − λ)·w_b·loss(y_b), exactly so for a loss
    that is linear in the target: a label of weight 0 does not count, whatever it is mixed with. If
    all weights are 1, it is Mixup to the last bit: λ ≥ ½, so λ + (1 − λ) is 1.

    >>> by_weight(torch.tensor([0.75, 0.25, 0.0]), torch.tensor([0.75, 1.0, 0.0])).target
    tensor([1.0000, 0.2500, 0.0000])
    """
    return Weighted(total / weight.clamp(min=torch.finfo(weight.dtype).tiny), weight)
