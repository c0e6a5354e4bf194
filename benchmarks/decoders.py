"""What a process of its own costs a picture of the review page: `python benchmarks/decoders.py`.

Pictures of the sizes that people have, decoded here (the control) and in a process beside, in
turns; medians. Also the seconds until the first picture comes, the start of the process included,
twice. Writes the table of docs/review-server.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image
from results import put

from balancemix.pictures import MAX_PIXELS, PictureFile, jpeg
from balancemix.review.decoders import Decoders
from balancemix.review.pictures import QUALITY

PICTURES = [("640.jpg", 640, 480), ("2000.webp", 2000, 1500), ("4000.jpg", 4000, 3000)]
WIDTHS = (256, 1280)
ROUNDS = 25


def main() -> None:
    """Measure, and write the table."""
    lines = ["| picture | shown at | here, ms | beside, ms | ratio |", "|---|--:|--:|--:|--:|"]
    with TemporaryDirectory() as name:
        files = [draw(Path(name), *each) for each in PICTURES]
        decoders = Decoders(1, MAX_PIXELS, 60.0)
        first = seconds(lambda: decoders.jpeg(files[0], WIDTHS[0], QUALITY))
        for file in files:
            for width in WIDTHS:
                here, beside = in_turns(decoders, file, width)
                facts = f"{1e3 * here:.0f} | {1e3 * beside:.0f} | {beside / here:.2f}"
                lines.append(f"| {file.name} | {width} | {facts} |")
        decoders.close()
        decoders = Decoders(1, MAX_PIXELS, 60.0)
        again = seconds(lambda: decoders.jpeg(files[0], WIDTHS[0], QUALITY))
        decoders.close()
    text = f"First picture, with the start of the process: {first:.1f} and {again:.1f} s.\n"
    put("decoders", "\n".join([*lines, "", text]))


def draw(folder: Path, name: str, width: int, height: int) -> PictureFile:
    """Write a picture that is neither flat nor noise."""
    shape = height // 8, width // 8, 3
    small = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    Image.fromarray(small).resize((width, height)).save(folder / name, quality=90)
    return PictureFile.find(folder / name, folder)


def in_turns(decoders: Decoders, file: PictureFile, width: int) -> tuple[float, float]:
    """Measure the median of both ways to decode."""
    here, beside = [], []
    for _ in range(ROUNDS):
        here.append(seconds(lambda: jpeg(file.read(width), QUALITY)))
        beside.append(seconds(lambda: decoders.jpeg(file, width, QUALITY)))
    return median(here), median(beside)


def seconds(work: Callable[[], object]) -> float:
    """Measure how long something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
