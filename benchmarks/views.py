"""What a view of RandAugment costs, against torchvision's own: `python benchmarks/views.py`.

A hundred images of 128 pixels in turn with one and the other, the best of several rounds; the views
are the same (tests/test_randaugment.py). Also against the operations on tensors, one by one, and on
all in one batch, for which all would have to be varied alike.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from photos import report, write_photos
from torchvision.transforms import v2
from turns import fastest

from balancemix.data import images

ROUNDS = 9
DRAWS = 20  # of two operations each: some take longer than others


def main() -> None:
    """Measure, and print a line for each."""
    torch.set_num_threads(2)
    with TemporaryDirectory() as name:
        paths = write_photos(Path(name), 100)
        photos = [images.squash(images.decode(path), 128) for path in paths]
    batch = images.pixels(photos)
    tensors = list(batch)
    theirs = v2.RandAugment(2, 9)
    ours = images.augmentation("randaugment")

    def vary(augment: Callable[[Any], Any], photos: list[Any]) -> Callable[[], object]:
        return lambda: images.varied(photos, augment, range(len(photos)))

    seconds = fastest(
        {
            "ours": vary(ours, photos),
            "torchvision's": vary(theirs, photos),
            "torchvision's on tensors": vary(theirs, tensors),
            "torchvision's on a batch": lambda: [theirs(batch) for _ in range(DRAWS)],
        },
        ROUNDS,
    )
    seconds["torchvision's on a batch"] /= DRAWS
    unit = seconds.pop("ours")
    for name, taken in seconds.items():
        what = f"RandAugment against {name}"
        report("views", what, unit / taken, ms_an_image=1000 * unit / len(photos))


if __name__ == "__main__":
    main()
