"""A second reader of each label format, slow and literal, written from docs/data.md.

Each returns {"classes": set of names, "rows": {name: (split, present, unknown, input)}}, raises
RefusedError where the documents leave no doubt that the file is wrong, and UnsureError where they
say nothing. What they read must be read, too.
"""

import json
import os
from pathlib import Path
from typing import Any

from tests.torture.outcome import RefusedError

SPLITS = {"train", "test", "val", "valid"}
Answer = dict[str, Any]


def text_of(file: Path) -> str:
    """Read UTF-8, with or without a mark at its beginning."""
    try:
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError("not UTF-8") from None
    except FileNotFoundError:
        raise RefusedError("missing") from None
    return text[1:] if text.startswith("\ufeff") else text


def check_classes(classes: list[str]) -> None:
    """Two classes at least, each once, of text that a file can hold."""
    if len(classes) < 2 or len(set(classes)) < len(classes):
        raise RefusedError("fewer than two classes, or one twice")
    if any(not is_text(name) for name in classes):
        raise RefusedError("a class with a NUL, or not UTF-8")


def is_text(name: str, surrogates: str = "") -> bool:
    """Whether UTF-8 can hold a name, without a NUL."""
    return not any(c == "\0" or ("\ud800" <= c <= "\udfff" and c not in surrogates) for c in name)


def is_file(path: Path) -> bool:
    """Whether a path is a file, also of a name that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _place(folder: Path, path: Path, places: set[str]) -> str:
    """Name an image by its place below the folder; each is there, and named once."""
    place = os.path.relpath(path, folder)
    if not is_file(path):
        raise RefusedError("no such image")
    if place.startswith(".."):
        raise RefusedError("an image of another folder")
    if place in places:
        raise RefusedError("an image twice")
    places.add(place)
    return path.relative_to(folder).as_posix()


def read_coco(folder: Path) -> Answer:
    """Read both JSON files; a class is present if an annotation of the image says so."""
    rows: dict[str, Any] = {}
    places: set[str] = set()
    seen: list[dict[int, str]] = []
    for part in ("train", "val"):
        seen.append(_coco_part(folder, part, folder, places, rows))
    if seen[0] != seen[1]:
        raise RefusedError("categories of val are not those of train")
    return {"classes": frozenset(seen[0].values()), "rows": rows}


def read_coco_file(folder: Path) -> Answer:
    """Read the train file by itself, which has no splits, and names images by their file."""
    rows: dict[str, Any] = {}
    categories = _coco_part(folder, "train", folder / "train2017", set(), rows)
    rows = {name: (None, *row[1:]) for name, row in rows.items()}
    return {"classes": frozenset(categories.values()), "rows": rows}


def _coco_part(
    folder: Path, part: str, root: Path, places: set[str], rows: dict[str, Any]
) -> dict[int, str]:
    content = json_of(folder / "annotations" / f"instances_{part}2017.json")
    categories = _by_id(content, "categories", "name")
    check_classes(list(categories.values()))
    images = _by_id(content, "images", "file_name")
    present: dict[int, set[str]] = {number: set() for number in images}
    for entry in _list(content, "annotations"):
        image, category = _number(entry, "image_id"), _number(entry, "category_id")
        if image not in images or category not in categories:
            raise RefusedError("an annotation of nothing")
        present[image].add(categories[category])
    for number, name in images.items():
        if not present[number]:
            continue  # dropped by default
        path = folder / f"{part}2017" / name
        key = _place(root, path, places)
        rows[key] = (part, frozenset(present[number]), frozenset(), str(path))
    if not any(row[0] == part for row in rows.values()):
        raise RefusedError("no image of a split has an annotation")
    return categories


def json_of(file: Path) -> dict[str, Any]:
    """Read an object of JSON in which no key is given twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise RefusedError("a key twice")
        return dict(pairs)

    try:
        content = json.loads(file.read_bytes(), object_pairs_hook=once)
    except (ValueError, RecursionError):
        raise RefusedError("not JSON") from None
    except FileNotFoundError:
        raise RefusedError("missing") from None
    if not isinstance(content, dict):
        raise RefusedError("not an object")
    return content


def _list(content: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = content.get(key)
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise RefusedError(f"no list {key}")
    return found


def _number(entry: dict[str, Any], key: str) -> int:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise RefusedError(f"{key} is not a number")
    return value


def _by_id(content: dict[str, Any], key: str, field: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for entry in _list(content, key):
        number, name = _number(entry, "id"), entry.get(field)
        if not isinstance(name, str) or number in found:
            raise RefusedError(f"{field} is not text, or an id twice")
        found[number] = name
    return found


def read_voc(folder: Path) -> Answer:
    """Read CLASS_trainval.txt and CLASS_test.txt of 2007: 1 present, 0 difficult, -1 absent."""
    main = folder / "VOC2007" / "ImageSets" / "Main"
    classes = sorted(
        {
            file.name.rpartition("_")[0]
            for images in ("trainval", "test")
            for file in main.iterdir()
            if file.name.endswith(f"_{images}.txt")
        }
    )
    check_classes(classes)
    rows: dict[str, Any] = {}
    places: set[str] = set()
    for split, images in (("train", "trainval"), ("test", "test")):
        columns = {name: _marks(main / f"{name}_{images}.txt") for name in classes}
        first = columns[classes[0]]
        for name in classes:
            if [image for image, _ in columns[name]] != [image for image, _ in first]:
                raise RefusedError("files of two classes list other images")
        for i, (image, _) in enumerate(first):
            path = folder / "VOC2007" / "JPEGImages" / f"{image}.jpg"
            key = _place(folder, path, places)
            marks = {name: columns[name][i][1] for name in classes}
            present = frozenset(name for name, mark in marks.items() if mark == "1")
            unknown = frozenset(n for n, mark in marks.items() if mark == "0" and split == "test")
            rows[key] = (split, present, unknown, str(path))
    return {"classes": frozenset(classes), "rows": rows}


def _lines(file: Path) -> list[str]:
    lines = text_of(file).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    while lines and not lines[-1].strip():
        del lines[-1]
    return lines


def _marks(file: Path) -> list[tuple[str, str]]:
    found = []
    for line in _lines(file):
        words = line.split()
        if len(words) != 2 or words[1] not in ("1", "0", "-1"):
            raise RefusedError("not an image and 1, 0 or -1")
        found.append((words[0], words[1]))
    if not found:
        raise RefusedError("no rows")
    return found


def read_deepfashion(folder: Path) -> Answer:
    """Read the fine annotations: names of images, 0s and 1s on the same lines, names of columns."""
    home = folder / "Anno_fine"
    count, _, *lines = [*_lines(home / "list_attr_cloth.txt"), "", ""]
    lines = lines[:-2] if len(lines) >= 2 else []
    classes = []
    for line in lines:
        words = line.split()
        if len(words) < 2 or not (words[-1].isascii() and words[-1].isdigit()):
            raise RefusedError("not a name and a number")
        classes.append(line.rstrip()[: -len(words[-1])].rstrip())
    classes = [name.strip() for name in classes]
    if count.strip() != str(len(classes)):
        raise RefusedError("the count is wrong")
    check_classes(classes)
    rows: dict[str, Any] = {}
    places: set[str] = set()
    for part, split in (("train", "train"), ("val", "train"), ("test", "test")):
        names = [line.strip() for line in _lines(home / f"{part}.txt")]
        values = [line.split() for line in _lines(home / f"{part}_attr.txt")]
        if len(names) != len(values) or not names:
            raise RefusedError("files of other lengths")
        for name, marks in zip(names, values, strict=True):
            if len(marks) != len(classes) or set(marks) - {"0", "1"}:
                raise RefusedError("not a 0 or 1 for each class")
            if not name:
                raise RefusedError("no name of an image")
            key = _place(folder, folder / name, places)
            present = frozenset(c for c, mark in zip(classes, marks, strict=True) if mark == "1")
            rows[key] = (split, present, frozenset(), str(folder / name))
    return {"classes": frozenset(classes), "rows": rows}
