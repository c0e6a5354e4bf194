"""What a data set says of its rows, and how they are to be shown; nothing is decoded here."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from balancemix.errors import InputError, listing, suggest

Augment = Literal["randaugment", "uda", "none"]
Channels = tuple[float, float, float]

IMAGENET_MEAN: Channels = (0.485, 0.456, 0.406)
IMAGENET_STD: Channels = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class View:
    """How a row is shown to a model.

    Images are resized to `size`×`size` pixels and normalised by `mean` and `std` of the channels,
    in units of 0 to 1; `augment` makes an augmented view. Of features, an augmented view drops each
    with probability `dropout` and adds Gaussian noise of `noise` standard deviations; where views
    are stored, it is one of these, and only with `vary_stored` is it changed as well.

    >>> View(size=128).augment
    'randaugment'
    """

    size: int = 224
    augment: Augment = "randaugment"
    mean: Channels = IMAGENET_MEAN
    std: Channels = IMAGENET_STD
    dropout: float = 0.1
    noise: float = 0.1
    vary_stored: bool = False

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InputError(f"size must be at least 1 pixel, it is {self.size}")
        if self.augment not in get_args(Augment):
            options = suggest(self.augment, get_args(Augment))
            raise InputError(f"augment: unknown {self.augment!r}; {options}")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be in [0, 1), it is {self.dropout}")
        if not 0 <= self.noise < float("inf"):
            raise InputError(f"noise must be 0 or more, it is {self.noise}")


@dataclass(frozen=True)
class ReadOptions:
    """What to make of a data set's files.

    `skip_bad` leaves out images that cannot be read. `unannotated` images of COCO are dropped or
    kept, `difficult` objects of VOC are ignored in evaluation or negative. `holdout` is the share
    of rows to score on where the file names no split; `seed` draws them, and the digits. `cache`
    keeps resized images, see `ImageRows.cached`.
    """

    skip_bad: bool = False
    unannotated: Literal["drop", "keep"] = "drop"
    difficult: Literal["ignore", "negative"] = "ignore"
    holdout: float = 0.2
    cache: Literal["auto", "memory", "disk", "off"] = "off"
    seed: int = 0


@dataclass(frozen=True)
class Source:
    """What the files at `path` say of N rows and K classes.

    `given` is N×K int8: 1 present, 0 absent, −1 unknown. `truth`, where it differs, is N×K uint8,
    or int8 with −1 where it is unknown; `verified`, N×K bool, marks labels that a person confirmed.
    The inputs are `images`, or `features` (N×D, or maps N×D×H×W) with views of them in `stored`
    (N×V×D…); then `images` only show the rows: files, any of which may be missing, or N×H×W pixels.
    `origin` is what the format remembers in order to write the same file again, `facts` how the
    labels were made.
    """

    path: Path
    classes: list[str]
    names: list[str]
    given: Tensor
    split: list[str] | None = None
    truth: Tensor | None = None
    verified: Tensor | None = None
    images: list[Path] | Tensor | None = None
    features: Tensor | None = None
    stored: Tensor | None = None
    origin: object = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_images(
        cls,
        path: Path,
        images: list[Path],
        classes: list[str],
        given: Tensor,
        split: list[str] | None = None,
        truth: Tensor | None = None,
    ) -> Source:
        """Describe image files below a folder, named by their place in it."""
        names = [image.relative_to(path).as_posix() for image in images]
        return cls(path, classes, names, given, split, truth, images=images)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def labels(self) -> Tensor:
        """The labels as training reads them: N×K uint8."""
        unknown = (self.given < 0).nonzero()
        if len(unknown):
            i, k = unknown[0].tolist()
            raise InputError(
                f"{self.path} {self.names[i]!r}, class {self.classes[k]!r}: the label is unknown; "
                "training reads 0 and 1"
            )
        return self.given.to(torch.uint8)

    def rows_in(self, split: str) -> list[int]:
        """List the rows of a split."""
        return [i for i, name in enumerate(self.split or ()) if name == split]

    def subset(self, index: Sequence[int]) -> Source:
        """Keep the rows at `index`; what was to be written again is forgotten."""
        rows = torch.tensor(index, dtype=torch.long)
        kept: dict[str, Any] = {"origin": None}
        for name in (
            "names",
            "given",
            "split",
            "truth",
            "verified",
            "images",
            "features",
            "stored",
        ):
            value = getattr(self, name)
            if isinstance(value, Tensor):
                kept[name] = value[rows]
            elif value is not None:
                kept[name] = [value[i] for i in index]
        return replace(self, **kept)


def without_missing(source: Source, skip_bad: bool) -> Source:
    """Refuse missing image files by name, or leave their rows out.

    That files exist is all that is checked: opening 100,000 of them takes minutes.
    """
    if source.features is not None or not isinstance(source.images, list):
        return source
    there = present(source.images)
    if all(there):
        return source
    bad = [repr(name) for name, found in zip(source.names, there, strict=True) if not found]
    message = f"{source.path}: {len(bad)} of {len(source)} images are missing: {listing(bad)}"
    if not skip_bad or not any(there):
        raise InputError(f"{message}; put them there, or pass --skip-bad to go on without")
    warnings.warn(f"{message}; left out", stacklevel=3)
    return source.subset([i for i, found in enumerate(there) if found])


def present(paths: Sequence[Path]) -> list[bool]:
    """Say of each file whether it is there, by listing every folder once.

    >>> present([Path("nowhere/cat.jpg")])
    [False]
    """
    found: dict[Path, set[str]] = {}
    for folder in {path.parent for path in paths}:
        try:
            found[folder] = set(os.listdir(folder))
        except OSError:
            found[folder] = set()
    return [path.name in found[path.parent] for path in paths]


def read_lines(file: Path, needed: str) -> list[str]:
    """Read the lines of a text file, without their ends; `needed` says what to do if it is missing.

    Blank lines at the end are left out, so that line i of the file is item i − 1.
    """
    try:
        return file.read_text(encoding="utf-8-sig").rstrip().split("\n")
    except FileNotFoundError as error:
        raise InputError(f"{file}: not found; {needed}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 (byte {error.start}); unpack it anew") from error
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from error
