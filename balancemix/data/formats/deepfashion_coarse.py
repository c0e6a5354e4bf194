"""DeepFashion, attribute benchmark, coarse annotations: 1,000 attributes in `Anno_coarse`.

`list_attr_img.txt` has the count, a header, then an image and a 1 (present), −1 (absent) or 0
(unknown) for each attribute; `list_attr_cloth.txt` names the attributes, and
`Eval/list_eval_partition.txt` has the split of each image. Images that are not there are left out:
the set has 289,222, and many people have some of them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from balancemix.data.formats.deepfashion import coarse_of, find_image, read_names
from balancemix.data.source import ReadOptions, Source, present, read_lines
from balancemix.data.splits import check_split
from balancemix.errors import InputError

VALUES = {"1": 1, "-1": 0, "0": -1}
WHOLE = "unpack all of Anno_coarse and Eval"


def recognise(path: Path) -> str | None:
    """Say whether a folder holds the coarse annotations of DeepFashion.

    >>> recognise(Path("nowhere"))
    """
    folder = coarse_of(path)
    return None if folder is None else f"it holds {folder.name}/list_attr_img.txt"


def read(path: Path, options: ReadOptions) -> Source:
    """Read the labels of all images that are there, in all splits."""
    folder = coarse_of(path) or path / "Anno_coarse"
    classes = read_names(folder / "list_attr_cloth.txt")
    splits = _read_splits(path / "Eval" / "list_eval_partition.txt")
    file = folder / "list_attr_img.txt"
    lines = read_lines(file, WHOLE)[2:]
    names, given = [], np.empty((len(lines), len(classes)), np.int8)
    for line, text in enumerate(lines, start=3):
        name, *cells = text.split() or [""]
        if len(cells) != len(classes):
            raise InputError(
                f"{file} line {line}: has {len(cells)} values, {len(classes)} are named"
            )
        try:
            given[line - 3] = [VALUES[cell] for cell in cells]
        except KeyError as error:
            raise InputError(f"{file} line {line}: {error.args[0]!r} is not 1, 0 or -1") from None
        if name not in splits:
            raise InputError(f"{file} line {line}: {name!r} has no split; {WHOLE}")
        names.append(name)
    images = [find_image(path, name) for name in names]
    parts = [
        (splits[name], [image], torch.from_numpy(given[i : i + 1]))
        for i, (name, image) in enumerate(zip(names, images, strict=True))
    ]
    source = Source.of_parts(path, classes, parts)
    notes = [
        f"{path} is DeepFashion's coarse annotations: it holds {folder.name}/list_attr_img.txt "
        "(--format)",
        "0 is unknown and -1 is absent",
    ]
    if not options.labels_only:
        here = [i for i, exists in enumerate(present(images)) if exists]
        if not here:
            raise InputError(f"{path}: has none of its {len(source):,} images; unpack them to Img")
        if len(here) < len(source):
            notes.append(
                f"{len(here):,} of {len(source):,} images are there; the others are left out"
            )
            source = source.subset(here)
    return replace(source, recognised=notes)


def _read_splits(file: Path) -> dict[str, str]:
    """Read the split of each image."""
    splits = {}
    for line, text in enumerate(read_lines(file, WHOLE)[2:], start=3):
        cells = text.split()
        if len(cells) != 2:
            raise InputError(f"{file} line {line}: {text!r} is not an image and its split")
        check_split(f"{file} line {line}", cells[1])
        splits[cells[0]] = cells[1]
    return splits
