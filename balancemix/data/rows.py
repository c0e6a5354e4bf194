"""The rows that training reads: inputs by their number, with the labels kept beside them."""

from __future__ import annotations

import copy
import hashlib
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, TypeVar

import torch
from torch import Tensor
from torch.utils.data import Dataset

from balancemix.errors import InputError
from balancemix.processes import BatchIndex

if TYPE_CHECKING:
    from PIL.Image import Image

Input = Tensor | list[Tensor]  # x, or one x per view where there are two or more
Batch = tuple[Input, Tensor]  # x, index
Made = TypeVar("Made")


def as_is(batch: Made) -> Made:
    """Return the batch: the `collate_fn` of a loader over `Rows`, which make whole batches.

    >>> as_is((torch.zeros(2, 3), torch.tensor([4, 7])))[1]
    tensor([4, 7])
    """
    return batch


def batch_seed(seed: int, index: Sequence[int]) -> int:
    """Hash a seed and a batch's row numbers, in their order, to a seed for that batch.

    >>> batch_seed(0, [1, 2]) == batch_seed(0, [1, 2]), batch_seed(0, [1, 2]) == batch_seed(0, [2])
    (True, False)
    """
    digest = hashlib.blake2b(array("q", [seed, *index]).tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


class Rows(Dataset[tuple[Input, int]]):
    """N rows with N×K labels; immutable, `with_views` and its kin return shallow copies.

    `given` (uint8) holds the labels as annotated, which may be wrong; `truth` is only for scoring,
    no method ever receives it. As int8 it may hold −1, unknown, on rows that are only scored: that
    entry is left out. The index in a batch is the position in these rows, also after `subset`.

    Rows are asked for a whole batch at a time; `collate` tells a loader to leave it as it is.
    What an augmented view looks like depends on the seed and the batch's list of indices alone:
    not on worker processes, nor on torch's global generator, which stays as it was; nor on how a
    batch is shared out, since a `BatchIndex` of it carries the whole list.
    """

    collate = staticmethod(as_is)
    decodes = False  # whether a row takes long enough to be worth a loading process

    def __init__(
        self,
        given: Tensor,
        classes: Sequence[str],
        names: Sequence[str] | None = None,
        truth: Tensor | None = None,
    ) -> None:
        self.classes = list(classes)
        self.names = [f"row {i}" for i in range(len(given))] if names is None else list(names)
        self.views, self.seed = 0, 0
        self._keep(given, truth)

    def _keep(self, given: Tensor, truth: Tensor | None) -> None:
        shape = (len(self.names), len(self.classes))
        kinds = {"given": (given, (torch.uint8,)), "truth": (truth, (torch.uint8, torch.int8))}
        for name, (matrix, known) in kinds.items():
            if matrix is not None and (matrix.shape != shape or matrix.dtype not in known):
                found = f"{'×'.join(map(str, matrix.shape))} {matrix.dtype}"
                raise InputError(f"{name} must be {shape[0]}×{shape[1]} uint8, they are {found}")
        self.given, self.truth = given, truth

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int) -> tuple[Input, int]:
        x, _ = self.__getitems__([i])
        return (x[0] if isinstance(x, Tensor) else [view[0] for view in x]), i

    def __getitems__(self, index: Sequence[int]) -> Batch:
        rows = torch.as_tensor(index, dtype=torch.long)
        x = self._draw(index if isinstance(index, BatchIndex) else BatchIndex(rows.tolist()))
        return (x if len(x) > 1 else x[0]), rows

    def _draw(self, share: BatchIndex) -> list[Tensor]:
        """Make every view of the share of a batch; the one plain x where `views` is 0."""
        raise NotImplementedError

    @property
    def kept(self) -> bool:
        """Whether a row takes long only once."""
        return False

    @property
    def plain(self) -> Self:
        """The same rows without augmentation."""
        return self.with_views(0, 0)

    def with_views(self, views: int, seed: int) -> Self:
        """Give each row `views` augmented views: 0 is plain, 1 a tensor, 2 or more a list."""
        if views < 0:
            raise InputError(f"views must be 0 or more, it is {views}")
        rows = copy.copy(self)
        rows.views, rows.seed = views, seed
        return rows

    def with_given(self, given: Tensor, truth: Tensor | None) -> Self:
        """Replace the given labels, and what is known of their truth."""
        rows = copy.copy(self)
        rows._keep(given, truth)
        return rows

    def subset(self, index: Tensor) -> Self:
        """Keep the rows at `index` (row numbers), in its order."""
        rows = copy.copy(self)
        rows.names = [self.names[i] for i in index.tolist()]
        rows._keep(self.given[index], None if self.truth is None else self.truth[index])
        rows._pick(index)
        return rows

    def _pick(self, index: Tensor) -> None:
        """Keep the rows at `index` of what a subclass adds."""

    def for_workers(self) -> Self:
        """Leave out what a loading process has no use for: it is handed over with every start."""
        rows = copy.copy(self)
        rows.names, rows.given, rows.truth = [], self.given.new_empty(0, len(self.classes)), None
        return rows

    def picture(self, i: int) -> Image | None:
        """Show row i, if there is anything to show."""
        return None
