"""UDA's RandAugment, which the ASL family trains with: two operations, each applied half the time.

An ordered pair of operations is drawn uniformly from fifteen operations at levels 1 to 9, so a
quarter of the images pass untouched. Uncovered pixels become mid-grey.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from PIL.Image import Image

LEVELS = 9
FILL = (128, 128, 128)


# Every operation takes the strength, from −1 to 1 without 0, and a place, both sides 0 to 1.
Operation = Callable[["Image", float, tuple[float, float]], "Image"]


def draw(size: tuple[int, int], generator: torch.Generator) -> list[Callable[[Image], Image]]:
    """Draw the operations for an RGB image of any size.

    >>> len(draw((8, 6), torch.Generator())) <= 2
    True
    """
    operations = list(OPERATIONS.values())
    drawn = []
    for _ in range(2):
        kind = int(torch.randint(len(operations), (), generator=generator))
        level = int(torch.randint(1, LEVELS + 1, (), generator=generator))
        # Drawn always, so that a view takes the same number of draws whatever the operation.
        applied, sign, x, y = torch.rand(4, generator=generator).tolist()
        if applied < 0.5:
            signed = level / LEVELS * (1 if sign < 0.5 else -1)
            drawn.append(_at(operations[kind], signed, (x, y)))
    return drawn


def _at(
    operation: Operation, strength: float, place: tuple[float, float]
) -> Callable[[Image], Image]:
    return lambda image: operation(image, strength, place)


def _affine(matrix: Callable[[Image, float], tuple[float, ...]], smooth: bool) -> Operation:
    def operation(image: Image, strength: float, place: tuple[float, float]) -> Image:
        from PIL import Image

        filter_ = Image.Resampling.BICUBIC if smooth else Image.Resampling.NEAREST
        data = matrix(image, strength)
        return image.transform(image.size, Image.Transform.AFFINE, data, filter_, fillcolor=FILL)

    return operation


def _enhance(name: str) -> Operation:
    def operation(image: Image, strength: float, place: tuple[float, float]) -> Image:
        from PIL import ImageEnhance

        enhanced: Image = getattr(ImageEnhance, name)(image).enhance(1 + 0.9 * strength)
        return enhanced

    return operation


def _remap(name: str, argument: Callable[[float], int] | None = None) -> Operation:
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


OPERATIONS: dict[str, Operation] = {
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
