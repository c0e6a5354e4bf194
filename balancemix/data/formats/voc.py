"""Pascal VOC: a devkit with VOC2007, VOC2012 or both; labels are those of `ImageSets/Main`.

Both years: the trainval images of both train and the test images of 2007 are scored on (the
paper's choice, by its numbers). 2007 alone: its trainval and test. 2012 alone, whose test labels
were never published: its train and val.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from balancemix.data.source import ReadOptions, Source, read_lines
from balancemix.data.splits import check_classes
from balancemix.errors import InputError, suggest

# By the years that are there: our split, the year, the set of images.
PARTS = {
    ("2007", "2012"): [
        ("train", "2007", "trainval"),
        ("train", "2012", "trainval"),
        ("test", "2007", "test"),
    ],
    ("2007",): [("train", "2007", "trainval"), ("test", "2007", "test")],
    ("2012",): [("train", "2012", "train"), ("val", "2012", "val")],
}
DIFFICULT = ("ignore", "negative")
VALUES = {"1": 1, "0": 0, "-1": -1}  # present, only as a difficult object, absent
WHOLE = "the whole devkit is needed (of 2007: VOCtrainval and VOCtest)"


def recognise(path: Path) -> str | None:
    """Say whether a folder is a devkit of VOC, or holds one.

    >>> recognise(Path("nowhere"))
    """
    years = _years(path)
    return f"it holds VOC{next(iter(years))}/ImageSets/Main" if years else None


def read(path: Path, options: ReadOptions) -> Source:
    """Read the labels of all splits.

    A class that is there only as a difficult object is negative in training; in evaluation it is
    ignored, or counts as negative too.
    """
    difficult = options.difficult
    if difficult not in DIFFICULT:
        raise InputError(f"difficult: {difficult!r}; {suggest(difficult, DIFFICULT)}")
    years = _years(path)
    parts = [(split, years[year], images) for split, year, images in PARTS[tuple(years)]]
    classes = sorted({name for _, home, images in parts for name in _classes(home, images)})
    check_classes(str(path), classes)
    paths: list[Path] = []
    split: list[str] = []
    values = []
    for name, home, images in parts:
        numbers, found = _read_part(home, images, classes)
        paths += [home / "JPEGImages" / f"{number}.jpg" for number in numbers]
        split += [name] * len(numbers)
        values.append(found)
    marks = torch.cat(values)
    given = (marks == 1).to(torch.int8)
    truth = None
    if difficult == "ignore":
        scored = torch.tensor([name != "train" for name in split]).unsqueeze(1)
        truth = given.masked_fill(scored & (marks == 0), -1)
    return Source.of_images(path, paths, classes, given, split, truth)


def _years(folder: Path) -> dict[str, Path]:
    inside = folder / "VOCdevkit"
    homes = {
        year: (inside if inside.is_dir() else folder) / f"VOC{year}" for year in ("2007", "2012")
    }
    return {year: home for year, home in homes.items() if (home / "ImageSets" / "Main").is_dir()}


def _classes(home: Path, images: str) -> list[str]:
    """Name the classes that have a file for a set of images."""
    ending = f"_{images}.txt"
    main = home / "ImageSets" / "Main"
    found = [file.name.removesuffix(ending) for file in main.glob(f"*{ending}")]
    if not found:
        raise InputError(f"{main}: holds no file CLASS{ending}; {WHOLE}")
    return found


def _read_part(home: Path, images: str, classes: list[str]) -> tuple[list[str], Tensor]:
    """Read the images of a set and, of each class, 1, 0 or −1: (N, K)."""
    first = home / "ImageSets" / "Main" / f"{classes[0]}_{images}.txt"
    numbers: list[str] = []
    columns: list[Tensor] = []
    for name in classes:
        file = first.with_name(f"{name}_{images}.txt")
        listed, values = _read_class(file)
        if not columns:
            numbers = listed
        elif listed != numbers:
            pairs = enumerate(zip(listed, numbers, strict=False), start=1)
            differing = [line for line, (one, other) in pairs if one != other]
            line = differing[0] if differing else min(len(listed), len(numbers)) + 1
            raise InputError(f"{file} line {line}: not the image that {first.name} has there")
        columns.append(torch.tensor(values, dtype=torch.int8))
    return numbers, torch.stack(columns, dim=1)


def _read_class(file: Path) -> tuple[list[str], list[int]]:
    numbers, values = [], []
    for line, text in enumerate(read_lines(file, WHOLE), start=1):
        cells = text.split()
        if len(cells) != 2 or cells[1] not in VALUES:
            raise InputError(f"{file} line {line}: {text!r} is not an image and 1, 0 or -1")
        numbers.append(cells[0])
        values.append(VALUES[cells[1]])
    return numbers, values
