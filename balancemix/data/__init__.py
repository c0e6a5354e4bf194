"""Files in, rows out: labels as the files give them, and inputs by row number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from balancemix.data.decisions import decide
from balancemix.data.features import FeatureRows
from balancemix.data.formats import builtin, find_format, is_label_file, npz, table, why
from balancemix.data.formats import images as image_folder
from balancemix.data.images import ImageRows
from balancemix.data.rows import Batch, Rows, as_is
from balancemix.data.source import ReadOptions, Source, View, without_missing
from balancemix.data.splits import Splits, hold_out, split
from balancemix.data.tables.frame import Frame, is_frame
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
    "load_inputs",
    "read",
    "read_images",
    "rows_of",
]

BUILT_IN = builtin.NAMES


def load(
    data: str | Path | Frame, view: View = View(), options: ReadOptions = ReadOptions()
) -> Splits:
    """Load a folder of images with labels.csv, COCO, VOC or DeepFashion, a table, .npz or `digits`.

    `view` says how rows are shown to a model, `options` how the files are read. A folder is one
    call, `load("photos/").train`. A pandas frame is read like a table, with the folder of the
    images in `options.images`.

    >>> digits = load("digits", View(dropout=0.2))
    >>> len(digits.train), len(digits.test), digits.classes[:3]
    (4000, 1000, ['0', '1', '2'])
    """
    source = read(data, options)
    where = str(source.path)
    rows = rows_of(source, view)
    if isinstance(rows, ImageRows):
        rows = rows.cached(options.cache)  # before the split, so that all splits share one store
    names = source.split
    if names is None:
        names = hold_out(where, len(source), options.holdout, options.seed, rows.groups)
    return replace(split(where, rows, names), source=replace(source, split=names))


def read(data: str | Path | Frame, options: ReadOptions = ReadOptions()) -> Source:
    """Read the files of a data set, by the first format that recognises it; or a frame."""
    if is_frame(data):
        return table.read_frame(data, options)
    assert isinstance(data, str | Path)
    path = _path(data)
    form = find_format(path, options.format)
    source = form.read(path, options)
    if not source.recognised:
        source = replace(source, recognised=[why(path, form)])
    if not options.labels_only:
        source = without_missing(source, options.skip_bad)
    return decide(source) if options.verified and not builtin.recognise(path) else source


def rows_of(source: Source, view: View = View()) -> Rows:
    """Make rows of a source, in its order."""
    labels = source.given, source.classes, source.names, source.truth
    rows: Rows
    if source.features is not None:
        stored, pictures = source.stored, source.images
        rows = FeatureRows(source.features, *labels, view, stored=stored, pictures=pictures)
    elif isinstance(source.images, list):
        folder = getattr(source.origin, "folder", source.path)  # of a file by itself
        rows = ImageRows(source.images, *labels, view, folder=folder)
    else:
        raise InputError(f"{source.path}: has neither features nor image files")
    rows = rows.with_verified(source.verified, source.before)
    return rows.with_groups(source.group_numbers)


def read_images(
    path: Path, view: View = View(), options: ReadOptions = ReadOptions()
) -> tuple[ImageRows, list[str] | None]:
    """Read all images of a folder in its order, and the split of each if the files name any."""
    if not path.is_dir() and not is_label_file(path):
        raise InputError(f"{path}: is not a folder; name a folder of images with labels.csv")
    source = read(path, options)
    rows = rows_of(source, view)
    if not isinstance(rows, ImageRows):
        raise InputError(f"{path}: holds features; name a folder of images")
    return rows, source.split


def load_inputs(
    data: str | Path,
    classes: Sequence[str],
    view: View = View(),
    options: ReadOptions = ReadOptions(),
) -> Rows:
    """Load every image below a folder or of a table, or the features of an .npz, without labels.

    `given` is all 0. The features of `digits` depend on `options.seed`: pass that of the run.
    """
    path = _path(data)
    if builtin.recognise(path):
        source = builtin.read(path, options)
        source = source.subset(source.rows_in("test"))
    elif path.is_dir():
        source = image_folder.read(path, options)
    elif is_label_file(path) and path.exists():
        every = replace(options, unannotated="keep")
        source = find_format(path, options.format).read(path, every)
        source = replace(without_missing(source, options.skip_bad), truth=None, verified=None)
    elif npz.recognise(path) and path.exists():
        source = npz.read_features(path)
    else:
        raise InputError(
            f"data {str(data)!r} is neither a folder of images, nor a table of them, nor an .npz "
            "with features"
        )
    blank = torch.zeros(len(source), len(classes), dtype=torch.int8)
    return rows_of(replace(source, classes=list(classes), given=blank), view)


def _path(data: str | Path) -> Path:
    path = Path(data).expanduser()
    # `./digits` is a folder, although its path is the name of built-in data.
    return path.absolute() if str(path) in BUILT_IN and str(data) not in BUILT_IN else path
