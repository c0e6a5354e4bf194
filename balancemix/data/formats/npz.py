"""An `.npz` file: features N×D or maps N×D×H×W and labels N×K.

Optional: classes, split, group (names or whole numbers), images (names), root (their folder,
relative to the file or absolute), truth, verified, minus_one, and views N×V×D… of augmented images.
What numbers labels may hold is in `npz_labels`. Large arrays are mapped, not read.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from balancemix.data import images
from balancemix.data.formats.mapped import map_array, write_stored
from balancemix.data.formats.npz_labels import (
    changed_arrays,
    label_arrays,
    meaning_of_minus_one,
    read_labels,
    read_verified,
    recognised_labels,
    text_of,
)
from balancemix.data.source import ReadOptions, Source, check_text
from balancemix.data.splits import check_classes, check_split
from balancemix.errors import InputError, listing

Array = npt.NDArray[Any]
ENDING = ".npz"  # of what `write` writes
NAMES = (
    "features", "labels", "classes", "split", "group", "images", "root", "truth", "verified",
    "minus_one", "views",
)  # fmt: skip
BLOCK = 1024  # rows checked at once


def recognise(path: Path) -> str | None:
    """Say whether a path is the name of an .npz, which need not exist.

    >>> recognise(Path("photos.npz"))
    'it ends in .npz'
    """
    return "it ends in .npz" if path.suffix == ".npz" else None


def read(path: Path, options: ReadOptions) -> Source:
    """Read features and labels, and the split of each row if there are any.

    `images` name the rows; files of these names in the folder `root`, or beside the .npz, are the
    rows' pictures. Messages count rows from 0.
    """
    arrays = read_arrays(path)
    for name in ("features", "labels"):
        if name not in arrays:
            known = ", ".join(arrays) or "unknown ones"
            raise InputError(f"{path}: no array {name!r}, only {known}; save it under that name")
    features = _features(path, arrays["features"])
    labels = arrays["labels"]
    if labels.ndim != 2 or len(labels) != len(features):
        raise InputError(
            f"{path}: labels are {_shape(labels)}, features {_shape(features)}; "
            "both need one entry for each row"
        )
    count, width = labels.shape
    classes = _strings(path, "classes", arrays, width) or [f"class {k}" for k in range(width)]
    check_classes(str(path), classes)
    names = _names(path, arrays, count)
    repeated = [repr(name) for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InputError(f"{path}: images repeated: {listing(repeated)}; keep one row of each")
    split = _strings(path, "split", arrays, count)
    for i, name in enumerate(split or ()):
        check_split(f"{path} row {i}", name)
    groups = _strings(path, "group", arrays, count)
    minus_one = meaning_of_minus_one(path, arrays, options.minus_one)
    truth, verified = arrays.get("truth"), arrays.get("verified")
    if truth is not None and truth.shape != labels.shape:
        raise InputError(f"{path}: truth is {_shape(truth)}, labels are {_shape(labels)}")
    if options.images is not None and not os.path.isdir(options.images):
        raise InputError(f"--images {options.images}: is not a folder; name that of the images")
    folder = options.images or _picture_folder(path, arrays)
    return Source(
        path=path,
        classes=classes,
        names=_row_names(count) if names is None else names,
        given=read_labels(path, "labels", labels, classes, minus_one),
        split=split,
        groups=groups,
        truth=None if truth is None else read_labels(path, "truth", truth, classes, "unknown"),
        verified=None if verified is None else read_verified(path, verified, labels.shape, classes),
        images=None if names is None else images.find_all(folder, names),
        features=torch.from_numpy(features),
        stored=_views(path, arrays, features),
        origin=path,
        recognised=recognised_labels(path, arrays, minus_one),
    )


def write(source: Source, given: Tensor, out: Path) -> None:
    """Write the .npz with other labels; other arrays stay as they are.

    A source that was not read from an .npz makes a new file, with its split.
    """
    if source.features is None:
        raise InputError(
            f"{out}: an .npz holds features, but {source.path} has images; write a .csv, or "
            "make features of them with `balancemix embed`"
        )
    if isinstance(source.origin, Path):
        arrays = read_arrays(source.origin, None)
        arrays |= changed_arrays(source, given, arrays)
        root = _root(source.path, arrays)
        if root is not None and not os.path.isabs(text_of(arrays["root"]) or ""):
            arrays["root"] = np.array(root_for(out, root))
    else:
        arrays = _new_arrays(source, given)
    if source.facts:
        arrays["facts"] = np.array(json.dumps(source.facts))
    write_stored(out, arrays)


def _new_arrays(source: Source, given: Tensor) -> dict[str, Array]:
    """Return the arrays of a source that was not read from an .npz."""
    assert source.features is not None
    arrays: dict[str, Array] = {"features": source.features.numpy()}
    if source.stored is not None:
        arrays["views"] = source.stored.numpy()
    arrays |= {"classes": np.array(source.classes), "images": np.array(source.names)}
    if source.groups is not None:
        arrays["group"] = np.array(source.groups)
    arrays |= label_arrays(given, source.truth, source.verified)
    if source.split is not None:
        arrays["split"] = np.array(source.split)
    return arrays


def root_for(out: Path, folder: Path) -> str:
    """Name a folder as the file `out` stores it: relative to `out`, or absolute on another disk.

    >>> root_for(Path("data/photos.npz"), Path("photos"))
    '../photos'
    """
    whole = os.path.realpath(folder)
    with suppress(ValueError):  # Windows has no path from one disk to another
        whole = os.path.relpath(whole, os.path.realpath(out.parent))
    return whole.replace(os.sep, "/")


def _root(file: Path, arrays: dict[str, Array]) -> Path | None:
    """Find the folder that `root` names; None if it is not a single name."""
    name = text_of(arrays["root"]) if "root" in arrays else None
    return None if name is None or "\0" in name else Path(os.path.realpath(file.parent), name)


def picture_folder(file: Path) -> Path | None:
    """Find the folder of the pictures: as stored if it is there, else the file's.

    None if the file cannot be read.
    """
    try:
        return _picture_folder(file, read_arrays(file, ("root",)))
    except InputError:
        return None


def _picture_folder(file: Path, arrays: dict[str, Array]) -> Path:
    root = _root(file, arrays)
    return root if root is not None and os.path.isdir(root) else file.parent


def read_features(path: Path) -> Source:
    """Read features, and the names of the rows if there are any; labels are not needed."""
    arrays = read_arrays(path)
    if "features" not in arrays:
        raise InputError(f"{path}: no array 'features', only {', '.join(arrays) or 'unknown ones'}")
    features = _features(path, arrays["features"])
    count = len(features)
    return Source(
        path=path,
        classes=[],
        names=_names(path, arrays, count) or _row_names(count),
        given=torch.empty(count, 0, dtype=torch.int8),
        features=torch.from_numpy(features),
    )


def _row_names(count: int) -> list[str]:
    return [f"row {i}" for i in range(count)]


def read_arrays(file: Path, names: Sequence[str] | None = NAMES) -> dict[str, Array]:
    """Read the arrays of these names, or all, of an .npz; nothing is unpickled."""
    try:
        # Opened here, since NumPy does not close a file that turns out to be broken.
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            if len(set(archive.zip.namelist())) < len(archive.zip.namelist()):
                raise ValueError("it holds an array twice")
            known = list(archive) if names is None else names
            return {name: _array(file, archive, name) for name in known if name in archive}
    except FileNotFoundError as error:
        raise InputError(f"{file}: no such file") from error
    except Exception as error:  # zip, zlib and NumPy's header parser raise different ones
        raise InputError(
            f"{file}: cannot be read ({' '.join(str(error).split())}); write it with np.savez, "
            "names as plain string arrays (dtype=str)"
        ) from error


def _array(file: Path, archive: Any, name: str) -> Array:
    mapped = map_array(file, archive.zip, name) if name in ("features", "views") else None
    array: Array = archive[name] if mapped is None else mapped
    if not isinstance(array, np.ndarray):  # NumPy returns the bytes of any other member
        raise TypeError(f"{name} is not an array")
    return array


def _features(file: Path, features: Array) -> Array:
    if features.ndim not in (2, 4) or 0 in features.shape:
        raise InputError(
            f"{file}: features are {_shape(features)}; they must be N×D, or maps N×D×H×W"
        )
    return _numbers(file, "features", features)


def _views(file: Path, arrays: dict[str, Array], features: Array) -> Tensor | None:
    if "views" not in arrays:
        return None
    views = arrays["views"]
    count, *width = features.shape
    if views.ndim != features.ndim + 1 or [len(views), *views.shape[2:]] != [count, *width]:
        raise InputError(
            f"{file}: views are {_shape(views)}, features {_shape(features)}; "
            "they must be N×V×D… for features N×D…"
        )
    return None if views.shape[1] == 0 else torch.from_numpy(_numbers(file, "views", views))


def _numbers(file: Path, name: str, features: Array) -> Array:
    """Convert features to float16 or float32, and refuse any that are not finite."""
    if features.dtype.kind not in "fiub":
        raise InputError(f"{file}: {name} are {features.dtype}; they must be numbers")
    if features.dtype not in (np.float16, np.float32):
        with np.errstate(over="ignore"):  # an overflow is inf, refused below
            features = features.astype(np.float32)
    blocks = (features[i : i + BLOCK] for i in range(0, len(features), BLOCK))
    finite = [np.isfinite(block).reshape(len(block), -1).all(axis=1) for block in blocks]
    bad = np.flatnonzero(~np.concatenate(finite))
    if len(bad):
        raise InputError(
            f"{file} row {bad[0]}: {name} hold NaN or infinity, as do {len(bad) - 1} other rows; "
            "remove or repair them"
        )
    return features


def _strings(file: Path, name: str, arrays: dict[str, Array], count: int) -> list[str] | None:
    if name not in arrays:
        return None
    strings = arrays[name]
    if strings.shape != (count,):
        raise InputError(f"{file}: {name} are {_shape(strings)}; {count} names are needed")
    if strings.dtype.kind not in "USiu":
        raise InputError(f"{file}: {name} are {strings.dtype}; write them as text (dtype=str)")
    try:
        values = strings.tolist()
    except (ValueError, SystemError) as error:  # numbers that are no characters
        raise InputError(f"{file}: {name} hold what is no text ({error})") from error
    if strings.dtype.kind == "S":
        return [value.decode("utf-8", "surrogateescape") for value in values]
    return [str(value) for value in values]


def _names(file: Path, arrays: dict[str, Array], count: int) -> list[str] | None:
    """Read the names of the rows, which may be those of files."""
    names = _strings(file, "images", arrays, count)
    for i, name in enumerate(names or ()):
        check_text(f"{file} row {i}: name", name, file=True)
    return names


def _shape(array: Array) -> str:
    return "×".join(map(str, array.shape)) or "a single value"
