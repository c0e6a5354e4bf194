"""What the files of a data set say, and how its rows are shown to a model; nothing is decoded."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from balancemix.errors import InputError, listing
from balancemix.options import ReadOptions as ReadOptions
from balancemix.options import View as View

RESTORE = "restore them, or pass --skip-bad to leave them out"
# The fields of a source that have an entry for each row.
PER_ROW = (
    "names", "given", "split", "groups", "truth", "verified", "images", "features", "stored",
    "decided", "file_given",
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """What the files at `path` say about N rows and K classes.

    given      N×K int8: 1 present, 0 absent, −1 unknown
    truth      where it differs from `given`: N×K of 0, 1 and −1 (unknown), int8 or uint8
    verified   N×K bool: labels that are known to be right
    split      the name of each row's split
    groups     the name of each row's group; a row without a name ("") is a group of its own
    images     N image files; with `features` they only illustrate the rows, and may be missing or
               be N×H×W pixels
    features   N×D, or maps N×D×H×W
    stored     augmented views of the features, N×V×D…
    decided    N×K bool: those of them that people decided beside the file
    file_given  the labels of the file, where decisions of people replaced some in `given`
    origin     what the format needs in order to write the same file again
    facts      how the labels were made
    recognised  what the files were taken for and why, and the flag that overrules it
    """

    path: Path
    classes: list[str]
    names: list[str]
    given: Tensor
    split: list[str] | None = None
    groups: list[str] | None = None
    truth: Tensor | None = None
    verified: Tensor | None = None
    images: list[Path] | Tensor | None = None
    features: Tensor | None = None
    stored: Tensor | None = None
    decided: Tensor | None = None
    file_given: Tensor | None = None
    origin: object = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    recognised: list[str] = field(default_factory=list)

    @classmethod
    def of_parts(
        cls, path: Path, classes: list[str], parts: Sequence[tuple[str, list[Path], Tensor]]
    ) -> Source:
        """Join parts of a folder: a split, its images and their given labels.

        Images are named by their path in the folder; none may be outside, or twice.
        """
        images = [image for _, part, _ in parts for image in part]
        names = [_name_below(path, image) for image in images]
        repeated = [repr(name) for name, times in Counter(names).items() if times > 1]
        if repeated:
            raise InputError(f"{path}: images named twice: {listing(repeated)}; name each one once")
        return cls(
            path=path,
            classes=classes,
            names=names,
            given=torch.cat([given for _, _, given in parts]),
            split=[name for name, part, _ in parts for _ in part],
            images=images,
        )

    def __len__(self) -> int:
        return len(self.names)

    @property
    def as_in_file(self) -> Source:
        """The source with the labels that its file has."""
        if self.file_given is None:
            return self
        return replace(self, given=self.file_given, file_given=None)

    @property
    def before(self) -> Tensor | None:
        """The labels before people decided about some of them; −1 where that is not known."""
        if self.file_given is None or self.verified is None or self.decided is None:
            return None
        return self.file_given.masked_fill(self.verified & ~self.decided, -1)

    @property
    def group_numbers(self) -> Tensor | None:
        """Number the groups in the order in which they occur: N int64."""
        if self.groups is None:
            return None
        numbers: dict[str | int, int] = {}
        keys = ((name or i) for i, name in enumerate(self.groups))
        return torch.tensor([numbers.setdefault(key, len(numbers)) for key in keys])

    def rows_in(self, split: str) -> list[int]:
        """List the rows of a split."""
        return [i for i, name in enumerate(self.split or ()) if name == split]

    def subset(self, index: Sequence[int]) -> Source:
        """Keep the rows at `index`; `origin` is dropped, since the file has other rows."""
        kept: dict[str, Any] = {"origin": None}
        for name in PER_ROW:
            value = getattr(self, name)
            if isinstance(value, Tensor):
                kept[name] = value[torch.tensor(index, dtype=torch.long)]
            elif value is not None:
                kept[name] = [value[i] for i in index]
        return replace(self, **kept)


def _name_below(folder: Path, image: Path) -> str:
    if not image.is_relative_to(folder) or ".." in image.relative_to(folder).parts:
        raise InputError(f"{folder}: image {str(image)!r} is not below this folder; move it there")
    return image.relative_to(folder).as_posix()


def without_missing(source: Source, skip_bad: bool) -> Source:
    """Refuse missing image files by name, or leave their rows out.

    Only that files exist is checked: opening 100,000 of them takes minutes.
    """
    if source.features is not None or not isinstance(source.images, list):
        return source
    exists = present(source.images)
    missing = [repr(name) for name, here in zip(source.names, exists, strict=True) if not here]
    if not missing:
        return source
    leave_out(f"{source.path}: %s are missing", missing, len(source), skip_bad)
    return source.subset([i for i, here in enumerate(exists) if here])


def leave_out(
    message: str, bad: Sequence[str], count: int, skip_bad: bool, remedy: str = RESTORE
) -> None:
    """Refuse `bad` images out of `count`, or warn that they are left out.

    `message` has a `%s` for how many there are, and ends with the `remedy`.

    >>> leave_out("photos: %s cannot be read", [], 3, skip_bad=False)
    """
    if not bad:
        return
    message = f"{message % f'{len(bad)} of {count} images'}: {listing(bad)}"
    if not skip_bad or len(bad) == count:
        raise InputError(f"{message}; {remedy}")
    warnings.warn(f"{message}; left out", stacklevel=4)


def present(paths: Sequence[Path]) -> list[bool]:
    """Say for each path whether it is a file; lists every folder once.

    >>> present([Path("nowhere/cat.jpg")])
    [False]
    """
    files: dict[Path, set[str]] = {}
    for folder in {path.parent for path in paths}:
        try:
            with os.scandir(folder) as entries:
                files[folder] = {entry.name for entry in entries if entry.is_file()}
        except (OSError, ValueError):  # or a name that no folder can have
            files[folder] = set()
    return [path.name in files[path.parent] for path in paths]


def check_text(where: str, name: str, *, file: bool = False) -> None:
    """Refuse a name that cannot be stored: one that holds a NUL, or is not UTF-8.

    The name of a `file` may have other bytes, which Python reads as lone surrogates.

    >>> check_text("photos row 1", "caf\\udce9.jpg", file=True)
    """
    if "\0" in name:
        raise InputError(f"{where} {name!r} holds a NUL; rename it")
    try:
        name.encode("utf-8", "surrogateescape" if file else "strict")
    except UnicodeEncodeError:
        raise InputError(f"{where} {name!r} is not UTF-8; rename it") from None


def is_object(file: Path) -> bool:
    """Tell whether a file begins like an object in JSON.

    >>> is_object(Path("nowhere.json"))
    False
    """
    try:
        with file.open("rb") as stream:
            head = stream.read(4096)
    except (OSError, ValueError):  # or a name that no file can have
        return False
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def read_text(file: Path, missing: str, damaged: str = "unpack it again") -> str:
    """Read a text file; `missing` and `damaged` say what to do if it is."""
    try:
        return file.read_text(encoding="utf-8-sig")  # spreadsheets start a file with a mark
    except FileNotFoundError as error:
        raise InputError(f"{file}: not found; {missing}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 (byte {error.start}); {damaged}") from error
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from error


def read_lines(file: Path, missing: str) -> list[str]:
    """Read the lines of a text file, without line ends.

    Blank lines at the end are left out, so that line i of the file is item i − 1.
    """
    return read_text(file, missing).rstrip().split("\n")
