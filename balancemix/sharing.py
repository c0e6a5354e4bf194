"""Whose rows are whose, where several processes train on one batch together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Part:
    """One process's part of `total` rows: every `world`-th, from the `rank`-th on.

    A batch of fewer rows than processes leaves some without any. They are shown its first row,
    with no weight: one that sat out a step would leave the others waiting for its gradient.

    >>> Part(5, rank=1, world=2).places, Part(5, rank=1, world=2).weight
    ([1, 3], 0.8)
    >>> Part(1, rank=1, world=2).places, Part(1, rank=1, world=2).weight
    ([0], 0.0)
    """

    total: int
    rank: int = 0
    world: int = 1

    @property
    def places(self) -> list[int]:
        """Where the part's rows stand in the batch."""
        return list(range(self.rank, self.total, self.world)) or [0]

    @property
    def weight(self) -> float:
        """What the part's mean counts for, if the mean over processes is to be the batch's."""
        return len(range(self.rank, self.total, self.world)) * self.world / self.total

    def take(self, values: Tensor) -> Tensor:
        """Take the part's of `total` values."""
        own = values[self.rank :: self.world]
        return own if len(own) else values[:1]

    def permutation(self, generator: torch.Generator) -> Tensor:
        """Permute the part's rows, drawing as many numbers as a permutation of the whole takes.

        The order in which a permutation of the whole has them; of the whole, it is that itself.
        """
        return self.take(torch.randperm(self.total, generator=generator)).argsort().argsort()


class Share(list[int]):
    """The row numbers that a process takes of a `batch`: those at `places`, or all of them.

    A list, so that any data set can be asked for it; ours look at the whole, which decides what
    random variation each of its rows gets.

    >>> share = Share([7, 5, 9], [0, 2])
    >>> share, share.batch, share.take(torch.tensor([1, 2, 3]))
    ([7, 9], [7, 5, 9], tensor([1, 3]))
    """

    def __init__(self, batch: Sequence[int], places: Sequence[int] | None = None) -> None:
        super().__init__(batch if places is None else [batch[place] for place in places])
        self.batch = list(batch)
        self.places = None if places is None else list(places)

    def take(self, values: Tensor) -> Tensor:
        """Take the share of what was made for the whole batch."""
        return values if self.places is None else values[self.places]
