"""The rows that training reads: inputs by row number, with the labels beside them."""

from __future__ import annotations

import copy
import hashlib
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import Dataset

from balancemix.errors import InputError
from balancemix.labels.table import LabelMatrix, as_given, as_verified
from balancemix.processes import BatchIndex

if TYPE_CHECKING:
    from PIL.Image import Image

Input = Tensor | list[Tensor]  # x, or one x for each view if there are two or more
Batch = tuple[Input, Tensor]  # x, index
Matrix = Tensor | npt.NDArray[Any]
Made = TypeVar("Made")


def as_is(batch: Made) -> Made:
    """Return the batch: the `collate_fn` for `Rows`, which return whole batches.

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
    """N rows with N×K labels; immutable, methods such as `subset` return copies.

    `given` holds the labels as annotated, which may be wrong; `truth` is only for scoring, and no
    method receives it. Both are int8: 1 present, 0 absent, −1 unknown, which scoring leaves out.
    `verified` (N×K bool) marks the given labels that are known to be right, if there are any, and
    `before` are the labels as they were before people verified some, −1 where that is not known.
    `groups` numbers the group of each row if there are any: rows that belong together, such as
    images of one patient. The index in a batch is the position in these rows, also after `subset`.

    Rows return a whole batch at a time, which `collate` tells a loader to leave as it is. Augmented
    views depend only on the seed and the batch's list of indices: not on loading processes, nor on
    torch's global generator, nor on how a batch is split, since a `BatchIndex` has the whole list.

    >>> rows = Rows(torch.tensor([[1, 0], [0, 1], [1, 1]]), ["cat", "dog"], ["a", "b", "c"])
    >>> part = rows.subset(torch.tensor([2, 0]))
    >>> len(part), part.names, part.given.tolist()
    (2, ['c', 'a'], [[1, 1], [1, 0]])
    """

    collate = staticmethod(as_is)
    decodes = False  # whether rows are slow enough to be worth a loading process

    def __init__(
        self,
        given: LabelMatrix,
        classes: Sequence[str],
        names: Sequence[str] | None = None,
        truth: LabelMatrix | None = None,
    ) -> None:
        labels = _as_labels("given", given)
        self.classes = list(classes)
        self.names = [f"row {i}" for i in range(len(labels))] if names is None else list(names)
        self.views, self.seed = 0, 0
        self.groups: Tensor | None = None
        self.verified: Tensor | None = None
        self.before: Tensor | None = None
        self.given = self._labels("given", labels)
        self.truth = None if truth is None else self._labels("truth", truth)

    def _labels(self, name: str, labels: LabelMatrix) -> Tensor:
        """Convert labels to int8, and refuse those of another shape or with another value."""
        matrix = _as_labels(name, labels)
        shape = (len(self.names), len(self.classes))
        if matrix.shape != shape:
            actual = "×".join(map(str, matrix.shape))
            raise InputError(f"{name} must be {shape[0]}×{shape[1]}, not {actual}")
        return matrix

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
        """Return every view of a share of a batch; one plain x where `views` is 0."""
        raise NotImplementedError

    @property
    def kept(self) -> bool:
        """Whether only the first use of a row is slow."""
        return False

    @property
    def plain(self) -> Self:
        """The same rows without augmentation."""
        return self.with_views(0, 0)

    def with_views(self, views: int, seed: int) -> Self:
        """Return `views` augmented views of each row: 0 is plain, 1 a tensor, 2 or more a list."""
        if views < 0:
            raise InputError(f"views must be 0 or more, not {views}")
        rows = copy.copy(self)
        rows.views, rows.seed = views, seed
        return rows

    def with_given(self, given: LabelMatrix, truth: LabelMatrix | None) -> Self:
        """Replace the given labels, and what is known of their truth; what is verified stays."""
        rows = copy.copy(self)
        rows.given = self._labels("given", given)
        rows.truth = None if truth is None else self._labels("truth", truth)
        return rows.with_verified(self.verified, self.before)

    def with_verified(
        self, verified: LabelMatrix | None, before: LabelMatrix | None = None
    ) -> Self:
        """Say which given labels are known to be right, and all as they were before; see `judge`.

        An unknown label is never known to be right.
        """
        rows = copy.copy(self)
        rows.verified = None
        rows.before = None if before is None else self._labels("before", before)
        if verified is not None:
            try:
                rows.verified = as_verified(verified, self.given) & (self.given >= 0)
            except ValueError as error:
                raise InputError(str(error)) from None
        return rows

    def with_groups(self, groups: Matrix | None) -> Self:
        """Say which rows belong together, by a whole number for each row."""
        codes = None if groups is None else torch.as_tensor(groups)
        if codes is not None:
            if codes.shape != (len(self),) or codes.is_floating_point() or codes.is_complex():
                actual = f"{'×'.join(map(str, codes.shape))} {codes.dtype}"
                raise InputError(f"groups must be {len(self)} whole numbers, not {actual}")
            codes = codes.long()
        rows = copy.copy(self)
        rows.groups = codes
        return rows

    def subset(self, index: Tensor) -> Self:
        """Keep the rows at `index` (row numbers), in its order."""
        rows = copy.copy(self)
        rows.names = [self.names[i] for i in index.tolist()]
        rows.given = self.given[index]
        for name in ("truth", "verified", "before", "groups"):
            values = getattr(self, name)
            setattr(rows, name, None if values is None else values[index])
        rows._pick(index)
        return rows

    def _pick(self, index: Tensor) -> None:
        """Keep the rows at `index` of what a subclass adds."""

    def for_workers(self) -> Self:
        """Leave out what a loading process does not need, since each start sends it a copy."""
        rows = copy.copy(self)
        rows.names, rows.given = [], self.given.new_empty(0, len(self.classes))
        rows.truth = rows.verified = rows.before = rows.groups = None
        return rows

    def picture(self, i: int) -> Image | None:
        """Return a picture of row i, if there is one."""
        return None


def _as_labels(name: str, labels: LabelMatrix) -> Tensor:
    try:
        return as_given(labels)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
