"""embed(): the features of every image, and of some augmented views of each, by a frozen backbone.

The images are read once; after that training reads numbers. Rows are written to a partial array
beside the output as they are made. A view depends only on the seed, the row and the view's number,
and a job resumes at the start of a batch: however often it is killed, the result has the same
bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from balancemix.data import images, read_images
from balancemix.data.augment import augment
from balancemix.data.formats.mapped import write_stored
from balancemix.data.formats.npz import root_for
from balancemix.data.formats.npz_labels import label_arrays
from balancemix.data.images import ImageRows
from balancemix.data.loading import Loader, workers_for
from balancemix.data.rows import batch_seed
from balancemix.errors import InputError
from balancemix.files import check_output, locked
from balancemix.models.backbones import input_size, normalisation
from balancemix.models.classifier import build_embedder
from balancemix.models.fold import folded
from balancemix.options import STORED_VIEWS, Augment, ReadOptions, View
from balancemix.plan.sections import SEED
from balancemix.progress import progress
from balancemix.training.devices import best_device, check_device
from balancemix.training.partial import WRITING, PartialArray, note_of, remove

Array = npt.NDArray[Any]


class ImageViews(Dataset[Tensor]):
    """The plain image of each row and its views, decoded once: (1 + V, 3, size, size), uint8."""

    def __init__(self, rows: ImageRows, views: int, seed: int) -> None:
        self.rows, self.views, self.seed = rows, views, seed

    def __len__(self) -> int:
        return len(self.rows)

    def for_workers(self) -> ImageViews:
        """Copy without what a loading process does not need."""
        return ImageViews(self.rows.for_workers(), self.views, self.seed)

    def __getitem__(self, i: int) -> Tensor:
        image = self.rows.image(i)
        seeds = [batch_seed(self.seed, [i, view]) for view in range(self.views)]
        views = augment([image] * self.views, self.rows.augmentation, seeds)
        return images.pixels([image, *views])


def embed(
    rows: ImageRows,
    body: nn.Module,
    out: Path,
    *,
    split: Sequence[str] | None = None,
    views: int = STORED_VIEWS,
    seed: int = SEED,
    batch_size: int | None = None,
    workers: int | None = None,
    device: torch.device | str = "cpu",
    about: Mapping[str, Any] | None = None,
) -> tuple[int, ...]:
    """Write features, views and labels of all rows to an .npz, and return the features' shape.

    `body` maps (B, 3, size, size) to (B, D) or (B, D, H, W). `batch_size` counts images, each with
    its views; None chooses a good number for the device. `about` describes what the features are
    of, besides the rows: a partial array of something else is refused.
    """
    if batch_size is None:
        # A dozen images at once fit a CPU's caches: with eight times as many, each took nearly
        # twice as long (EfficientNet-Lite0 at 160 pixels, one thread).
        batch_size = 2 if torch.device(device).type == "cpu" else 32
    if views < 0 or batch_size < 1:
        raise InputError(f"views={views}, batch_size={batch_size}: must be at least 0 and 1")
    body, shape = prepared(body, rows.size, device)
    if len(shape) not in (1, 3):
        raise InputError(
            "the backbone has tokens, not a map: leave --map out, or choose another one"
        )
    made = {**(about or {}), "size": rows.size, "views": views, "seed": seed}
    names = hashlib.blake2b(
        "\n".join(rows.names).encode("utf-8", "surrogateescape"), digest_size=8
    ).hexdigest()
    about = {**made, "rows": len(rows), "names": names}
    path = partial_file(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()  # to be locked before anything is written to it
    with locked(path, WRITING):
        partial = PartialArray(path, about, (len(rows), 1 + views, *shape), np.float16)
        done = partial.done
        if done < len(rows):
            done = done // batch_size * batch_size
            partial.cut(done)
        data = ImageViews(rows, views, seed)
        left = range(done, len(rows))
        batches = [list(left[i : i + batch_size]) for i in range(0, len(left), batch_size)]
        with progress("embed", len(left)) as show:
            if done:
                show.line(f"embed: resumes at row {done:,} of {len(rows):,}")
            try:
                for block in forward(body, rows, loader(data, batches, workers, device), device):
                    partial.append(block)
                    show.advance(len(block))
            finally:
                partial.note()
        # Features and views may exceed the memory: mapped, they are copied in blocks.
        array = partial.array()
        features = {"features": array[:, 0], **({"views": array[:, 1:]} if views else {})}
        write_stored(
            out, {**features, **_labels(rows, split, out), "made": np.array(json.dumps(made))}
        )
    remove(path)
    return (len(rows), *shape)


def embed_data(
    data: Path,
    out: Path,
    backbone: str,
    *,
    pretrained: bool = True,
    pooled: bool = True,
    size: int | None = None,
    augment: Augment = View.augment,
    views: int = STORED_VIEWS,
    seed: int = SEED,
    batch_size: int | None = None,
    workers: int | None = None,
    device: str = "auto",
    limit: int | None = None,
    options: ReadOptions = ReadOptions(),
    force: bool = False,
) -> tuple[int, ...]:
    """Embed the images of a data set by a backbone's name; see `embed`.

    `size` is the backbone's unless given; `limit` keeps only the first rows; `options` say how
    the data is read; `force` replaces the file and starts over.
    """
    if out.suffix != ".npz":
        raise InputError(f"--out {out}: must end in .npz")
    resumes = note_of(partial_file(out)).exists()
    check_output(out, force=force or resumes, inputs=[data])
    if limit is not None and limit < 1:
        raise InputError(f"--limit {limit}: must be at least 1")
    check_device(device)
    size = size or input_size(backbone)
    mean, std = normalisation(backbone)
    view = View(size=size, augment=augment, mean=mean, std=std)
    rows, split = read_images(data, view, options)
    if limit is not None:
        rows = rows.subset(torch.arange(min(limit, len(rows))))
        split = split and split[: len(rows)]
    torch.manual_seed(seed)  # of random weights, which must be the same after an interruption
    body = build_embedder(backbone, pooled=pooled, pretrained=pretrained, image_size=size)
    if force:
        remove(partial_file(out))
    return embed(
        rows,
        body,
        out,
        split=split,
        views=views,
        seed=seed,
        batch_size=batch_size,
        workers=workers,
        device=best_device(device),
        about={"backbone": backbone, "pretrained": pretrained, "augment": augment},
    )


def partial_file(out: Path) -> Path:
    """Name the partial array of an output file."""
    return out.with_name(f".{out.name}.npy")


def prepared(
    body: nn.Module, size: int, device: torch.device | str
) -> tuple[nn.Module, tuple[int, ...]]:
    """Put a frozen backbone on a device, folded; also return the shape of an image's features."""
    body = body.to(device).to(memory_format=torch.channels_last).eval()
    blank = torch.zeros(1, 3, size, size, device=device)
    body = folded(body, blank)
    with torch.inference_mode():
        return body, tuple(body(blank).shape[1:])


def loader(
    data: ImageViews, batches: list[list[int]], workers: int | None, device: torch.device | str
) -> Loader:
    """Load images and their views in the given batches."""
    workers = workers_for(data.rows, workers, on_cpu=False)
    pinned = torch.device(device).type == "cuda"
    return Loader(data, batches, workers if batches else 0, pinned=pinned)


def forward(
    body: nn.Module, rows: ImageRows, batches: Loader, device: torch.device | str
) -> Iterator[Array]:
    """Compute features of all images and views of a batch at once: (B, 1 + V, D, …), float16."""
    mean, std = rows.mean.to(device), rows.std.to(device)
    with torch.inference_mode():
        for views in batches:
            x = views.flatten(0, 1).to(device, non_blocking=True)
            features = body(images.normalise(x, mean, std)).half()
            if not features.isfinite().all():
                raise InputError("the backbone's features do not fit float16; choose another one")
            yield features.unflatten(0, views.shape[:2]).cpu().numpy()


def _labels(rows: ImageRows, split: Sequence[str] | None, out: Path) -> dict[str, Array]:
    arrays = label_arrays(rows.given, rows.truth, rows.verified)
    arrays["classes"] = np.array(rows.classes)
    if split is not None:
        arrays["split"] = np.array(split)
    if rows.groups is not None:
        arrays["group"] = rows.groups.numpy()
    if rows.folder is not None:
        arrays["root"] = np.array(root_for(out, rows.folder))
    return {**arrays, "images": np.array(rows.names)}
