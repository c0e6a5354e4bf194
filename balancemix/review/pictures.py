"""Pictures: rows of the data as JPEGs for the review page, never the bytes of a file themselves."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from balancemix.data.formats import picture_folder
from balancemix.data.source import ReadOptions, Source
from balancemix.pictures import MAX_PIXELS, SECONDS, NotShown, PictureFile
from balancemix.review.decoders import Decoders
from balancemix.review.refused import Refused
from balancemix.review.thumbs import Thumbs

WIDTHS = (256, 512, 1280, 2048)
QUALITY = 85
PROCESSES = 2  # that decode at a time
STATUS = {"gone": 404, "outside": 403, "large": 413, "slow": 413, "unreadable": 415, "later": 503}


class Pictures:
    """The picture of each row, from files below `root`; links that lead out of it are refused.

    Rows without pictures have none: `paths` is None, or a file is not there. JPEGs are kept in the
    folder `cache`. Every method may be called from any thread; `jpeg` takes as long as decoding.
    """

    def __init__(
        self,
        paths: Sequence[Path] | None,
        root: Path,
        cache: Path,
        max_pixels: int = MAX_PIXELS,
        seconds: float = SECONDS,
    ) -> None:
        self.paths, self.root = paths or (), root
        self.max_pixels = max_pixels
        # Pillow has a limit of its own, for all threads, and refuses what is twice as large.
        Image.MAX_IMAGE_PIXELS = max(Image.MAX_IMAGE_PIXELS or 0, max_pixels)
        self._thumbs = Thumbs(cache)
        self._decoders = Decoders(PROCESSES, max_pixels, seconds)
        self._sizes: dict[str, tuple[int, int] | None] = {}
        self._failed: dict[str, NotShown] = {}

    @classmethod
    def of(
        cls, source: Source, options: ReadOptions, cache: Path, max_pixels: int = MAX_PIXELS
    ) -> Pictures:
        """Show the image files of a data set that was read with these options."""
        paths = source.images if isinstance(source.images, list) else None
        return cls(paths, picture_folder(source.path, options), cache, max_pixels)

    def has(self, row: int) -> bool:
        """Tell whether a row has a picture, which may be damaged."""
        try:
            self._file(row)
        except Refused as error:
            return error.status != 404
        return True

    def size(self, row: int) -> tuple[int, int] | None:
        """Return width and height as a person sees them; None where nothing can be shown."""
        try:
            file = self._file(row)
        except Refused:
            return None
        key = _key(file)
        if key not in self._sizes:
            try:
                self._sizes[key] = file.size(self.max_pixels)
            except NotShown:
                self._sizes[key] = None
        return self._sizes[key]

    def version(self, row: int) -> str:
        """Return what changes when the file does; "" if there is none."""
        try:
            return _key(self._file(row))[:8]
        except Refused:
            return ""

    def jpeg(self, row: int, width: int) -> bytes:
        """Return a row's picture, at most `width` pixels wide and high, and never enlarged."""
        if width not in WIDTHS:
            known = ", ".join(map(str, WIDTHS))
            raise Refused(404, "width", f"A picture has one of these widths: {known}.")
        file = self._file(row)
        key = _key(file)
        name = f"{key}-{width}.jpg"
        content = self._thumbs.get(name)
        if content is None:
            content = self._decoded(file, key, width)
            self._thumbs.put(name, content)
        return content

    def start(self) -> None:
        """Start what decodes, so that the first picture does not wait for it."""
        self._decoders.start()

    def close(self) -> None:
        """End what decodes."""
        self._decoders.close()

    def _decoded(self, file: PictureFile, key: str, width: int) -> bytes:
        try:
            if key in self._failed:  # a file that takes 5 s to fail does so once
                raise self._failed[key]
            return self._decoders.jpeg(file, width, QUALITY)
        except NotShown as error:
            if error.reason != "later":
                self._failed[key] = error
            raise Refused(STATUS[error.reason], "picture", str(error)) from None

    def _file(self, row: int) -> PictureFile:
        if not 0 <= row < len(self.paths):
            raise Refused(404, "picture", f"There is no picture {row}.")
        try:
            return PictureFile.find(self.paths[row], self.root)
        except NotShown as error:
            raise Refused(STATUS[error.reason], "picture", str(error)) from None


def _key(file: PictureFile) -> str:
    """Name a state of a file: another size or time is another picture."""
    text = f"{file.path}\0{file.length}\0{file.changed}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]
