"""Pascal VOC: a devkit with VOC2007, VOC2012 or both; labels are those of `ImageSets/Main`.

With both years, the trainval images of both train and the test images of 2007 are scored (the
paper's choice, by its numbers). 2007 alone: its trainval and test. 2012 alone: its train and val,
since its test labels were never published.
"""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from balancemix.data.source import ReadOptions, Source, read_lines
from balancemix.data.splits import check_classes
from balancemix.errors import InputError, suggest

# For the years that a folder holds: our split, the year, the set of images.
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

    A class that is present only as a difficult object is negative in training; in evaluation it is
    ignored, or negative too.
    """
    difficult = options.difficult
    if difficult not in DIFFICULT:
        raise InputError(f"difficult: {difficult!r}; {suggest(difficult, DIFFICULT)}")
    years = _years(path)
    sets = [(split, years[year], name) for split, year, name in PARTS[tuple(years)]]
    classes = sorted({name for _, folder, images in sets for name in _classes(folder, images)})
    check_classes(str(path), classes)
    parts = []
    for split, folder, name in sets:
        numbers, marks = _read_part(folder, name, classes)
        parts.append((split, [folder / "JPEGImages" / f"{i}.jpg" for i in numbers], marks))
    source = Source.of_parts(path, classes, parts)
    marks, given = source.given, (source.given == 1).to(torch.int8)
    truth = None
    if difficult == "ignore":
        scored = torch.tensor([name != "train" for name in source.split or ()]).unsqueeze(1)
        truth = given.masked_fill(scored & (marks == 0), -1)
    return replace(source, given=given, truth=truth)


def _years(folder: Path) -> dict[str, Path]:
    inside = folder / "VOCdevkit"
    devkit = inside if inside.is_dir() else folder
    folders = {year: devkit / f"VOC{year}" for year in ("2007", "2012")}
    return {year: each for year, each in folders.items() if (each / "ImageSets" / "Main").is_dir()}


def _classes(folder: Path, images: str) -> list[str]:
    """List the classes that have a file for a set of images."""
    ending = f"_{images}.txt"
    main = folder / "ImageSets" / "Main"
    classes = [file.name.removesuffix(ending) for file in main.glob(f"*{ending}")]
    if not classes:
        raise InputError(f"{main}: holds no file CLASS{ending}; {WHOLE}")
    return classes


def _read_part(folder: Path, images: str, classes: list[str]) -> tuple[list[str], Tensor]:
    """Read the images of a set, and 1, 0 or −1 for each class: N×K."""
    first = folder / "ImageSets" / "Main" / f"{classes[0]}_{images}.txt"
    numbers: list[str] = []
    columns: list[Tensor] = []
    for name in classes:
        file = first.with_name(f"{name}_{images}.txt")
        listed, values = _read_class(file)
        if not columns:
            numbers = listed
        elif listed != numbers:
            pairs = enumerate(zip(listed, numbers, strict=False), start=1)
            differing = [line for line, (a, b) in pairs if a != b]
            line = differing[0] if differing else min(len(listed), len(numbers)) + 1
            raise InputError(
                f"{file} line {line}: not the image that {first.name} has on that line"
            )
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
