"""Augmented views of images: RandAugment(2, 9), and UDA's RandAugment.

Images stay PIL's uint8: on a CPU its operations take less than half the time of those on tensors
(`benchmarks/views.py`). An augmentation draws the operations for an image; `augment` draws those of
all images before it applies any, since calls to torch between calls to Pillow slow both down.

RandAugment's views are torchvision's, image for image. torchvision searches the arguments of every
call for inputs, computes the strengths of an operation again and draws between operations: three
tenths of the time of a view. Here the strengths are computed once for each image size.

UDA's variant, with which the ASL family trains, draws an ordered pair uniformly from fifteen
operations at levels 1 to 9 and applies each half the time, so a quarter of the images stay as they
are. Uncovered pixels become mid-grey.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from PIL.Image import Image

Operation = Callable[["Image"], "Image"]
Draw = Callable[[tuple[int, int], torch.Generator], list[Operation]]

TIMES, LEVEL, LEVELS = 2, 9, 30  # of RandAugment
UDA_LEVELS = 9
FILL = (128, 128, 128)


def augment(images: Sequence[Image], draw: Draw, seeds: Sequence[int]) -> list[Image]:
    """Augment each image by random numbers of its seed.

    >>> from PIL import Image
    >>> augment([Image.new("RGB", (8, 6))], randaugment, [0])[0].size
    (8, 6)
    """
    generator = torch.Generator()
    drawn = [
        draw(image.size, generator.manual_seed(seed))
        for image, seed in zip(images, seeds, strict=True)
    ]
    views = []
    for image, operations in zip(images, drawn, strict=True):
        for operation in operations:
            image = operation(image)
        views.append(image)
    return views


def unchanged(size: tuple[int, int], generator: torch.Generator) -> list[Operation]:
    """Draw no operation.

    >>> unchanged((8, 6), torch.Generator())
    []
    """
    return []


def randaugment(size: tuple[int, int], generator: torch.Generator) -> list[Operation]:
    """Draw the operations of RandAugment for an RGB image of a size (width, height).

    >>> len(randaugment((8, 6), torch.Generator()))
    2
    """
    choices = operations(*size)
    drawn = []
    for _ in range(TIMES):
        choice = choices[int(torch.randint(len(choices), (), generator=generator))]
        negative = len(choice) > 1 and float(torch.rand((), generator=generator)) <= 0.5
        drawn.append(choice[negative])
    return drawn


@cache
def operations(width: int, height: int) -> list[tuple[Operation, ...]]:
    """List the fourteen operations on images of a size, each in one or two directions."""
    from torchvision.transforms.v2 import functional as F

    affine: Callable[..., Image] = partial(F.affine, angle=0.0, scale=1.0)

    def moved(image: Image, x: float, y: float) -> Image:
        return affine(image, translate=[int(x), int(y)], shear=[0.0, 0.0])

    def sheared(image: Image, x: float, y: float) -> Image:
        shear = [math.degrees(math.atan(part)) for part in (x, y)]
        return affine(image, translate=[0, 0], shear=shear, center=[0, 0])

    def both(operation: Callable[[Image, float], Image], most: float) -> tuple[Operation, ...]:
        strength = float(torch.linspace(0.0, most, LEVELS + 1)[LEVEL])
        return (
            lambda image: operation(image, strength),
            lambda image: operation(image, -strength),
        )

    return [
        (lambda image: image,),
        both(lambda image, strength: sheared(image, strength, 0.0), 0.3),
        both(lambda image, strength: sheared(image, 0.0, strength), 0.3),
        both(lambda image, strength: moved(image, strength, 0), 150 / 331 * width),
        both(lambda image, strength: moved(image, 0, strength), 150 / 331 * height),
        both(lambda image, strength: F.rotate(image, strength), 30.0),
        both(lambda image, strength: F.adjust_brightness(image, 1 + strength), 0.9),
        both(lambda image, strength: F.adjust_saturation(image, 1 + strength), 0.9),
        both(lambda image, strength: F.adjust_contrast(image, 1 + strength), 0.9),
        both(lambda image, strength: F.adjust_sharpness(image, 1 + strength), 0.9),
        (lambda image: F.posterize(image, round(8 - 4 * LEVEL / LEVELS)),),
        (lambda image: F.solarize(image, 255 * (1 - LEVEL / LEVELS)),),
        (F.autocontrast,),
        (F.equalize,),
    ]


# Takes an image, a strength from −1 to 1 without 0, and a place, x and y from 0 to 1.
UdaOperation = Callable[["Image", float, tuple[float, float]], "Image"]


def uda(size: tuple[int, int], generator: torch.Generator) -> list[Operation]:
    """Draw the operations of UDA for an RGB image of any size.

    >>> len(uda((8, 6), torch.Generator())) <= 2
    True
    """
    choices = list(UDA_OPERATIONS.values())
    drawn: list[Operation] = []
    for _ in range(2):
        operation = choices[int(torch.randint(len(choices), (), generator=generator))]
        level = int(torch.randint(1, UDA_LEVELS + 1, (), generator=generator))
        # Drawn always, so that a view takes the same number of draws whatever the operation.
        applied, sign, x, y = torch.rand(4, generator=generator).tolist()
        if applied < 0.5:
            strength = level / UDA_LEVELS * (1 if sign < 0.5 else -1)
            drawn.append(_with(operation, strength, (x, y)))
    return drawn


def _with(operation: UdaOperation, strength: float, place: tuple[float, float]) -> Operation:
    return lambda image: operation(image, strength, place)


def _affine(matrix: Callable[[Image, float], tuple[float, ...]], smooth: bool) -> UdaOperation:
    def operation(image: Image, strength: float, place: tuple[float, float]) -> Image:
        from PIL import Image

        filter_ = Image.Resampling.BICUBIC if smooth else Image.Resampling.NEAREST
        data = matrix(image, strength)
        return image.transform(image.size, Image.Transform.AFFINE, data, filter_, fillcolor=FILL)

    return operation


def _enhance(name: str) -> UdaOperation:
    def operation(image: Image, strength: float, place: tuple[float, float]) -> Image:
        from PIL import ImageEnhance

        enhanced: Image = getattr(ImageEnhance, name)(image).enhance(1 + 0.9 * strength)
        return enhanced

    return operation


def _remap(name: str, argument: Callable[[float], int] | None = None) -> UdaOperation:
    def operation(image: Image, strength: float, place: tuple[float, float]) -> Image:
        from PIL import ImageOps

        extra = () if argument is None else (argument(abs(strength)),)
        mapped: Image = getattr(ImageOps, name)(image, *extra)
        return mapped

    return operation


def _rotate(image: Image, strength: float, place: tuple[float, float]) -> Image:
    return image.rotate(30 * abs(strength), fillcolor=FILL)  # one way only, as in the original


def _cutout(image: Image, strength: float, place: tuple[float, float]) -> Image:
    # Departure: the original cuts up to 20 pixels within the top-left 32×32, whatever the image.
    (width, height), reach = image.size, abs(strength) * 20 / 64
    left, right = max(0.0, place[0] - reach), min(1.0, place[0] + reach)
    top, bottom = max(0.0, place[1] - reach), min(1.0, place[1] + reach)
    box = (int(left * width), int(top * height), int(right * width), int(bottom * height))
    cut = image.copy()
    cut.paste(FILL, box)
    return cut


UDA_OPERATIONS: dict[str, UdaOperation] = {
    "invert": _remap("invert"),
    "cutout": _cutout,
    "sharpness": _enhance("Sharpness"),
    "autocontrast": _remap("autocontrast"),
    "posterize": _remap("posterize", lambda strength: round(8 - 4 * strength)),
    "shear x": _affine(lambda image, s: (1, 0.3 * s, 0, 0, 1, 0), smooth=True),
    "translate x": _affine(lambda image, s: (1, 0, 150 / 331 * s * image.width, 0, 1, 0), False),
    "translate y": _affine(lambda image, s: (1, 0, 0, 0, 1, 150 / 331 * s * image.height), False),
    "shear y": _affine(lambda image, s: (1, 0, 0, 0.3 * s, 1, 0), smooth=True),
    "rotate": _rotate,
    "equalize": _remap("equalize"),
    "contrast": _enhance("Contrast"),
    "color": _enhance("Color"),
    "solarize": _remap("solarize", lambda strength: round(256 * (1 - strength))),
    "brightness": _enhance("Brightness"),
}

AUGMENTATIONS: dict[str, Draw] = {"randaugment": randaugment, "uda": uda, "none": unchanged}
