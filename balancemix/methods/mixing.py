"""Mixup of two batches (Eq. 5)."""

from __future__ import annotations

import torch
from torch import Tensor

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
