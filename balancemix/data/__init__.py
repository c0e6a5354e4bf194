"""Data by name: built-in digits, a folder of images or a published set, a file of features."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from balancemix.data.formats import coco, csv, deepfashion, digits, npz, voc
from balancemix.data.formats.images import load_unlabelled
from balancemix.data.rows import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Batch,
    Channels,
    FeatureRows,
    ImageRows,
    Rows,
    as_is,
)
from balancemix.data.splits import Splits, divide
from balancemix.errors import InputError, suggest

__all__ = [
    "Batch",
    "FeatureRows",
    "ImageRows",
    "Rows",
    "Splits",
    "as_is",
    "load",
    "load_unlabelled",
    "read_images",
]

BUILT_IN = ("digits", "digits:pixels")
PUBLISHED = ("a folder of COCO", "of VOC", "of DeepFashion")


def load(
    data: str | Path,
    *,
    size: int = 224,
    augment: str = "randaugment",
    mean: Channels = IMAGENET_MEAN,
    std: Channels = IMAGENET_STD,
    dropout: float = 0.1,
    noise: float = 0.1,
    vary_stored: bool = False,
    skip_bad: bool = False,
    cache: str = "off",
    unannotated: str = "drop",
    difficult: str = "ignore",
    holdout: float = 0.2,
    seed: int = 0,
) -> Splits:
    """Load `digits`, `digits:pixels`, a folder with labels.csv, COCO, VOC or DeepFashion, an .npz.

    `size`, `augment`, `mean`, `std` and `skip_bad` are for images, `cache` keeps them squashed (see
    `ImageRows.cached`), `dropout` and `noise` make the views of features; where views are stored,
    only with `vary_stored`. `unannotated` images of
    COCO are dropped or kept, `difficult` objects of VOC are ignored in evaluation or negative.
    `holdout` is the share of rows to score on where the file names no split; `seed` draws them, and
    the digits.
    """
    if str(data) in BUILT_IN:
        pixels = str(data) == "digits:pixels"
        return digits.load(pixels=pixels, seed=seed, dropout=dropout, noise=noise)
    path = Path(data).expanduser()
    rows: Rows
    if path.is_dir():
        found, split = read_images(
            path,
            size=size,
            augment=augment,
            mean=mean,
            std=std,
            skip_bad=skip_bad,
            unannotated=unannotated,
            difficult=difficult,
        )
        rows = found.cached(cache)  # before they are divided: all splits share one store
    elif path.suffix == ".npz":
        rows, split = npz.read(path, dropout=dropout, noise=noise, vary_stored=vary_stored)
    else:
        known = (*BUILT_IN, "a folder with labels.csv", "an .npz file", *PUBLISHED)
        state = "is of no known kind" if path.exists() else "is not there"
        raise InputError(f"data {str(data)!r} {state}; {suggest(str(data), known)}")
    return divide(str(path), rows, split, holdout=holdout, seed=seed)


def read_images(
    path: Path, *, unannotated: str = "drop", difficult: str = "ignore", **how: Any
) -> tuple[ImageRows, list[str] | None]:
    """Read all images of a folder in its own order, and the split of each, if any is named."""
    if not path.is_dir():
        raise InputError(f"{path}: is no folder; one of images with labels.csv is needed")
    return _reader(path, unannotated, difficult)(**how)


def _reader(
    path: Path, unannotated: str, difficult: str
) -> Callable[..., tuple[ImageRows, list[str] | None]]:
    """Recognise what a folder holds; a labels.csv comes first, and is asked for if nothing fits."""
    if not (path / "labels.csv").is_file():
        if coco.recognise(path):
            return coco.read(path, unannotated=unannotated).rows
        if voc.recognise(path):
            return voc.read(path, difficult=difficult).rows
        if deepfashion.recognise(path):
            return deepfashion.read(path).rows
    return partial(csv.read, path)
