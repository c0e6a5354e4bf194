"""Features that stay where they are: views of augmented images, and maps, too large to copy."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from balancemix.errors import InputError
from balancemix.processes import Share

BLOCK = 256  # rows summed up at once


def check_stored(stored: Tensor | None, features: Sequence[int]) -> None:
    """Refuse stored views that do not fit features of that shape.

    >>> check_stored(torch.zeros(4, 2, 3), (4, 3))
    """
    if stored is None:
        return
    count, *width = features
    shape = list(stored.shape)
    if len(shape) < 2 or shape[1] < 1 or [shape[0], *shape[2:]] != [count, *width]:
        wanted, found = ("×".join(map(str, s)) for s in ([count, "V", *width], shape))
        raise InputError(f"stored views must be {wanted}, they are {found}")


def draw_stored(
    stored: Tensor, row: Tensor, count: int, share: Share, generator: torch.Generator
) -> list[Tensor]:
    """Draw `count` of the V views of each row, no view of a row twice while there are others.

    >>> stored, row = torch.arange(6.0).view(2, 3, 1), torch.tensor([1, 0])
    >>> draw_stored(stored, row, 3, Share([1, 0]), torch.Generator())[0].shape
    torch.Size([2, 1])
    """
    drawn = torch.rand(len(share.batch), stored.shape[1], generator=generator)
    order = share.take(drawn).argsort(1)  # (B, V)
    return [stored[row, order[:, view % order.shape[1]]].float() for view in range(count)]


def take(features: Tensor, index: Tensor) -> Tensor:
    """Keep the rows at `index`: of rows one after another, without a copy.

    So a mapped file whose splits lie one behind the other stays in the file.

    >>> take(torch.arange(6), torch.tensor([2, 3, 4]))
    tensor([2, 3, 4])
    """
    if len(index) and torch.equal(index, torch.arange(len(index)) + index[0]):
        first = int(index[0])
        return features[first : first + len(index)]
    return features[index]


def channel_statistics(maps: Tensor, *, pooled: bool = False) -> tuple[Tensor, Tensor]:
    """Compute mean and standard deviation of each channel, over rows and places: (D,) each.

    With `pooled` they are those of the maps' means.

    >>> channel_statistics(torch.tensor([[[[1.0, 3.0]]], [[[3.0, 5.0]]]]), pooled=True)
    (tensor([3.]), tensor([1.]))
    """
    total = square = torch.zeros(maps.shape[1], dtype=torch.float64)
    count = 0
    for block in torch.split(maps, BLOCK):
        values = block.double().flatten(2)  # (B, D, H·W)
        values = values.mean(2, keepdim=True) if pooled else values
        total = total + values.sum((0, 2))
        square = square + values.square().sum((0, 2))
        count += values.shape[0] * values.shape[2]
    mean = total / count
    return mean.float(), (square / count - mean.square()).clamp(0).sqrt().float()
