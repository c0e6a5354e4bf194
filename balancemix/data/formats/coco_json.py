"""COCO's JSON of annotations: its images and categories by their ids, and which go together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from balancemix.data.small_table import read_small_table
from balancemix.errors import InputError
from balancemix.files import from_json

ADDED = ("image", "class")


def pairs_of(
    file: Path, content: dict[str, Any], images: dict[int, str], categories: dict[int, str]
) -> set[tuple[int, int]]:
    """Read the ids of image and category of all annotations."""
    pairs = set()
    for where, image, category in _entries(file, content, "annotations", "image_id", "category_id"):
        if image not in images:
            raise InputError(f"{where}: image_id {image} is not among the images")
        if category not in categories:
            raise InputError(f"{where}: category_id {category} is not among the categories")
        pairs.add((image, category))
    return pairs


def added_to(
    file: Path, images: dict[int, str], categories: dict[int, str]
) -> Iterator[tuple[int, int]]:
    """Read the labels without a box from the file beside, if there is one: ids of both."""
    place = file.with_suffix(".added.csv")
    if not place.is_file():
        return
    ids = [{name: i for i, name in names.items()} for names in (images, categories)]
    for where, cells in read_small_table(place, ADDED):
        for what, name, known in zip(ADDED, cells, ids, strict=True):
            if name not in known:
                raise InputError(f"{where}: {what} {name!r} is not in {file.name}")
        yield ids[0][cells[0]], ids[1][cells[1]]


def content_of(file: Path) -> dict[str, Any]:
    """Read the object that a file holds."""
    try:
        content = from_json(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: not JSON ({error}); unpack it again") from error
    if not isinstance(content, dict):
        raise InputError(f"{file}: not COCO's JSON, which holds images, annotations, categories")
    return content


def by_id(file: Path, content: dict[str, Any], key: str, field: str) -> dict[int, str]:
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
        raise InputError(
            f"{file}: no list {key!r}, only {keys}; is it an `instances` file? (A table in JSON is "
            "a list of objects)"
        )
    kinds = {first: int, second: str if second.endswith("name") else int}
    for i, entry in enumerate(entries):
        for field, kind in kinds.items():
            # By its very type: to Python, true is the number 1.
            if not isinstance(entry, dict) or type(entry.get(field)) is not kind:
                word = "number" if kind is int else "text"
                raise InputError(f"{file}: {key}[{i}] has no {field!r}, or not as a {word}")
        yield f"{file}: {key}[{i}]", entry[first], entry[second]
