"""RandAugment(2, 9) on PIL images: torchvision's, image for image, without what it asks of each.

torchvision looks into the arguments of every call for something to vary, works out the strengths
of an operation anew and draws between operations: three tenths of the time of a view
(`benchmarks/views.py`). Here the operations are its own, and so are the draws, but strengths are
settled beforehand, and all is drawn before anything is applied (`images.augment`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from PIL.Image import Image

Operation = Callable[["Image"], "Image"]

TIMES, LEVEL, LEVELS = 2, 9, 30


def draw(size: tuple[int, int], generator: torch.Generator) -> list[Operation]:
    """Draw the operations for an RGB image of a size (width, height).

    >>> len(draw((8, 6), torch.Generator()))
    2
    """
    choices = operations(*size)
    drawn = []
    for _ in range(TIMES):
        choice = choices[int(torch.randint(len(choices), (), generator=generator))]
        turned = len(choice) > 1 and float(torch.rand((), generator=generator)) <= 0.5
        drawn.append(choice[turned])
    return drawn


@cache
def operations(width: int, height: int) -> list[tuple[Operation, ...]]:
    """List the fourteen operations on images of a size; of those with a direction, both."""
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
