"""The built-in digits as files: pictures that a person reads at a glance, and their features.

A folder with `digits.npz` and `images/`: each picture has up to four handwritten digits, drawn
large in two rows of two.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image
from torch import Tensor

from balancemix.data import load
from balancemix.data.formats import npz
from balancemix.data.formats.builtin import CELLS
from balancemix.data.splits import add_noise
from balancemix.progress import progress

FILE = "digits.npz"
CELL = 128  # pixels of a digit, drawn from 8
INK, PAPER = (28, 43, 74), (250, 248, 242)
# The colour of each value, by channel: steeper than a line, so that edges are sharp.
SHADES = [
    np.interp(np.arange(256), (80, 160), ends).round().astype(int).tolist()
    for ends in zip(PAPER, INK, strict=True)
]
QUALITY = 80


def write_digits(folder: Path, noise: str, seed: int) -> Path:
    """Write the digits with noise in their training labels, and their truth; all or nothing.

    Returns the .npz. A folder that is there is left as it is, except that the .npz is written
    again.
    """
    source, given, _ = add_noise(load("digits"), noise, seed)
    assert isinstance(source.images, Tensor)
    assert isinstance(source.features, Tensor)
    names = [f"{row:04}.jpg" for row in range(len(source))]
    # The same digits in other cells have the same features, and may not judge each other.
    same = np.unique(source.features.numpy(), axis=0, return_inverse=True)[1]
    files = replace(source, names=names, images=None, groups=[str(group) for group in same])
    if folder.exists():
        npz.write(files, given, folder / FILE)
        return folder / FILE
    draft = folder.with_name(f".{folder.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    (draft / "images").mkdir(parents=True)
    with progress("drawing digits", len(source)) as show:
        for name, strip in zip(names, source.images.numpy(), strict=True):
            draw(strip).save(draft / "images" / name, quality=QUALITY)
            show.advance()
    npz.write(files, given, draft / FILE)
    os.replace(draft, folder)
    return folder / FILE


def draw(strip: npt.NDArray[np.uint8]) -> Image.Image:
    """Draw a strip of four cells, 8×32 pixels of 0 (blank) to 255, as ink on paper.

    >>> draw(np.zeros((8, 32), dtype=np.uint8)).getpixel((0, 0))
    (250, 248, 242)
    """
    cells = strip.reshape(8, 2, CELLS // 2, 8).transpose(1, 2, 0, 3)
    apart = np.pad(cells, ((0, 0), (0, 0), (1, 1), (1, 1)))  # else digits touch
    page = Image.fromarray(np.ascontiguousarray(apart.transpose(0, 2, 1, 3).reshape(20, 20)))
    large = page.resize((2 * CELL, 2 * CELL), Image.Resampling.BICUBIC)
    return Image.merge("RGB", [large.point(each) for each in SHADES])
