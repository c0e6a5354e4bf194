"""Pictures for people: files below one folder, made small and turned as the camera held them."""

from __future__ import annotations

import io
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, cast

from PIL import Image, UnidentifiedImageError

from balancemix.errors import InputError

MAX_PIXELS = 100_000_000
MAX_BYTES = 64 * 2**20
SECONDS = 5.0  # to decode a file
DRAFT = 1.5  # times what is asked for; at 2, a camera's 4,000 pixels would be decoded whole
HEADER_SECONDS = 1.0  # to find its size; a file may have a million notes before its pixels
# What is opened: pixels only. Pillow would pass an EPS to another program.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "JPEG2000", "AVIF", "PPM")
ORIENTATION = 0x0112  # a tag of EXIF, and how to undo each value of it
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class NotShown(InputError):  # noqa: N818  # what it is, not how it is raised
    """A picture that is not shown.

    `reason` is "gone", "outside", "large", "slow", "unreadable" or "later".

    >>> NotShown("gone", "a.jpg is not there.").reason
    'gone'
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class PictureFile:
    """A picture that is there, below the folder that it may be in; it may still be damaged."""

    path: Path  # without links
    name: str  # for messages
    length: int
    changed: int  # in nanoseconds

    @classmethod
    def find(cls, path: Path, root: Path) -> PictureFile:
        """Find a picture; raise NotShown if it is not there, or not below `root` itself."""
        name = path.name
        try:
            real = Path(os.path.realpath(path))
            inside = real.is_relative_to(os.path.realpath(root))
            facts = os.stat(real)
        except (OSError, ValueError):  # or a name that no file can have
            raise NotShown("gone", f"{name} is not there.") from None
        if not inside:
            raise NotShown("outside", f"{name} leads out of {root}; it is not shown.")
        if not stat.S_ISREG(facts.st_mode):
            raise NotShown("gone", f"{name} is not a file.")
        return cls(real, name, facts.st_size, facts.st_mtime_ns)

    def size(self, max_pixels: int = MAX_PIXELS) -> tuple[int, int]:
        """Read width and height, as a person sees them; no pixel is decoded."""
        self._check_length()
        with self._file() as file:
            content = Timed(file, HEADER_SECONDS, self.name)
            with self._opened(content, max_pixels) as image:
                width, height = image.size
                return (height, width) if _orientation(image) >= 5 else (width, height)

    def read(
        self, side: int, max_pixels: int = MAX_PIXELS, seconds: float = SECONDS
    ) -> Image.Image:
        """Decode as RGB, at most `side` wide and high; what is transparent becomes white.

        `seconds` are counted where a decoder reads on; one that does not is not interrupted.
        """
        self._check_length()
        with self._file() as file:
            content = Timed(io.BytesIO(file.read(MAX_BYTES)), seconds, self.name)
        with self._opened(content, max_pixels) as image:
            if has_unknown_range(image):
                raise NotShown("unreadable", f"{self.name} cannot be read (32-bit pixels).")
            turn = TURNS.get(_orientation(image))
            image.draft(None, _fitting(image.size, DRAFT * side))  # a JPEG is decoded small
            picture = flatten(image)
            picture.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=2.0)
            return picture if turn is None else picture.transpose(turn)

    def _check_length(self) -> None:
        if self.length > MAX_BYTES:
            megabytes = f"{self.length / 2**20:.0f} MB, the limit is {MAX_BYTES / 2**20:.0f}"
            raise NotShown("large", f"{self.name} has {megabytes}.")

    @contextmanager
    def _file(self) -> Iterator[BinaryIO]:
        try:
            with self.path.open("rb") as file:
                yield file
        except OSError as error:
            why = f"{self.name} cannot be read ({error.strerror})."
            raise NotShown("unreadable", why) from None

    @contextmanager
    def _opened(self, file: Timed, max_pixels: int) -> Iterator[Image.Image]:
        Image.init()
        known = [name for name in FORMATS if name in Image.OPEN]
        try:
            with Image.open(cast(IO[bytes], file), formats=known) as image:
                self._check(image.width * image.height, max_pixels)
                yield image
        except NotShown:
            raise
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            number = re.search(r"\d+", str(error))  # Pillow says how many, and opens nothing
            self._check(int(number[0]) if number else max_pixels + 1, max_pixels)
            raise NotShown("large", f"{self.name} is too large.") from None
        except MemoryError:
            why = f"{self.name} needs more memory than there is to read; it is not shown."
            raise NotShown("large", why) from None
        except Exception as error:  # whatever the readers of Pillow raise
            raise NotShown("unreadable", f"{self.name} cannot be read ({_why(error)}).") from None

    def _check(self, pixels: int, limit: int) -> None:
        if pixels > limit:
            facts = f"{_millions(pixels)} megapixels, the limit is {_millions(limit)}"
            raise NotShown("large", f"{self.name} has {facts} (`--max-pixels`).")


class Timed:
    """A file that can be read for some seconds: decoders ask for it in pieces."""

    def __init__(self, file: BinaryIO, seconds: float, name: str) -> None:
        self.file, self.name, self.limit = file, name, seconds
        self.end = time.monotonic() + seconds
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1, /) -> bytes:
        """Read on, or raise NotShown when the time is up."""
        if time.monotonic() > self.end:
            raise too_slow(self.name, self.limit)
        return self.file.read(size)


def too_slow(name: str, seconds: float) -> NotShown:
    """Say that a picture takes too long.

    >>> str(too_slow("a.jpg", 5.0))
    'a.jpg takes longer than 5 s to read; it is not shown.'
    """
    return NotShown("slow", f"{name} takes longer than {seconds:g} s to read; it is not shown.")


def flatten(image: Image.Image) -> Image.Image:
    """Convert to RGB on white.

    >>> flatten(Image.new("RGBA", (1, 1))).getpixel((0, 0))
    (255, 255, 255)
    """
    clear = image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info
    if not clear or image.mode.startswith("I"):
        return to_rgb(image)
    whole = image.convert("RGBA")
    white = Image.new("RGB", image.size, "white")
    white.paste(whole, mask=whole.getchannel("A"))
    return white


def to_rgb(image: Image.Image) -> Image.Image:
    """Convert to RGB; 16 bits are scaled to 8, where Pillow would clip them.

    >>> to_rgb(Image.new("I;16", (1, 1), 257 * 7)).getpixel((0, 0))
    (7, 7, 7)
    """
    if image.mode.startswith("I"):
        import numpy as np  # only here: the decoder of the review page starts without it

        pixels = np.rint(np.asarray(image) / 257).astype(np.uint8)
        return Image.fromarray(pixels).convert("RGB")
    return image.convert("RGB")


def has_unknown_range(image: Image.Image) -> bool:
    """Tell whether pixels are 32-bit numbers, of which nobody knows what white is."""
    # Older versions of Pillow open a PNG of 16 bits as one of 32.
    return image.mode == "F" or (image.mode == "I" and image.format != "PNG")


def jpeg(image: Image.Image, quality: int) -> bytes:
    """Encode RGB as a JPEG of pixels alone, without anything that the file said about itself.

    >>> jpeg(Image.new("RGB", (4, 2)), 75)[:2].hex()
    'ffd8'
    """
    out, plain = io.BytesIO(), image.copy()
    plain.info = {}
    plain.save(out, format="JPEG", quality=quality, optimize=True)
    return out.getvalue()


def _orientation(image: Image.Image) -> int:
    """Read how the camera was held, 1 to 8; Pillow turns a TIFF itself."""
    if "exif" not in image.info:
        return 1
    try:
        value = image.getexif().get(ORIENTATION, 1)
    except Exception:  # damaged notes of a picture that may be fine
        return 1
    return value if value in TURNS else 1


def _fitting(size: tuple[int, int], side: float) -> tuple[int, int]:
    """Scale a size to `side`; a draft of the file is at least as large."""
    scale = min(1.0, side / max(*size, 1))
    return max(1, int(size[0] * scale)), max(1, int(size[1] * scale))


def _millions(number: int) -> str:
    return f"{number / 1e6:,.3g}" if number < 1e9 else f"{number / 1e6:,.0f}"


def _why(error: Exception) -> str:
    """Say in a few words why a file cannot be decoded."""
    if isinstance(error, UnidentifiedImageError):
        return "not a picture of a known kind"
    if "truncated" in str(error).lower() or isinstance(error, EOFError):
        return "file ends early"
    if isinstance(error, PermissionError):
        return "permission denied"
    return "file is damaged"
