"""The rows that training reads: features or images, with their labels kept beside them."""

from __future__ import annotations

import copy
import hashlib
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor
from torch.utils.data import Dataset

from balancemix.data import cache, images
from balancemix.data.features import channel_statistics, check_stored, draw_stored, take
from balancemix.data.source import View
from balancemix.errors import InputError
from balancemix.processes import Share

if TYPE_CHECKING:
    from PIL.Image import Image

Input = Tensor | list[Tensor]  # x, or one x per view where there are two or more
Batch = tuple[Input, Tensor]  # x, index


def as_is(batch: Batch) -> Batch:
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

    `labels` (uint8) are as annotated and may be wrong; `truth` is only for scoring, no method ever
    receives it. As int8 it may hold −1, unknown, on rows that are only scored: that entry is left
    out. The index in a batch is the position in these rows, also after `subset`.

    Rows are asked for a whole batch at a time; `collate` tells a loader to leave it as it is.
    What an augmented view looks like depends on the seed and the batch's list of indices alone:
    not on worker processes, nor on torch's global generator, which stays as it was; nor on how a
    batch is shared out, since a `Share` of it carries the whole list.
    """

    collate = staticmethod(as_is)
    decodes = False  # whether a row takes long enough to be worth a loading process

    def __init__(
        self,
        labels: Tensor,
        classes: Sequence[str],
        names: Sequence[str] | None = None,
        truth: Tensor | None = None,
    ) -> None:
        self.classes = list(classes)
        self.names = [f"row {i}" for i in range(len(labels))] if names is None else list(names)
        self.views, self.seed = 0, 0
        self._keep(labels, truth)

    def _keep(self, labels: Tensor, truth: Tensor | None) -> None:
        shape = (len(self.names), len(self.classes))
        kinds = {"labels": (labels, (torch.uint8,)), "truth": (truth, (torch.uint8, torch.int8))}
        for name, (matrix, known) in kinds.items():
            if matrix is not None and (matrix.shape != shape or matrix.dtype not in known):
                found = f"{'×'.join(map(str, matrix.shape))} {matrix.dtype}"
                raise InputError(f"{name} must be {shape[0]}×{shape[1]} uint8, they are {found}")
        self.labels, self.truth = labels, truth

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int) -> tuple[Input, int]:
        x, _ = self.__getitems__([i])
        return (x[0] if isinstance(x, Tensor) else [view[0] for view in x]), i

    def __getitems__(self, index: Sequence[int]) -> Batch:
        rows = torch.as_tensor(index, dtype=torch.long)
        x = self._draw(index if isinstance(index, Share) else Share(rows.tolist()))
        return (x if len(x) > 1 else x[0]), rows

    def _draw(self, share: Share) -> list[Tensor]:
        """Make every view of the share of a batch; the one plain x where `views` is 0."""
        raise NotImplementedError

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

    def with_labels(self, labels: Tensor, truth: Tensor | None) -> Self:
        """Replace the labels, and what is known of their truth."""
        rows = copy.copy(self)
        rows._keep(labels, truth)
        return rows

    def subset(self, index: Tensor) -> Self:
        """Keep the rows at `index` (row numbers), in its order."""
        rows = copy.copy(self)
        rows.names = [self.names[i] for i in index.tolist()]
        rows._keep(self.labels[index], None if self.truth is None else self.truth[index])
        rows._pick(index)
        return rows

    def _pick(self, index: Tensor) -> None:
        """Keep the rows at `index` of what a subclass adds."""

    def for_workers(self) -> Self:
        """Leave out what a loading process has no use for: it is handed over with every start."""
        rows = copy.copy(self)
        rows.names, rows.labels, rows.truth = [], self.labels.new_empty(0, len(self.classes)), None
        return rows

    def picture(self, i: int) -> Image | None:
        """Show row i, if there is anything to show."""
        return None


class FeatureRows(Rows):
    """Rows of an N×D feature matrix, or of N×D×H×W maps; x is float32.

    An augmented view drops features by `view.dropout` (the rest grow to match) and adds Gaussian
    noise of `view.noise` times the feature's standard deviation over all rows. Where views are
    `stored` (N×V×D…, made from augmented images) it is one of these, another one for each view of a
    row as long as there are any; `view.vary_stored` then drops and adds noise as well. `pictures`
    show the rows: N×H×W uint8, or N image files, of which any may be missing.
    """

    def __init__(
        self,
        features: Tensor,
        labels: Tensor,
        classes: Sequence[str],
        names: Sequence[str] | None = None,
        truth: Tensor | None = None,
        view: View = View(),
        *,
        stored: Tensor | None = None,
        pictures: Tensor | Sequence[Path] | None = None,
    ) -> None:
        super().__init__(labels, classes, names, truth)
        if features.ndim not in (2, 4) or len(features) != len(self):
            found = "×".join(map(str, features.shape))
            raise InputError(
                f"features must be {len(self)}×D or {len(self)}×D×H×W, they are {found}"
            )
        check_stored(stored, features.shape)
        self.view, self.pictures = view, pictures
        self.stored, self.stored_row = stored, torch.arange(len(self))
        self.varied = stored is None or view.vary_stored
        self.features, self.spread = features, self._spread(features)

    def _draw(self, share: Share) -> list[Tensor]:
        x = self.features[list(share)].float()
        if not self.views:
            return [x]
        generator = torch.Generator().manual_seed(batch_seed(self.seed, share.batch))
        if self.stored is not None:
            row = self.stored_row[list(share)]
            seen = draw_stored(self.stored, row, self.views, share, generator)
            return [self._vary(x, share, generator) for x in seen] if self.varied else seen
        return [self._vary(x, share, generator) for _ in range(self.views)]

    def _vary(self, x: Tensor, share: Share, generator: torch.Generator) -> Tensor:
        shape = len(share.batch), *x.shape[1:]
        kept = share.take(torch.rand(shape, generator=generator)) >= self.view.dropout
        noise = share.take(torch.randn(shape, generator=generator))
        return (
            (x * kept).div_(1 - self.view.dropout).add_(noise.mul_(self.view.noise * self.spread))
        )

    def _pick(self, index: Tensor) -> None:
        self.features = take(self.features, index)
        self.stored_row = self.stored_row[index]
        self.spread = self._spread(self.features)
        if isinstance(self.pictures, Tensor):
            self.pictures = self.pictures[index]
        elif self.pictures is not None:
            self.pictures = [self.pictures[i] for i in index.tolist()]

    def _spread(self, features: Tensor) -> Tensor:
        """Compute the standard deviation of D features, in a shape that fits x; 0 if not used."""
        if not self.varied:
            return torch.zeros(())
        if features.ndim == 4:
            return channel_statistics(features)[1].view(-1, 1, 1)
        blocks = torch.split(features, 256, dim=1)  # a block at a time: float16 files are large
        return torch.cat([block.float().std(0, correction=0) for block in blocks])

    def picture(self, i: int) -> Image | None:
        """Show what the features of row i were made from, if it is at hand."""
        if self.pictures is None:
            return None
        if isinstance(self.pictures, Tensor):
            from PIL import Image

            return Image.fromarray(self.pictures[i].numpy())
        return images.decode(self.pictures[i]) if self.pictures[i].is_file() else None


class ImageRows(Rows):
    """Rows of N image files, squashed to size×size; x is (B, 3, size, size).

    A file is decoded once, however many views; once and for all after `cached`.
    """

    decodes = True

    def __init__(
        self,
        paths: Sequence[Path],
        labels: Tensor,
        classes: Sequence[str],
        names: Sequence[str] | None = None,
        truth: Tensor | None = None,
        view: View = View(),
    ) -> None:
        names = [path.name for path in paths] if names is None else names
        super().__init__(labels, classes, names, truth)
        if len(paths) != len(self):
            raise InputError(f"paths must be {len(self)}, as many as names, they are {len(paths)}")
        self.paths, self.view, self.size = list(paths), view, view.size
        self.draw = images.augmentation(view.augment)
        self.mean, self.std = torch.tensor(view.mean), torch.tensor(view.std)
        self.store, self.places = (
            cache.Store(self.paths, view.size, images.read),
            list(range(len(self))),
        )

    def cached(self, kind: str = "auto", folder: Path | None = None) -> Self:
        """Keep squashed images in "memory" or on "disk" (in `folder`), or be "off"; also `subset`s.

        "auto" is memory if they fit into a quarter of it, else disk if there is room, else off.
        """
        rows = copy.copy(self)
        rows.store = cache.open_store(kind, self.paths, self.size, images.read, folder)
        rows.places = list(range(len(self)))
        return rows

    def image(self, i: int) -> Image:
        """Return row i as size×size RGB."""
        return self.store.image(self.places[i])

    def for_workers(self) -> Self:
        """Leave out what a loading process has no use for; it has the store's paths."""
        rows = super().for_workers()
        rows.paths = []
        return rows

    def _draw(self, share: Share) -> list[Tensor]:
        batch = [self.image(i) for i in share]
        views = [batch]
        if self.views:
            # A seed for each image: no process has to vary another's to know where its own begin.
            generator = torch.Generator().manual_seed(batch_seed(self.seed, share.batch))
            shape = len(share.batch), self.views
            seeds = share.take(torch.randint(2**62, shape, generator=generator)).T.tolist()
            views = [images.varied(batch, self.draw, each) for each in seeds]
        return [images.normalise(images.pixels(view), self.mean, self.std) for view in views]

    def _pick(self, index: Tensor) -> None:
        self.paths = [self.paths[i] for i in index.tolist()]
        self.places = [self.places[i] for i in index.tolist()]

    def picture(self, i: int) -> Image | None:
        """Decode row i at its own size."""
        return images.decode(self.paths[i])
