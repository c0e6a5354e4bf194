"""COCO: `annotations/instances_{train,val}{2014,2017}.json` beside folders of images, or one file.

A class is present if the image has any annotation of its category, crowds included. Classes are in
the order of the train file. The train split trains, the val split is scored; a file by itself has
no splits. Labels without a box are in `instances_train2014.added.csv` beside
`instances_train2014.json`: image,class.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from balancemix.data.formats.coco_json import ADDED, added_to, by_id, content_of, pairs_of
from balancemix.data.source import ReadOptions, Source, is_object
from balancemix.data.splits import check_classes
from balancemix.errors import InputError, suggest
from balancemix.files import write_bytes, write_sheet

ENDING = ".json"  # of what `write` writes
YEARS = ("2017", "2014")
PARTS = ("train", "val")
UNANNOTATED = ("drop", "keep")


@dataclass(frozen=True)
class Part:
    """A file of annotations, its split, and the folder of its images.

    Images are named by their path from `root`.
    """

    split: str
    file: Path
    folder: Path
    root: Path

    @property
    def title(self) -> str:
        """What COCO calls the part, such as train2014."""
        return self.file.stem.removeprefix("instances_")

    def name(self, file_name: str) -> str:
        """Name an image as `Source.of_parts` does."""
        path = self.folder / file_name
        below = path.is_relative_to(self.root)
        return path.relative_to(self.root).as_posix() if below else file_name


@dataclass(frozen=True)
class Alone:
    """Where the labels of a file by itself were read from: the folder of its images."""

    folder: Path


def recognise(path: Path) -> str | None:
    """Say whether a path is a file of COCO's annotations, or a folder that holds them.

    >>> recognise(Path("nowhere"))
    """
    if path.suffix.lower() == ENDING and is_object(path):
        return "it is an object in JSON"
    files = (_file(path, part, year) for part in PARTS for year in YEARS)
    return next((f"it holds annotations/{file.name}" for file in files if file.is_file()), None)


def read(path: Path, options: ReadOptions) -> Source:
    """Read the labels of both splits, or of one file.

    Images without any annotation are dropped, as by most who publish on COCO (82,081 and 40,137
    rows are left of 2014), or kept, as by Query2Label, which makes another test set.
    """
    unannotated = options.unannotated
    if unannotated not in UNANNOTATED:
        raise InputError(f"unannotated: {unannotated!r}; {suggest(unannotated, UNANNOTATED)}")
    read_, left = [], 0
    categories: dict[int, str] = {}
    found = _parts(path, options.images)
    for part in found:
        known, names, given = _read_part(part.file)
        categories = categories or known
        if known != categories:
            raise InputError(f"{part.file}: its categories are not those of {found[0].title}")
        order = list(known)
        given = given[:, [order.index(number) for number in categories]]
        kept = (given.sum(1) > 0) | (unannotated == "keep")
        if not kept.any():
            raise InputError(f"{part.file}: no image has an annotation")
        left += int((~kept).sum())
        images = [part.folder / names[i] for i in kept.nonzero().flatten().tolist()]
        read_.append((part.split, images, given[kept]))
    source = Source.of_parts(found[0].root, list(categories.values()), read_)
    notes = [f"{path} is read as coco: {recognise(path) or '--format says so'} (--format)"]
    if left:
        notes.append(f"{left:,} images without an annotation are left out (data.unannotated)")
    if not path.is_dir():
        folder = found[0].folder
        notes.insert(1, f"its images are in {folder} (--images)")
        source = replace(source, path=path, split=None, origin=Alone(folder))
    return replace(source, recognised=notes)


def write(source: Source, given: Tensor, out: Path) -> list[str]:
    """Write the train file with other labels, and the val file beside it if any of its changed.

    The annotations of a label that is removed are left out. A label that is added has no box; it
    goes to a CSV beside the file.
    """
    if recognise(source.path) is None:
        raise InputError(f"{out}: only data of COCO is written as COCO's JSON; write a .csv")
    if bool((given < 0).any()):
        raise InputError(f"{out}: COCO's JSON cannot say that a label is unknown; write a .csv")
    notes = list[str]()
    images = source.origin.folder if isinstance(source.origin, Alone) else None
    for part in _parts(source.path, images):
        rows = source.rows_in(part.split) if part.split else list(range(len(source)))
        if part.split != "val" or not torch.equal(given[rows], source.given[rows]):
            target = out if part.split != "val" else beside(out)[1]
            notes += _write_part(source, given, rows, part, target)
    return notes


def beside(out: Path) -> list[Path]:
    """List the files that `write` may write beside one: labels without a box, and the val file."""
    val = out.with_suffix(".val.json")
    return [out.with_suffix(".added.csv"), val, val.with_suffix(".added.csv")]


def _write_part(source: Source, given: Tensor, rows: list[int], part: Part, out: Path) -> list[str]:
    file = part.file
    content = content_of(file)
    categories = by_id(file, content, "categories", "name")
    images = by_id(file, content, "images", "file_name")
    number = {part.name(name): i for i, name in images.items()}
    labels = pairs_of(file, content, images, categories)
    labelled = labels | set(added_to(file, images, categories))
    before, after = (
        {(number.get(source.names[i], -1), source.classes[k]) for i in rows for k in _present(m[i])}
        for m in (source.given, given)
    )
    known = {number.get(source.names[i]) for i in rows}
    if before != {(i, categories[k]) for i, k in labelled if i in known} or None in known:
        raise InputError(f"{file}: has changed since it was read; run the command again")
    dropped = {(i, k) for i, k in labels if i in known and (i, categories[k]) not in after}
    boxed = {(i, categories[k]) for i, k in labels}
    # Of images that were not read, a label without a box stays where it was.
    kept = {(i, categories[k]) for i, k in labelled - labels if i not in known}
    added = sorted((after - boxed) | kept)
    if dropped:
        entries = content["annotations"]
        pairs = [(entry["image_id"], entry["category_id"]) for entry in entries]
        content["annotations"] = [
            e for e, p in zip(entries, pairs, strict=True) if p not in dropped
        ]
        write_bytes(out, json.dumps(content).encode())
    else:
        write_bytes(out, file.read_bytes())
    is_val = part.split == "val"
    notes = [f"{out}: the labels of {file.name}, which changed too"] if is_val else []
    place = out.with_suffix(".added.csv")
    if added or place.exists():
        write_sheet(place, ADDED, [(images[i], name) for i, name in added])
    if added:
        notes.append(f"{place}: {len(added):,} labels without a box, which {out.name} cannot hold")
    return notes


def _present(labels: Tensor) -> list[int]:
    return [int(k) for k in (labels == 1).nonzero().flatten().tolist()]


def _parts(path: Path, images: Path | None) -> list[Part]:
    """List the files of annotations; `images` is the folder of the images of a single one."""
    if path.is_dir():
        year = _year(path)
        return [
            Part(part, _file(path, part, year), _images(path, f"{part}{year}"), path)
            for part in PARTS
        ]
    if images is not None and not images.is_dir():
        raise InputError(f"--images {images}: is not a folder; name that of the images")
    folder = images or images_of(path)
    return [Part("", path, folder, folder)]


def images_of(file: Path) -> Path:
    """Find the images of a file by itself: as COCO has them, or else beside it."""
    if file.parent.name == "annotations":
        folder = _images(file.parent.parent, file.stem.removeprefix("instances_"))
        if folder.is_dir():
            return folder
    return file.parent


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
    content = content_of(file)
    categories = by_id(file, content, "categories", "name")
    check_classes(str(file), list(categories.values()))
    images = by_id(file, content, "images", "file_name")
    row = {number: i for i, number in enumerate(images)}
    column = {number: k for k, number in enumerate(categories)}
    labels = pairs_of(file, content, images, categories) | set(added_to(file, images, categories))
    given = torch.zeros(len(row), len(column), dtype=torch.int8)
    given[[row[i] for i, _ in labels], [column[k] for _, k in labels]] = 1
    return categories, list(images.values()), given
