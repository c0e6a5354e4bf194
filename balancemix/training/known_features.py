"""Known features of images, and which images they are known of.

An image is the same as long as the facts of its file are, its size and dates; where these differ,
its bytes decide.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from balancemix.data.fingerprint import checksum, file_facts
from balancemix.data.images import ImageRows

Array = npt.NDArray[Any]

COLUMNS = {"images": "S", "facts": "i", "checksums": "u", "features": "f"}  # NumPy's kinds
BLOCK = 1024  # rows checked at once


@dataclass(frozen=True)
class Known:
    """Rows of a file, as its columns."""

    images: Array
    facts: Array
    checksums: Array
    features: Array

    @classmethod
    def of(cls, columns: Any) -> Self:
        """Take the columns from arrays by name, or from an array of records."""
        return cls(**{name: columns[name] for name in COLUMNS})

    def __len__(self) -> int:
        return len(self.images)

    def take(self, index: Array) -> Known:
        """Copy the rows at `index`."""
        return Known.of({name: getattr(self, name)[index] for name in COLUMNS})

    def joined(self, more: Known) -> Known:
        """Add more rows; none of these if their features have another width."""
        if self.features.shape[1] != more.features.shape[1]:
            return more
        pairs = {name: (getattr(self, name), getattr(more, name)) for name in COLUMNS}
        return Known.of({name: np.concatenate(pair) for name, pair in pairs.items()})

    def check(self) -> None:
        """Refuse columns that do not belong together, and features that are not finite."""
        if any(getattr(self, name).dtype.kind != kind for name, kind in COLUMNS.items()):
            raise ValueError("its arrays have other types")
        count, width = self.images.size, self.features.shape[-1]
        shapes = [(count,), (count, 3), (count,), (count, width)]
        if [getattr(self, name).shape for name in COLUMNS] != shapes:
            raise ValueError("its arrays do not belong together")
        for start in range(0, count, BLOCK):
            if not np.isfinite(self.features[start : start + BLOCK]).all():
                raise ValueError("it holds NaN or infinity")


NOTHING = Known.of(np.empty(0, [("images", "S1"), ("facts", "<i8", 3), ("checksums", "<u8"),
                                ("features", "<f2", 0)]))  # fmt: skip


@dataclass(frozen=True)
class Wanted:
    """The image files of rows: their names below the folder, paths and facts."""

    images: list[bytes]
    paths: list[Path]
    facts: Array

    @classmethod
    def of(cls, rows: ImageRows) -> Self:
        """Look at the files of rows."""
        root = os.path.abspath(rows.folder or ".")
        names = [_below(root, path).encode("utf-8", "surrogateescape") for path in rows.paths]
        return cls(names, rows.paths, file_facts(rows.paths))

    @cached_property
    def name_bytes(self) -> int:
        """The length of the longest name."""
        return max(map(len, self.images))

    def places(self, known: Known, *, read: bool) -> Array:
        """Find the place of each file's row, or −1; files with other facts are `read` or new."""
        at = {name: i for i, name in enumerate(known.images.tolist())}
        place = np.array([at.get(name, -1) for name in self.images], np.int64)
        named = np.flatnonzero(place >= 0)
        changed = (known.facts[place[named]] != self.facts[named]).any(1)
        for i in named[changed]:
            if not (read and known.checksums[place[i]] == checksum(self.paths[i]) > 0):
                place[i] = -1
        return place

    def records(self, index: Array, features: Array) -> Array:
        """Join what is known of some files and the features that were just made of them.

        The checksum of a file that changed meanwhile is 0, which no file has.
        """
        kind = [("images", f"S{self.name_bytes}"), ("facts", "<i8", 3), ("checksums", "<u8"),
                ("features", "<f2", features.shape[1])]  # fmt: skip
        records = np.empty(len(index), kind)
        paths = [self.paths[i] for i in index]
        records["images"], records["facts"] = [self.images[i] for i in index], self.facts[index]
        records["checksums"], records["features"] = [checksum(path) for path in paths], features
        records["checksums"][(file_facts(paths) != records["facts"]).any(1)] = 0
        return records


def _below(root: str, path: Path) -> str:
    """Name a file by its path from the folder, with slashes."""
    try:
        return os.path.relpath(path, root).replace(os.sep, "/")
    except ValueError:  # on another disk of Windows
        return str(path)
