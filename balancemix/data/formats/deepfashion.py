"""DeepFashion, attribute benchmark, fine annotations: 26 attributes in `Anno_fine`.

`{train,val,test}.txt` name one image a line, `{train,val,test}_attr.txt` hold its 0s and 1s on the
same line, `list_attr_cloth.txt` names the columns. As in the paper, train and val train (16,000
images) and test is scored (4,000).
"""

import os
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from balancemix.data.source import ReadOptions, Source, read_lines
from balancemix.data.splits import check_classes
from balancemix.errors import InputError

SPLITS = {"train": "train", "val": "train", "test": "test"}
WHOLE = "unpack all of Anno_fine"


def recognise(path: Path) -> str | None:
    """Say whether a folder holds the fine annotations of DeepFashion.

    >>> recognise(Path("nowhere"))
    """
    return "it holds Anno_fine" if (path / "Anno_fine").is_dir() else None


def read(path: Path, options: ReadOptions) -> Source:
    """Read the labels of all splits."""
    folder = path / "Anno_fine"
    classes = read_names(folder / "list_attr_cloth.txt")
    parts = []
    for part, split in SPLITS.items():
        file, attributes = folder / f"{part}.txt", folder / f"{part}_attr.txt"
        names = [line.strip() for line in read_lines(file, WHOLE)]
        if "" in names:
            raise InputError(f"{file} line {names.index('') + 1}: names no image")
        given = _read_attributes(attributes, len(classes))
        if len(given) != len(names):
            raise InputError(
                f"{attributes}: has {len(given)} lines where {file.name} has {len(names)}; {WHOLE}"
            )
        parts.append((split, [find_image(path, name) for name in names], given))
    source = Source.of_parts(path, classes, parts)
    note = f"{path} is DeepFashion's fine annotations: it holds {folder.name}"
    other = " (--format deepfashion-coarse reads the 1,000 coarse attributes)"
    return replace(source, recognised=[note + (other if coarse_of(path) else " (--format)")])


def coarse_of(path: Path) -> Path | None:
    """Find the folder of the coarse annotations, which older archives call Anno."""
    folders = (path / name for name in ("Anno_coarse", "Anno"))
    return next((each for each in folders if (each / "list_attr_img.txt").is_file()), None)


def find_image(folder: Path, name: str) -> Path:
    """Look for an image in the folder, then in `Img`, where the archive puts it."""
    direct, inside = folder / name, folder / "Img" / name
    # Unlike Path.is_dir, this answers for names that the system cannot have, too.
    exists = os.path.isdir
    return inside if not exists(direct.parent) and exists(inside.parent) else direct


def read_names(file: Path) -> list[str]:
    """Read the count, a header, then a name and its type on each line."""
    lines = read_lines(file, WHOLE)
    names = []
    for line, text in enumerate(lines[2:], start=3):
        cells = text.rsplit(maxsplit=1)  # many of the 1,000 coarse names have two words
        if len(cells) != 2 or not (cells[1].isascii() and cells[1].isdecimal()):
            raise InputError(f"{file} line {line}: {text!r} is not a name and the number of a type")
        names.append(cells[0].strip())
    if lines[0].strip() != str(len(names)):
        raise InputError(f"{file} line 1: {lines[0]!r} is not the count of the {len(names)} names")
    check_classes(str(file), names)
    return names


def _read_attributes(file: Path, count: int) -> Tensor:
    rows = []
    for line, text in enumerate(read_lines(file, WHOLE), start=1):
        cells = text.split()
        wrong = next((cell for cell in cells if cell not in ("0", "1")), None)
        if wrong is not None:
            raise InputError(f"{file} line {line}: {wrong!r} is neither 0 nor 1")
        if len(cells) != count:
            raise InputError(f"{file} line {line}: has {len(cells)} values, {count} are named")
        rows.append([int(cell) for cell in cells])
    return torch.tensor(rows, dtype=torch.int8)
