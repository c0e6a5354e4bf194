"""Image files of every mode and format, damaged byte by byte."""

import functools
import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from balancemix.data import images
from balancemix.errors import InputError
from tests.torture.draw import Draw
from tests.torture.mutate import mutate_bytes
from tests.torture.outcome import RefusedError
from tests.torture.seeds import Files

SIDE = 6
FORMATS = {
    "PNG": ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"],
    "JPEG": ["L", "RGB", "CMYK"],
    "GIF": ["L", "P"],
    "TIFF": ["1", "L", "RGB", "CMYK", "I;16", "I", "F"],
    "BMP": ["L", "RGB"],
    "WEBP": ["RGB"],
}
WIDE = ("I;16", "I;16B", "I", "F")  # modes of which 255 is not the most


@functools.cache
def picture(kind: str, mode: str) -> bytes:
    """Draw a ramp over all that a mode can say."""
    ramp = np.linspace(0, 1, SIDE * SIDE).reshape(SIDE, SIDE)
    if mode in WIDE:
        most = {"I;16": 65535, "I": 2**31 - 1, "F": 1.0}[mode]
        image = Image.fromarray((ramp * most).astype({"I;16": "<u2", "I": "<i4", "F": "<f4"}[mode]))
    else:
        grey = Image.fromarray((ramp * 255).astype(np.uint8))
        image = grey.convert("RGB").convert(mode) if mode != "LA" else grey.convert("LA")
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


def make(draw: Draw) -> tuple[str, bytes]:
    """Choose a picture."""
    kind = draw.pick(sorted(FORMATS))
    mode = draw.pick(FORMATS[kind])
    return kind, picture(kind, mode)


def damage(made: tuple[str, bytes], draw: Draw) -> Files:
    """Damage its bytes in none to three places; a name may claim another format."""
    kind, content = made
    for _ in range(draw.below(4)):
        content = mutate_bytes(content, draw)
    ending = draw.pick([kind.lower(), "jpg"])
    return {f"x.{ending}": content}


def _file(folder: Path) -> Path:
    return next(path for path in folder.iterdir() if path.stem == "x")


def read(folder: Path) -> Any:
    """Check an image as reading labels.csv does, then decode it."""
    file = _file(folder)
    problem = images.problem(file)
    if problem is not None:
        raise InputError(f"{file}: {problem}")
    pixels = np.asarray(images.decode(file))
    return pixels.shape, pixels.tobytes()


def literal(folder: Path) -> Any:
    """Decode with Pillow; of wide modes scale what can be said in 8 bits."""
    try:
        with Image.open(_file(folder)) as image:
            if image.mode.startswith("I;16"):
                values = np.asarray(image).astype(np.float64) / 257
                pixels = np.repeat(values.round().astype(np.uint8)[..., None], 3, axis=2)
            elif image.mode in WIDE:
                raise RefusedError("no scale that is known")
            else:
                pixels = np.asarray(image.convert("RGB"))
    except Exception as error:
        raise RefusedError(f"cannot be decoded: {type(error).__name__}") from None
    return pixels.shape, pixels.tobytes()
