"""Data by name: built-in digits, a folder of images or a published set, a file of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from balancemix.data.features import FeatureRows
from balancemix.data.formats import builtin, find_format, npz
from balancemix.data.formats import images as image_folder
from balancemix.data.images import ImageRows
from balancemix.data.rows import Batch, Rows, as_is
from balancemix.data.source import ReadOptions, Source, View, without_missing
from balancemix.data.splits import Splits, hold_out, split
from balancemix.errors import InputError

__all__ = [
    "BUILT_IN",
    "Batch",
    "FeatureRows",
    "ImageRows",
    "ReadOptions",
    "Rows",
    "Source",
    "Splits",
    "View",
    "as_is",
    "load",
    "load_unlabelled",
    "read",
    "read_images",
    "rows_of",
]

BUILT_IN = builtin.NAMES


def load(data: str | Path, view: View = View(), options: ReadOptions = ReadOptions()) -> Splits:
    """Load `digits`, `digits:pixels`, a folder with labels.csv, COCO, VOC or DeepFashion, an .npz.

    `view` says how rows are shown, `options` how the files are read.
    """
    source = read(data, options)
    where = str(source.path)
    rows = rows_of(source, view)
    if isinstance(rows, ImageRows):
        rows = rows.cached(options.cache)  # before they are split: all splits share one store
    names = source.split or hold_out(where, len(source), options.holdout, options.seed)
    return replace(split(where, rows, names), source=replace(source, split=names))


def read(data: str | Path, options: ReadOptions = ReadOptions()) -> Source:
    """Read what a data set says, by the first format that recognises it."""
    path = _path(data)
    return without_missing(find_format(path).read(path, options), options.skip_bad)


def rows_of(source: Source, view: View = View()) -> Rows:
    """Make rows of what a data set says, in its order."""
    labelled = source.known, source.classes, source.names, source.truth, view
    if source.features is not None:
        return FeatureRows(source.features, *labelled, stored=source.stored, pictures=source.images)
    if not isinstance(source.images, list):
        raise InputError(f"{source.path}: has neither features nor image files")
    return ImageRows(source.images, *labelled)


def read_images(
    path: Path, view: View = View(), options: ReadOptions = ReadOptions()
) -> tuple[ImageRows, list[str] | None]:
    """Read all images of a folder in its own order, and the split of each, if any is named."""
    if not path.is_dir():
        raise InputError(f"{path}: is no folder; one of images with labels.csv is needed")
    source = read(path, options)
    rows = rows_of(source, view)
    if not isinstance(rows, ImageRows):
        raise InputError(f"{path}: holds features; a folder of images is needed")
    return rows, source.split


def load_unlabelled(
    data: str | Path,
    classes: Sequence[str],
    view: View = View(),
    options: ReadOptions = ReadOptions(),
) -> Rows:
    """Load every image below a folder, or the features of an .npz; the labels are left blank.

    The features of digits depend on the seed they were made with: give the run's own.
    """
    path = _path(data)
    if builtin.recognise(path):
        source = builtin.read(path, options)
        source = source.subset(source.rows_in("test"))
    elif path.is_dir():
        source = image_folder.read(path, options)
    elif npz.recognise(path) and path.exists():
        source = npz.read_features(path)
    else:
        kinds = "neither a folder of images nor an .npz with features"
        raise InputError(f"data {str(data)!r} is {kinds}")
    blank = torch.zeros(len(source), len(classes), dtype=torch.int8)
    return rows_of(replace(source, classes=list(classes), given=blank), view)


def _path(data: str | Path) -> Path:
    path = Path(data).expanduser()
    # `./digits` is a folder, though as a path it is named like the built-in data.
    return path.absolute() if str(path) in BUILT_IN and str(data) not in BUILT_IN else path
