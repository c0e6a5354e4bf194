"""Augmented views of images: torchvision's RandAugment(2, 9), and UDA's RandAugment.

Images stay PIL's uint8: on a CPU its operations take less than half the time of those on tensors
(`benchmarks/views.py`).

UDA's variant, with which the ASL family trains, draws an ordered pair uniformly from fifteen
operations at levels 1 to 9 and applies each half the time, so a quarter of the images stay as they
are. Uncovered pixels become mid-grey.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from PIL import Image, ImageEnhance, ImageOps

Augmentation = Callable[[Image.Image], Image.Image]  # draws from torch's global generator

LEVELS = 9
FILL = (128, 128, 128)


def augment(
    images: Sequence[Image.Image], augmentation: Augmentation, seeds: Sequence[int]
) -> list[Image.Image]:
    """Augment each image by random numbers of its seed; torch's global generator stays as it was.

    >>> augment([Image.new("RGB", (8, 6))], randaugment, [0])[0].size
    (8, 6)
    """
    before = torch.default_generator.get_state()
    views = []
    try:
        for image, seed in zip(images, seeds, strict=True):
            torch.default_generator.manual_seed(seed)
            views.append(augmentation(image))
    finally:
        torch.default_generator.set_state(before)
    return views


def unchanged(image: Image.Image) -> Image.Image:
    """Return the image.

    >>> unchanged("image")
    'image'
    """
    return image


def randaugment(image: Image.Image) -> Image.Image:
    """Augment an RGB image by RandAugment(2, 9).

    >>> randaugment(Image.new("RGB", (8, 6))).size
    (8, 6)
    """
    return _transform()(image)


@cache
def _transform() -> Callable[[Image.Image], Image.Image]:
    from torchvision.transforms.v2 import RandAugment

    transform: Callable[[Image.Image], Image.Image] = RandAugment(2, 9)
    return transform


# Takes an image, a strength from −1 to 1 without 0, and a place, x and y from 0 to 1.
Operation = Callable[[Image.Image, float, tuple[float, float]], Image.Image]


def uda(image: Image.Image) -> Image.Image:
    """Augment an RGB image by UDA's RandAugment.

    >>> uda(Image.new("RGB", (8, 6))).size
    (8, 6)
    """
    operations = list(OPERATIONS.values())
    for _ in range(2):
        operation = operations[int(torch.randint(len(operations), ()))]
        level = int(torch.randint(1, LEVELS + 1, ()))
        # Drawn always, so that a view takes the same number of draws whatever the operation.
        applied, sign, x, y = torch.rand(4).tolist()
        if applied < 0.5:
            image = operation(image, level / LEVELS * (1 if sign < 0.5 else -1), (x, y))
    return image


def _affine(image: Image.Image, matrix: tuple[float, ...], smooth: bool) -> Image.Image:
    filter_ = Image.Resampling.BICUBIC if smooth else Image.Resampling.NEAREST
    return image.transform(image.size, Image.Transform.AFFINE, matrix, filter_, fillcolor=FILL)


def _shear(image: Image.Image, x: float, y: float) -> Image.Image:
    return _affine(image, (1, 0.3 * x, 0, 0.3 * y, 1, 0), smooth=True)


def _translate(image: Image.Image, x: float, y: float) -> Image.Image:
    x, y = 150 / 331 * x * image.width, 150 / 331 * y * image.height
    return _affine(image, (1, 0, x, 0, 1, y), smooth=False)


def _enhance(kind: Callable[[Image.Image], Any]) -> Operation:
    return lambda image, strength, place: kind(image).enhance(1 + 0.9 * strength)


def _rotate(image: Image.Image, strength: float, place: tuple[float, float]) -> Image.Image:
    return image.rotate(30 * abs(strength), fillcolor=FILL)  # one way only, as in the original


def _cutout(image: Image.Image, strength: float, place: tuple[float, float]) -> Image.Image:
    # Departure: the original cuts up to 20 pixels within the top-left 32×32, whatever the image.
    (width, height), reach = image.size, abs(strength) * 20 / 64
    left, right = max(0.0, place[0] - reach), min(1.0, place[0] + reach)
    top, bottom = max(0.0, place[1] - reach), min(1.0, place[1] + reach)
    box = (int(left * width), int(top * height), int(right * width), int(bottom * height))
    cut = image.copy()
    cut.paste(FILL, box)
    return cut


OPERATIONS: dict[str, Operation] = {
    "invert": lambda image, s, place: ImageOps.invert(image),
    "cutout": _cutout,
    "sharpness": _enhance(ImageEnhance.Sharpness),
    "autocontrast": lambda image, s, place: ImageOps.autocontrast(image),
    "posterize": lambda image, s, place: ImageOps.posterize(image, round(8 - 4 * abs(s))),
    "shear x": lambda image, s, place: _shear(image, s, 0),
    "translate x": lambda image, s, place: _translate(image, s, 0),
    "translate y": lambda image, s, place: _translate(image, 0, s),
    "shear y": lambda image, s, place: _shear(image, 0, s),
    "rotate": _rotate,
    "equalize": lambda image, s, place: ImageOps.equalize(image),
    "contrast": _enhance(ImageEnhance.Contrast),
    "color": _enhance(ImageEnhance.Color),
    "solarize": lambda image, s, place: ImageOps.solarize(image, round(256 * (1 - abs(s)))),
    "brightness": _enhance(ImageEnhance.Brightness),
}

AUGMENTATIONS: dict[str, Augmentation] = {
    "randaugment": randaugment,
    "uda": uda,
    "none": unchanged,
}
