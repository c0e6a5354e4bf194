"""What a view of RandAugment costs, against torchvision's own: `python benchmarks/views.py`.

A hundred images of 128 pixels in turn with one and the other, the best of several rounds; the views
are the same (tests/data/test_augment.py). Also against the same operations on tensors, one by one,
and on all in one batch, for which all would have to be varied alike; and against the whole making
of a view, from the store of resized images to normalised pixels.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from photos import report, write_photos
from torchvision.transforms import v2
from turns import fastest

from balancemix.data import ImageRows, View, images
from balancemix.data.augment import augment, randaugment
from balancemix.training.devices import keep_freed_memory

ROUNDS = 5


def main() -> None:
    """Measure, and print a line for each."""
    torch.set_num_threads(2)
    keep_freed_memory()  # as in training
    with TemporaryDirectory() as name:
        paths = write_photos(Path(name), 100)
        photos = [images.resize(images.decode(path), 128) for path in paths]
        labels = torch.ones(len(paths), 1, dtype=torch.uint8)
        rows = ImageRows(paths, labels, ["photo"], view=View(size=128)).cached("memory")
        rows = rows.with_views(1, 0)
        index = list(range(len(rows)))
        rows.__getitems__(index)  # decodes, once
    batch = images.pixels(photos)
    tensors = list(batch)
    theirs = v2.RandAugment(2, 9)

    def vary(photos: list[Any]) -> list[Any]:
        views = []
        for seed, photo in enumerate(photos):
            torch.default_generator.manual_seed(seed)
            views.append(theirs(photo))
        return views

    seconds = fastest(
        {
            "ours": lambda: augment(photos, randaugment, range(len(photos))),
            "a whole view of a kept image": lambda: rows.__getitems__(index),
            "torchvision's": lambda: vary(photos),
            "torchvision's on tensors": lambda: vary(tensors),
            "torchvision's on a batch": lambda: vary([batch] * len(photos)),
        },
        ROUNDS,
    )
    seconds["torchvision's on a batch"] /= len(photos)
    unit = seconds.pop("ours")
    for name, taken in seconds.items():
        what = f"RandAugment against {name}"
        report("views", what, unit / taken, ms_an_image=1000 * taken / len(photos))


if __name__ == "__main__":
    main()
