"""A catalogue: what a published data set says of its images, read without looking at any."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from balancemix.data.rows import IMAGENET_MEAN, IMAGENET_STD, Channels, ImageRows
from balancemix.errors import InputError, listing


@dataclass(frozen=True)
class Catalogue:
    """N image files below `folder`, their N×K labels, and the split of each.

    `truth`, where it differs from the labels, is int8 and −1 where unknown.
    """

    folder: Path
    paths: list[Path]
    labels: Tensor
    classes: list[str]
    split: list[str]
    truth: Tensor | None = None

    def rows(
        self,
        *,
        size: int = 224,
        augment: str = "randaugment",
        mean: Channels = IMAGENET_MEAN,
        std: Channels = IMAGENET_STD,
        skip_bad: bool = False,
    ) -> tuple[ImageRows, list[str]]:
        """Make rows of all images, and say the split of each.

        That the files are there is all that is checked: opening 100,000 of them takes minutes.
        Missing ones are an error that names them; `skip_bad` goes on without.
        """
        names = [path.relative_to(self.folder).as_posix() for path in self.paths]
        rows = ImageRows(
            self.paths, self.labels, self.classes, names, self.truth,
            size=size, augment=augment, mean=mean, std=std,
        )  # fmt: skip
        there = present(self.paths)
        if all(there):
            return rows, self.split
        bad = [repr(name) for name, found in zip(names, there, strict=True) if not found]
        message = f"{self.folder}: {len(bad)} of {len(names)} images are missing: {listing(bad)}"
        if not skip_bad or not any(there):
            raise InputError(f"{message}; put them there, or pass --skip-bad to go on without")
        warnings.warn(f"{message}; left out", stacklevel=3)
        kept = [i for i, found in enumerate(there) if found]
        return rows.subset(torch.tensor(kept)), [self.split[i] for i in kept]


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
