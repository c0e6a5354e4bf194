"""features_of(): one vector of features for each row; of images, by a frozen backbone.

The features of images are made once and kept beside the data, see `feature_file`. They depend on
the image, the backbone and the size alone: not on the other rows, nor on how often they were
interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from balancemix import processes
from balancemix.data.features import FeatureRows
from balancemix.data.images import ImageRows
from balancemix.data.rows import Rows
from balancemix.errors import InputError
from balancemix.models.backbones import normalisation, weights_of
from balancemix.models.classifier import build_embedder
from balancemix.plan.plan import Plan
from balancemix.plan.sections import SEED
from balancemix.progress import Progress
from balancemix.progress import progress as bar
from balancemix.training.devices import best_device
from balancemix.training.embed import ImageViews, forward, loader, prepared
from balancemix.training.feature_file import FeatureFile
from balancemix.training.known_features import Known, Wanted

Array = npt.NDArray[Any]

BLOCK = 4096  # rows converted, or sent to other processes, at once
CPU_BATCH, GPU_BATCH = 12, 128  # images at once; more do not fit a CPU's caches
FEW = 256  # images that are sooner read than a loading process starts
BEAT = 60.0  # seconds between signs of life; processes wait for each other half an hour at most
WORKING = b"working"


def features_of(rows: Rows, plan: Plan, progress: Progress | None = None) -> Tensor:
    """Return a vector of features for each row: N×D float32 on the CPU.

    Rows of features are returned as they are, maps averaged over their places. Images are seen by
    the plan's backbone, frozen, without augmentation. `progress` counts rows; without it, a bar is
    shown. Of several processes the first one computes, and all must call this.
    """
    if isinstance(rows, FeatureRows):
        return pooled(rows.features)
    # Building a model draws random numbers: what follows must not depend on whether one was built.
    with torch.random.fork_rng(devices=[]):
        if not isinstance(rows, ImageRows):
            return _of_pixels(rows, plan)
        if processes.world_size() == 1:
            return _of_images(rows, plan, progress, lambda: None)
        return _of_first_process(rows, plan, progress)


def pooled(features: Tensor) -> Tensor:
    """Average maps over their places; as float32.

    >>> pooled(torch.tensor([[[[1.0, 3.0]]]]))
    tensor([[2.]])
    """
    if features.ndim == 2:
        return features.float()
    return torch.cat([block.float().mean((2, 3)) for block in torch.split(features, BLOCK)])


def _of_images(
    rows: ImageRows, plan: Plan, progress: Progress | None, beat: Callable[[], object]
) -> Tensor:
    # Not from a cache of images: it may be older than the file.
    rows = rows.cached("off")
    rows.mean, rows.std = map(torch.tensor, normalisation(plan.model.backbone))
    file = FeatureFile(rows.folder, _made_with(plan, rows.size))
    wanted = Wanted.of(rows)
    known = file.read()
    place = wanted.places(known, read=False)
    if (place >= 0).all():
        if progress is not None:
            progress.advance(len(rows))
        return torch.from_numpy(_take(known, place))
    with file.held(beat):
        known = file.absorb(file.read())
        place = wanted.places(known, read=True)
        if (place < 0).any():
            body, width = _backbone(plan, rows.size)
            if known.features.shape[1] != width:
                place[:] = -1
        new, old = np.flatnonzero(place < 0), np.flatnonzero(place >= 0)
        features = _take(known, place) if len(old) else np.empty((len(rows), width), np.float32)
        with _shown(progress, len(new), len(rows)) as show:
            try:
                for index, block in _made_in_batches(body, rows, new, plan) if len(new) else ():
                    features[index] = block
                    file.append(wanted.records(index, block), len(new))
                    show.advance(len(index))
                    beat()
            finally:
                file.note()
        kept = known.take(np.concatenate([file.others(known, wanted), place[old]]))
        kept.facts[len(kept) - len(old) :] = wanted.facts[old]
        file.finish(kept)
    return torch.from_numpy(features)


def _made_with(plan: Plan, size: int) -> dict[str, Any]:
    """Describe what the features of an image depend on besides the image."""
    backbone, pretrained = plan.model.backbone, plan.model.pretrained
    weights = weights_of(backbone) if pretrained else "random"
    return {"backbone": backbone, "pretrained": pretrained, "size": size, "weights": weights}


def _backbone(plan: Plan, size: int) -> tuple[nn.Module, int]:
    """Build the plan's backbone, and measure the width of its features."""
    torch.default_generator.manual_seed(SEED)  # the same random weights for everybody
    body = build_embedder(plan.model.backbone, pretrained=plan.model.pretrained, image_size=size)
    body, shape = prepared(body, size, best_device(plan.train.device))
    return body, shape[0]


def _made_in_batches(
    body: nn.Module, rows: ImageRows, index: Array, plan: Plan
) -> Iterator[tuple[Array, Array]]:
    """Compute the features of the rows at `index`: their numbers and B×D float16, by batches."""
    device = best_device(plan.train.device)
    size = CPU_BATCH if torch.device(device).type == "cpu" else GPU_BATCH
    batches = [index[i : i + size] for i in range(0, len(index), size)]
    # All of one size, since a product of fewer rows may be rounded in another way.
    full = [[*batch.tolist(), *[int(batch[-1])] * (size - len(batch))] for batch in batches]
    workers = 0 if plan.data.workers is None and len(index) < FEW else plan.data.workers
    images = loader(ImageViews(rows, 0, SEED), full, workers, device)
    for batch, block in zip(batches, forward(body, rows, images, device), strict=True):
        yield batch, block[: len(batch), 0]


def _take(known: Known, place: Array) -> Array:
    """Copy the features at each place, as float32; those at −1 are of no use."""
    features = np.empty((len(place), known.features.shape[1]), np.float32)
    for start in range(0, len(place), BLOCK):
        block = slice(start, start + BLOCK)
        features[block] = known.features[place[block]]
    return features


def _of_pixels(rows: Rows, plan: Plan) -> Tensor:
    """Compute features of rows that are in no file; those that are no images stay as they are."""
    blocks, body = [], None
    for start in range(0, len(rows), CPU_BATCH):
        index = list(range(start, min(start + CPU_BATCH, len(rows))))
        x, _ = rows.plain.__getitems__(index)
        if not isinstance(x, Tensor) or x.ndim not in (2, 4):
            raise InputError("features can be made of images, maps and vectors alone")
        if x.ndim == 4 and x.shape[1] == 3:
            body = body or _backbone(plan, x.shape[-1])[0]
            with torch.no_grad():
                x = body(x.to(best_device(plan.train.device))).cpu()
        blocks.append(pooled(x))
    return torch.cat(blocks)


def _of_first_process(rows: ImageRows, plan: Plan, progress: Progress | None) -> Tensor:
    """Let the first process compute or read the features, and send them to the others."""
    if processes.rank() == 0:
        features = _of_images(rows, plan, progress, _Beat())
        processes.broadcast(f"{features.shape[1]}".encode())
        for block in torch.split(features, BLOCK):
            processes.broadcast(block.half().numpy().tobytes())
        return features
    while (width := processes.broadcast(None)) == WORKING:
        pass
    features = torch.empty(len(rows), int(width or b"0"))
    for block in torch.split(features, BLOCK):
        content = bytearray(processes.broadcast(None) or b"")
        block.copy_(torch.frombuffer(content, dtype=torch.float16).view(block.shape))
    return features


class _Beat:
    """Tells the waiting processes now and then that the first one is still at work."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self.last >= BEAT:
            processes.broadcast(WORKING)
            self.last = time.monotonic()


@contextmanager
def _shown(progress: Progress | None, new: int, count: int) -> Iterator[Progress]:
    """Count rows: with the caller's progress all of them, else with a bar only the new ones."""
    if progress is not None:
        progress.advance(count - new)
        yield progress
    else:
        with bar("features", new) as show:
            yield show
