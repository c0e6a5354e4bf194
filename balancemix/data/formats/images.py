"""Rows to predict: any folder of images, or features, whether or not they have labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import torch

from balancemix.data import images
from balancemix.data.formats import digits, npz
from balancemix.data.rows import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Channels,
    FeatureRows,
    ImageRows,
    Rows,
)
from balancemix.errors import InputError, listing

ENDINGS = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"}


def load_unlabelled(
    data: str | Path,
    classes: Sequence[str],
    *,
    size: int = 224,
    augment: str = "none",
    mean: Channels = IMAGENET_MEAN,
    std: Channels = IMAGENET_STD,
    dropout: float = 0.1,
    noise: float = 0.1,
    skip_bad: bool = False,
    seed: int = 0,
) -> Rows:
    """Load every image below a folder, or the features of an .npz; the labels are left blank.

    The features of digits depend on the seed they were made with: give the run's own.
    """
    if str(data) in ("digits", "digits:pixels"):
        return digits.load(pixels=str(data) == "digits:pixels", seed=seed).test
    path = Path(data).expanduser()
    if path.is_dir():
        paths = _images(path, skip_bad)
        blank = torch.zeros(len(paths), len(classes), dtype=torch.uint8)
        names = [str(each.relative_to(path)) for each in paths]
        return ImageRows(
            paths, blank, classes, names, size=size, augment=augment, mean=mean, std=std
        )
    if path.suffix == ".npz" and path.exists():
        features, names_ = npz.read_features(path)
        blank = torch.zeros(len(features), len(classes), dtype=torch.uint8)
        return FeatureRows(features, blank, classes, names_, dropout=dropout, noise=noise)
    raise InputError(f"data {str(data)!r} is neither a folder of images nor an .npz with features")


def _images(folder: Path, skip_bad: bool) -> list[Path]:
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS)
    if not found:
        raise InputError(f"{folder}: holds no image ({', '.join(sorted(ENDINGS))})")
    complaints = dict(zip(found, images.complaints(found), strict=True))
    bad = [f"{path.name!r} ({why})" for path, why in complaints.items() if why is not None]
    if bad:
        message = f"{folder}: {len(bad)} of {len(found)} images cannot be read: {listing(bad)}"
        if not skip_bad or len(bad) == len(found):
            raise InputError(f"{message}; repair them, or pass --skip-bad to go on without")
        warnings.warn(f"{message}; left out", stacklevel=3)
    return [path for path, why in complaints.items() if why is None]
