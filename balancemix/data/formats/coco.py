"""COCO: `annotations/instances_{train,val}{2014,2017}.json` beside folders of images.

A class is present if the image has any annotation of its category, crowds included. Classes are in
the order of the train file. The train split trains, the val split is scored.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from balancemix.data.source import ReadOptions, Source
from balancemix.data.splits import check_classes
from balancemix.errors import InputError, suggest
from balancemix.files import from_json

YEARS = ("2017", "2014")
PARTS = ("train", "val")
UNANNOTATED = ("drop", "keep")


def recognise(path: Path) -> str | None:
    """Say whether a folder holds annotations of COCO.

    >>> recognise(Path("nowhere"))
    """
    files = (_file(path, part, year) for part in PARTS for year in YEARS)
    return next((f"it holds annotations/{file.name}" for file in files if file.is_file()), None)


def read(path: Path, options: ReadOptions) -> Source:
    """Read the labels of both splits.

    Images without any annotation are dropped, as by most who publish on COCO (82,081 and 40,137
    rows are left of 2014), or kept, as by Query2Label, which makes another test set.
    """
    unannotated = options.unannotated
    if unannotated not in UNANNOTATED:
        raise InputError(f"unannotated: {unannotated!r}; {suggest(unannotated, UNANNOTATED)}")
    year = _year(path)
    parts = []
    categories: dict[int, str] = {}
    for part in PARTS:
        file = _file(path, part, year)
        known, names, given = _read_part(file)
        categories = categories or known
        if known != categories:
            raise InputError(f"{file}: its categories are not those of train{year}")
        order = list(known)
        given = given[:, [order.index(number) for number in categories]]
        kept = (given.sum(1) > 0) | (unannotated == "keep")
        if not kept.any():
            raise InputError(f"{file}: no image has an annotation")
        folder = _images(path, f"{part}{year}")
        images = [folder / names[i] for i in kept.nonzero().flatten().tolist()]
        parts.append((part, images, given[kept]))
    return Source.of_parts(path, list(categories.values()), parts)


def _year(folder: Path) -> str:
    """Choose a year that has both files."""
    absent = {
        year: [file for part in PARTS if not (file := _file(folder, part, year)).is_file()]
        for year in YEARS
    }
    complete = [year for year in YEARS if not absent[year]]
    if not complete:
        file = next(files[0] for files in absent.values() if len(files) == 1)
        raise InputError(f"{file}: not found; both splits of one year are needed")
    if len(complete) > 1:
        warnings.warn(
            f"{folder}: holds COCO {' and '.join(complete)}; {complete[0]} is read, keep the files "
            "of one year to choose",
            stacklevel=5,
        )
    return complete[0]


def _file(folder: Path, part: str, year: str) -> Path:
    return folder / "annotations" / f"instances_{part}{year}.json"


def _images(folder: Path, name: str) -> Path:
    inside = folder / "images" / name
    return inside if not (folder / name).is_dir() and inside.is_dir() else folder / name


def _read_part(file: Path) -> tuple[dict[int, str], list[str], Tensor]:
    """Read the categories by id, the names of the images, and the labels: N×K."""
    content = _content(file)
    categories = _by_id(file, content, "categories", "name")
    check_classes(str(file), list(categories.values()))
    images = _by_id(file, content, "images", "file_name")
    row = {number: i for i, number in enumerate(images)}
    column = {number: k for k, number in enumerate(categories)}
    rows, columns = [], []
    for where, image, category in _entries(file, content, "annotations", "image_id", "category_id"):
        if image not in row:
            raise InputError(f"{where}: image_id {image} is not among the images")
        if category not in column:
            raise InputError(f"{where}: category_id {category} is not among the categories")
        rows.append(row[image])
        columns.append(column[category])
    given = torch.zeros(len(row), len(column), dtype=torch.int8)
    given[rows, columns] = 1
    return categories, list(images.values()), given


def _content(file: Path) -> dict[str, Any]:
    try:
        content = from_json(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: not JSON ({error}); unpack it again") from error
    if not isinstance(content, dict):
        raise InputError(f"{file}: not COCO's JSON, which holds images, annotations, categories")
    return content


def _by_id(file: Path, content: dict[str, Any], key: str, field: str) -> dict[int, str]:
    """Read one field of each entry of a list, by the entry's id."""
    values: dict[int, str] = {}
    for where, number, value in _entries(file, content, key, "id", field):
        if number in values:
            raise InputError(f"{where}: id {number} is used twice; give each entry its own id")
        values[number] = value
    return values


def _entries(
    file: Path, content: dict[str, Any], key: str, first: str, second: str
) -> Iterator[tuple[str, int, Any]]:
    """Read two fields of each entry of a list, the first a number, and the entry's place."""
    entries = content.get(key)
    if not isinstance(entries, list):
        keys = ", ".join(map(repr, content)) or "nothing"
        raise InputError(f"{file}: no list {key!r}, only {keys}; is it an `instances` file?")
    kinds = {first: int, second: str if second.endswith("name") else int}
    for i, entry in enumerate(entries):
        for field, kind in kinds.items():
            if not isinstance(entry, dict) or not isinstance(entry.get(field), kind):
                word = "number" if kind is int else "text"
                raise InputError(f"{file}: {key}[{i}] has no {field!r}, or not as a {word}")
        yield f"{file}: {key}[{i}]", entry[first], entry[second]
