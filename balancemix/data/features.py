"""Rows of features: vectors or maps, and stored views of augmented images.

Stored views and maps may be too large to copy: they stay in their mapped file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from balancemix.data import images
from balancemix.data.rows import Matrix, Rows, batch_seed
from balancemix.data.source import View
from balancemix.errors import InputError
from balancemix.labels.table import LabelMatrix
from balancemix.processes import BatchIndex

if TYPE_CHECKING:
    from PIL.Image import Image

BLOCK = 256  # rows, or features, summed at once


class FeatureRows(Rows):
    """Rows of an N×D feature matrix, or of N×D×H×W maps; x is float32.

    An augmented view drops features by `view.dropout` (the others are scaled up to match) and adds
    Gaussian noise of `view.noise` times the feature's standard deviation over all rows. With
    `stored` views (N×V×D…, made from augmented images) it is one of them, a different one for each
    view of a row as long as there are any; `view.vary_stored` also drops features and adds noise.
    `pictures` illustrate the rows: N×H×W uint8, or N image files, any of which may be missing.

    >>> given = torch.tensor([[1, 0], [0, 1], [1, 1]])
    >>> rows = FeatureRows(torch.eye(3), given, ["cat", "dog"], ["a", "b", "c"], truth=1 - given)
    >>> x, index = rows.__getitems__([2, 0])
    >>> x.tolist(), index.tolist()
    ([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], [2, 0])
    """

    def __init__(
        self,
        features: Matrix,
        given: LabelMatrix,
        classes: Sequence[str],
        names: Sequence[str] | None = None,
        truth: LabelMatrix | None = None,
        view: View = View(),
        *,
        stored: Tensor | None = None,
        pictures: Tensor | Sequence[Path] | None = None,
    ) -> None:
        super().__init__(given, classes, names, truth)
        features = torch.as_tensor(features)
        if features.ndim not in (2, 4) or len(features) != len(self):
            shape = "×".join(map(str, features.shape))
            raise InputError(f"features must be {len(self)}×D or {len(self)}×D×H×W, not {shape}")
        check_stored(stored, features.shape)
        self.view, self.pictures = view, pictures
        self.stored, self.stored_row = stored, torch.arange(len(self))
        self.augments = stored is None or view.vary_stored
        self.features, self.feature_std = features, self._feature_std(features)

    def _draw(self, share: BatchIndex) -> list[Tensor]:
        x = self.features[list(share)].float()
        if not self.views:
            return [x]
        generator = torch.Generator().manual_seed(batch_seed(self.seed, share.batch))
        if self.stored is not None:
            row = self.stored_row[list(share)]
            views = draw_stored(self.stored, row, self.views, share, generator)
            return [self._augment(x, share, generator) for x in views] if self.augments else views
        return [self._augment(x, share, generator) for _ in range(self.views)]

    def _augment(self, x: Tensor, share: BatchIndex, generator: torch.Generator) -> Tensor:
        shape = len(share.batch), *x.shape[1:]
        kept = share.take(torch.rand(shape, generator=generator)) >= self.view.dropout
        noise = share.take(torch.randn(shape, generator=generator))
        noise = noise.mul_(self.view.noise * self.feature_std)
        return (x * kept).div_(1 - self.view.dropout).add_(noise)

    def _pick(self, index: Tensor) -> None:
        self.features = take(self.features, index)
        self.stored_row = self.stored_row[index]
        self.feature_std = self._feature_std(self.features)
        if isinstance(self.pictures, Tensor):
            self.pictures = self.pictures[index]
        elif self.pictures is not None:
            self.pictures = [self.pictures[i] for i in index.tolist()]

    def _feature_std(self, features: Tensor) -> Tensor:
        """Compute the standard deviation of D features, in a shape that fits x; 0 if not used."""
        if not self.augments or not len(features):
            return torch.zeros(())
        if features.ndim == 4:
            return channel_statistics(features)[1].view(-1, 1, 1)
        blocks = torch.split(features, BLOCK, dim=1)  # float16 files are too large for one copy
        return torch.cat([block.float().std(0, correction=0) for block in blocks])

    def picture(self, i: int) -> Image | None:
        """Return the picture that the features of row i were made from, if there is one."""
        if self.pictures is None:
            return None
        if isinstance(self.pictures, Tensor):
            from PIL import Image

            return Image.fromarray(self.pictures[i].numpy())
        return images.decode(self.pictures[i]) if images.is_file(self.pictures[i]) else None


def check_stored(stored: Tensor | None, features: Sequence[int]) -> None:
    """Refuse stored views that do not fit features of that shape.

    >>> check_stored(torch.zeros(4, 2, 3), (4, 3))
    """
    if stored is None:
        return
    count, *width = features
    shape = list(stored.shape)
    if len(shape) < 2 or shape[1] < 1 or [shape[0], *shape[2:]] != [count, *width]:
        expected, actual = ("×".join(map(str, s)) for s in ([count, "V", *width], shape))
        raise InputError(f"stored views must be {expected}, not {actual}")


def draw_stored(
    stored: Tensor, row: Tensor, count: int, share: BatchIndex, generator: torch.Generator
) -> list[Tensor]:
    """Draw `count` of the V views of each row, each view once before any is repeated.

    >>> stored, row = torch.arange(6.0).view(2, 3, 1), torch.tensor([1, 0])
    >>> draw_stored(stored, row, 3, BatchIndex([1, 0]), torch.Generator())[0].shape
    torch.Size([2, 1])
    """
    drawn = torch.rand(len(share.batch), stored.shape[1], generator=generator)
    order = share.take(drawn).argsort(1)  # (B, V)
    return [stored[row, order[:, view % order.shape[1]]].float() for view in range(count)]


def take(features: Tensor, index: Tensor) -> Tensor:
    """Return the rows at `index`, without a copy if they are consecutive.

    So the splits of a mapped file stay in the file if each is in one piece.

    >>> take(torch.arange(6), torch.tensor([2, 3, 4]))
    tensor([2, 3, 4])
    """
    if len(index) and torch.equal(index, torch.arange(len(index)) + index[0]):
        first = int(index[0])
        return features[first : first + len(index)]
    return features[index]


def channel_statistics(maps: Tensor, *, pooled: bool = False) -> tuple[Tensor, Tensor]:
    """Compute the mean and standard deviation of each channel over rows and places: (D,) each.

    With `pooled`, of the mean of each map instead.

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
