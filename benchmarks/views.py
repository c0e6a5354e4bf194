"""What a view of RandAugment costs, against torchvision's own: `python benchmarks/views.py`.

A hundred images of 128 pixels in turn with one and the other, the best of several rounds; the views
are the same (tests/test_randaugment.py). Also against the operations on tensors.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from photos import report, write_photos
from torchvision.transforms import v2

from balancemix.data import images

ROUNDS = 9


def main() -> None:
    """Measure, and print a line for each."""
    torch.set_num_threads(2)
    with TemporaryDirectory() as name:
        paths = write_photos(Path(name), 100)
        photos = [images.squash(images.decode(path), 128) for path in paths]
    tensors = list(images.pixels(photos))
    theirs = v2.RandAugment(2, 9)
    ours = images.augmentation("randaugment")
    seconds: dict[str, list[float]] = {
        "ours": [],
        "torchvision's": [],
        "torchvision's on tensors": [],
    }
    for _ in range(ROUNDS):
        seconds["ours"].append(timed(ours, photos))
        seconds["torchvision's"].append(timed(theirs, photos))
        seconds["torchvision's on tensors"].append(timed(theirs, tensors))
    best = {name: min(found) for name, found in seconds.items()}
    for name in list(best)[1:]:
        ratio = best["ours"] / best[name]
        report("views", f"RandAugment against {name}", ratio, ms_an_image=10 * best["ours"])


def timed(augment: Callable[[Any], Any], photos: list[Any]) -> float:
    """Take the seconds of varying all."""
    begin = time.perf_counter()
    images.varied(photos, augment, range(len(photos)))
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
