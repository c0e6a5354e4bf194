"""COCO: `annotations/instances_{train,val}{2014,2017}.json` beside folders of images.

A class is present if the image has any annotation of the category, a crowd's included. Classes
stand in the order of the JSON file. The train split trains, the val split is scored on.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from balancemix.data.source import ReadOptions, Source
from balancemix.data.splits import check_classes
from balancemix.errors import InputError, suggest

YEARS = ("2017", "2014")
PARTS = ("train", "val")
UNANNOTATED = ("drop", "keep")


def recognise(path: Path) -> str | None:
    """Say whether a folder holds annotations of COCO.

    >>> recognise(Path("nowhere"))
    """
    there = (_file(path, part, year) for part in PARTS for year in YEARS)
    return next((f"it holds annotations/{file.name}" for file in there if file.is_file()), None)


def read(path: Path, options: ReadOptions) -> Source:
    """Read the labels of both splits.

    Images without any annotation are dropped, as by most who publish on COCO (82,081 and 40,137
    rows are left of 2014), or kept (as Query2Label does), which makes another test set.
    """
    unannotated = options.unannotated
    if unannotated not in UNANNOTATED:
        raise InputError(f"unannotated: {unannotated!r}; {suggest(unannotated, UNANNOTATED)}")
    year = _year(path)
    paths: list[Path] = []
    split: list[str] = []
    labels, categories = [], {}
    for part in PARTS:
        file = _file(path, part, year)
        known, names, present = _read_part(file)
        if part == "train":
            categories = known
        elif known != categories:
            raise InputError(f"{file}: its categories are not those of train{year}")
        kept = (present.sum(1) > 0) | (unannotated == "keep")
        if not kept.any():
            raise InputError(f"{file}: no image has an annotation")
        images = _images(path, f"{part}{year}")
        paths += [images / names[i] for i in kept.nonzero().flatten().tolist()]
        split += [part] * int(kept.sum())
        labels.append(present[kept])
    return Source.of_images(path, paths, list(categories.values()), torch.cat(labels), split)


def _year(folder: Path) -> str:
    """Choose the year of which both files are there."""
    absent = {
        year: [file for part in PARTS if not (file := _file(folder, part, year)).is_file()]
        for year in YEARS
    }
    whole = [year for year in YEARS if not absent[year]]
    if not whole:
        file = next(files[0] for files in absent.values() if len(files) == 1)
        raise InputError(f"{file}: not found; both splits of one year are needed")
    if len(whole) > 1:
        warnings.warn(
            f"{folder}: holds COCO {' and '.join(whole)}; {whole[0]} is read, keep the files of "
            "one year to choose",
            stacklevel=5,
        )
    return whole[0]


def _file(folder: Path, part: str, year: str) -> Path:
    return folder / "annotations" / f"instances_{part}{year}.json"


def _images(folder: Path, name: str) -> Path:
    inside = folder / "images" / name
    return inside if not (folder / name).is_dir() and inside.is_dir() else folder / name


def _read_part(file: Path) -> tuple[dict[int, str], list[str], Tensor]:
    """Read categories by their number, names of the images, and which has what: (N, K)."""
    content = _content(file)
    categories: dict[int, str] = {}
    for where, number, name in _entries(file, content, "categories", "id", "name"):
        if categories.setdefault(number, name) is not name:
            raise InputError(
                f"{file}: {where}: id {number} is used twice; give each category its own id"
            )
    check_classes(str(file), list(categories.values()))
    row: dict[int, int] = {}
    names: list[str] = []
    for where, number, name in _entries(file, content, "images", "id", "file_name"):
        if row.setdefault(number, len(names)) != len(names):
            raise InputError(
                f"{file}: {where}: id {number} is used twice; give each image its own id"
            )
        names.append(name)
    column = {number: k for k, number in enumerate(categories)}
    found = []
    for where, image, category in _entries(file, content, "annotations", "image_id", "category_id"):
        if image not in row:
            raise InputError(f"{file}: {where}: image_id {image} is not among the images")
        if category not in column:
            raise InputError(f"{file}: {where}: category_id {category} is not among the categories")
        found.append(row[image] * len(column) + column[category])
    present = torch.zeros(len(names) * len(column), dtype=torch.int8)
    present[torch.tensor(found, dtype=torch.long)] = 1
    return categories, names, present.view(len(names), len(column))


def _content(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: not JSON ({error}); unpack it anew") from error
    if not isinstance(content, dict):
        raise InputError(f"{file}: not COCO's JSON, which holds images, annotations, categories")
    return content


def _entries(
    file: Path, content: dict[str, Any], key: str, first: str, second: str
) -> Iterator[tuple[str, int, Any]]:
    """Take two fields, the first of them a number, of each entry of a list; say where it stands."""
    entries = content.get(key)
    if not isinstance(entries, list):
        found = ", ".join(map(repr, content)) or "nothing"
        raise InputError(f"{file}: no list {key!r}, only {found}; is it an `instances` file?")
    kinds = (int, str if second.endswith("name") else int)
    for i, entry in enumerate(entries):
        for field, kind in zip((first, second), kinds, strict=True):
            if not isinstance(entry, dict) or not isinstance(entry.get(field), kind):
                kind_ = "number" if kind is int else "text"
                raise InputError(f"{file}: {key}[{i}] has no {field!r}, or not as a {kind_}")
        yield f"{key}[{i}]", entry[first], entry[second]
