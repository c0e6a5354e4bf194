"""A folder of images whose labels are not known."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch

from balancemix.data import images
from balancemix.data.source import ReadOptions, Source
from balancemix.errors import InputError, listing

ENDINGS = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"}


def read(path: Path, options: ReadOptions) -> Source:
    """Find every image below a folder."""
    paths = _images(path, options.skip_bad)
    return Source.of_images(path, paths, [], torch.empty(len(paths), 0, dtype=torch.int8))


def _images(folder: Path, skip_bad: bool) -> list[Path]:
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS)
    if not found:
        raise InputError(f"{folder}: holds no image ({', '.join(sorted(ENDINGS))})")
    problems = dict(zip(found, images.problems(found), strict=True))
    bad = [f"{path.name!r} ({why})" for path, why in problems.items() if why is not None]
    if bad:
        message = f"{folder}: {len(bad)} of {len(found)} images cannot be read: {listing(bad)}"
        if not skip_bad or len(bad) == len(found):
            raise InputError(f"{message}; repair them, or pass --skip-bad to go on without")
        warnings.warn(f"{message}; left out", stacklevel=3)
    return [path for path, why in problems.items() if why is None]
