"""Rows of image files: checked, decoded, resized, augmented and normalised."""

import copy
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from balancemix.data import cache
from balancemix.data.augment import AUGMENTATIONS, augment
from balancemix.data.rows import Rows, batch_seed
from balancemix.data.source import View
from balancemix.errors import InputError
from balancemix.labels.table import LabelMatrix
from balancemix.pictures import has_unknown_range, to_rgb
from balancemix.processes import BatchIndex
from balancemix.progress import progress

ENDINGS = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"}


class ImageRows(Rows):
    """Rows of N image files, resized to size×size; x is (B, 3, size, size).

    A file is decoded once for all views of a batch; only once for all epochs after `cached`.
    `folder` is the data set that the files belong to, if they belong to one: what is computed of
    them may be kept beside it.

    >>> rows = ImageRows([Path("photos/a.jpg")], torch.tensor([[1, 0]]), ["cat", "dog"])
    >>> rows.names, rows.size
    (['a.jpg'], 224)
    """

    decodes = True

    def __init__(
        self,
        paths: Sequence[Path],
        given: LabelMatrix,
        classes: Sequence[str],
        names: Sequence[str] | None = None,
        truth: LabelMatrix | None = None,
        view: View = View(),
        *,
        folder: Path | None = None,
    ) -> None:
        names = [path.name for path in paths] if names is None else names
        super().__init__(given, classes, names, truth)
        if len(paths) != len(self):
            raise InputError(f"paths must be {len(self)}, as many as names, not {len(paths)}")
        self.paths, self.folder = list(paths), folder
        self.view, self.size = view, view.size
        self.augmentation = AUGMENTATIONS[view.augment]
        self.mean, self.std = torch.tensor(view.mean), torch.tensor(view.std)
        self.store = cache.Store(self.paths, view.size, read)
        self.places = list(range(len(self)))  # of these rows in the store

    def cached(self, kind: str = "auto", folder: Path | None = None) -> Self:
        """Keep resized images in "memory" or on "disk" (in `folder`), for `subset`s too, or "off".

        "auto" is memory if they fit into a quarter of it, else disk if there is room, else off.
        """
        rows = copy.copy(self)
        rows.store = cache.open_store(kind, self.paths, self.size, read, folder)
        rows.places = list(range(len(self)))
        return rows

    @property
    def kept(self) -> bool:
        """Whether images are decoded only once."""
        return self.store.keeps

    def image(self, i: int) -> Image.Image:
        """Return row i as size×size RGB."""
        return self.store.image(self.places[i])

    def for_workers(self) -> Self:
        """Leave out what a loading process does not need; the store has the paths."""
        rows = super().for_workers()
        rows.paths = []
        return rows

    def _draw(self, share: BatchIndex) -> list[Tensor]:
        batch = [self.image(i) for i in share]
        views = [batch]
        if self.views:
            # One seed for each image, so that a process need not augment the images of another.
            generator = torch.Generator().manual_seed(batch_seed(self.seed, share.batch))
            shape = len(share.batch), self.views
            seeds = share.take(torch.randint(2**62, shape, generator=generator)).T.tolist()
            views = [augment(batch, self.augmentation, each) for each in seeds]
        return [normalise(pixels(view), self.mean, self.std) for view in views]

    def _pick(self, index: Tensor) -> None:
        self.paths = [self.paths[i] for i in index.tolist()]
        self.places = [self.places[i] for i in index.tolist()]

    def picture(self, i: int) -> Image.Image | None:
        """Decode row i in its original size."""
        return decode(self.paths[i])


def find(folder: Path, name: str) -> Path:
    """Return the path of an image in the folder or in its `images`; it need not exist.

    >>> find(Path("nowhere"), "cat.jpg").as_posix()
    'nowhere/cat.jpg'
    """
    direct, inside = folder / name, folder / "images" / name
    return inside if not is_file(direct) and is_file(inside) else direct


def find_all(folder: Path, names: Sequence[str], where: str | None = None) -> list[Path]:
    """Return the paths of images in the folder or in its `images`; they need not exist.

    A name without the ending of an image is that of the one file that has it with an ending.
    Several are refused in a message that begins with `where`; without it, none of them is taken.

    >>> [path.as_posix() for path in find_all(Path("nowhere"), ["cat.jpg", "dog"])]
    ['nowhere/cat.jpg', 'nowhere/dog']
    """
    listed: dict[Path, dict[str, list[str]]] = {}
    paths = []
    for name in names:
        path = find(folder, name)
        inside, stem = os.path.split(name)
        if path.suffix.lower() not in ENDINGS and not is_file(path):
            fitting = [
                each / file
                for each in (folder / inside, folder / "images" / inside)
                for file in _stems(each, listed).get(stem, ())
            ]
            if len(fitting) > 1 and where is not None:
                one, other = (repr(each.name) for each in fitting[:2])
                raise InputError(f"{where}: image {name!r} may be {one} or {other}; write which")
            path = fitting[0] if len(fitting) == 1 else path
        paths.append(path)
    return paths


def _stems(folder: Path, listed: dict[Path, dict[str, list[str]]]) -> dict[str, list[str]]:
    """List the images of a folder by their names without endings; each folder once."""
    if folder not in listed:
        stems = listed[folder] = {}
        try:
            found = sorted(os.listdir(folder))
        except (OSError, ValueError):  # or a name that no folder can have
            found = []
        for name in found:
            stem, ending = os.path.splitext(name)
            if ending.lower() in ENDINGS:
                stems.setdefault(stem, []).append(name)
    return listed[folder]


def is_file(path: Path) -> bool:
    """Tell whether a path is a file, also of names that the system refuses.

    >>> is_file(Path("x" * 300)), is_file(Path("a\\0b"))
    (False, False)
    """
    return os.path.isfile(path)  # Path.is_file raises an error for a name that is too long


def problems(paths: Sequence[Path]) -> list[str | None]:
    """Say for each image why it cannot be read, or None."""
    results = []
    with progress("checking images", len(paths)) as show:
        for path in paths:
            results.append(problem(path))
            show.advance()
    return results


def problem(path: Path) -> str | None:
    """Say why an image cannot be read, or None; reads little more than the header.

    >>> problem(Path("nowhere/cat.jpg"))
    'missing'
    """
    if not is_file(path):
        return "missing"
    try:
        with Image.open(path) as image:
            kind = image.format
            if has_unknown_range(image):
                return "32-bit pixels"
            image.verify()
        # verify() does not notice a truncated JPEG. One without its end marker may still be
        # complete, with bytes added after it: only decoding shows.
        if kind == "JPEG" and not _ends(path, b"\xff\xd9"):
            decode(path)
    except Exception:  # whatever Pillow raises, as in decode
        return "unreadable"
    return None


def _ends(path: Path, marker: bytes) -> bool:
    with path.open("rb") as file:
        file.seek(-len(marker), 2)
        return file.read() == marker


def decode(path: Path) -> Image.Image:
    """Read an image file as RGB, see `to_rgb`.

    32-bit integers and floating-point numbers are refused, since their range is unknown.
    """
    try:
        with Image.open(path) as image:
            if not has_unknown_range(image):
                return to_rgb(image)
    except Exception as error:  # Pillow's readers raise whatever their format's parser does
        raise InputError(f"{path}: cannot be read as an image ({error}); replace it") from error
    raise InputError(f"{path}: has 32-bit pixels of unknown range; save it with 8 or 16 bits")


def read(path: Path, size: int) -> Image.Image:
    """Read an image file as size×size RGB."""
    return resize(decode(path), size)


def resize(image: Image.Image, size: int) -> Image.Image:
    """Resize to size×size without cropping, with an antialiased bicubic filter.

    >>> resize(Image.new("RGB", (40, 20)), 8).size
    (8, 8)
    """
    return image.resize((size, size), Image.Resampling.BICUBIC)


def pixels(images: Sequence[Image.Image]) -> Tensor:
    """Stack RGB images of one size: (B, 3, H, W), uint8.

    >>> pixels([Image.new("RGB", (4, 2))]).shape
    torch.Size([1, 3, 2, 4])
    """
    return torch.from_numpy(np.stack([np.asarray(image) for image in images])).permute(0, 3, 1, 2)


def normalise(x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Scale uint8 pixels (B, 3, H, W) to 0 to 1, then subtract the mean and divide by the std.

    >>> x = torch.tensor([0, 51, 255], dtype=torch.uint8).view(1, 3, 1, 1)
    >>> normalise(x, torch.tensor([0.0, 0.2, 0.5]), torch.tensor([1.0, 1.0, 0.5])).flatten()
    tensor([0., 0., 1.])
    """
    result = x.to(torch.float32, memory_format=torch.channels_last)
    # In that layout a line of pixels is W·3 consecutive numbers. As one vector, torch needs a third
    # of the time that it needs for groups of three: 0.04 ms an image, not 0.11.
    rows, channels, height, width = x.shape
    lines = result.permute(0, 2, 3, 1).view(rows, height, width * channels)
    lines.div_(255).sub_(mean.repeat(width)).div_(std.repeat(width))
    return result
