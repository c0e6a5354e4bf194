"""Fingerprint: what a run remembers of its rows, so that data that changes under it is noticed.

names, classes, given   the rows and their labels, as read
verified                which labels are verified, if any are
marks                   a number for each input: the size of its file, or a checksum of its row
dates                   when each file was changed last; 0 for features
"""

from __future__ import annotations

import hashlib
import io
import warnings
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from balancemix.data.features import FeatureRows
from balancemix.data.images import ImageRows
from balancemix.data.rows import Rows
from balancemix.errors import InputError, listing
from balancemix.labels.stored import stored_labels

Array = npt.NDArray[Any]

MOST_BYTES = 2**31  # of features that are read for their checksums; of more, every n-th row
KINDS = {"names": "U", "classes": "U", "given": "iu", "marks": "u", "dates": "i"}  # NumPy's
REMEDY = "put the data back as it was, or start over with --force"


def fingerprint(rows: Rows) -> dict[str, Array]:
    """Describe rows by arrays that a run keeps."""
    marks, dates = _marks(rows)
    facts = {
        "names": np.array(rows.names, dtype=np.str_),
        "classes": np.array(rows.classes, dtype=np.str_),
        "given": stored_labels(rows.given),
        "marks": marks,
        "dates": dates,
    }
    if rows.verified is not None and bool(rows.verified.any()):
        facts["verified"] = rows.verified.numpy()
    return facts


def check_fingerprint(arrays: Mapping[str, Array]) -> None:
    """Refuse arrays of a file that are not the fingerprints of training and test rows."""
    for split in ("train", "test"):
        kept = {name: arrays.get(f"{split}_{name}") for name in KINDS}
        for name, array in kept.items():
            if not isinstance(array, np.ndarray) or array.dtype.kind not in KINDS[name]:
                raise ValueError(f"it does not hold the {name} of the {split} rows")
        shapes = [array.shape for array in kept.values() if array is not None]
        rows, columns = shapes[0], shapes[1]
        if len(rows) != 1 or len(columns) != 1 or shapes[2:] != [rows + columns, rows, rows]:
            raise ValueError(f"its facts of the {split} rows do not belong together")
        given = arrays[f"{split}_given"]
        if given.size and (given.min() < -1 or given.max() > 1):
            raise ValueError(f"it does not hold the given labels of the {split} rows")
        verified = arrays.get(f"{split}_verified")
        if verified is not None and (
            verified.shape != rows + columns or verified.dtype != np.bool_
        ):
            raise ValueError(f"it does not hold the verified labels of the {split} rows")


def by_split(content: bytes) -> dict[str, dict[str, Array]]:
    """Read the fingerprints of training and test rows from the file in which a run keeps both."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        pairs = [(*name.partition("_")[::2], file[name]) for name in file]
    return {
        split: {name: array for of, name, array in pairs if of == split}
        for split in ("train", "test")
    }


def other_inputs(rows: Rows, content: bytes) -> list[str]:
    """Name the rows whose input is not what a run knows, by the file in which it keeps that.

    Rows that it does not know are not named; if some share a name, none is.
    """
    splits = by_split(content).values()
    names, marks = (
        [x for kept in splits for x in kept[key].tolist()] for key in ("names", "marks")
    )
    known = dict(zip(names, marks, strict=True))
    if len(known) < len(names):
        return []
    now = zip(rows.names, _marks(rows)[0].tolist(), strict=True)
    return [name for name, mark in now if mark and known.get(name) not in (None, 0, mark)]


def matched(rows: Rows, kept: Mapping[str, Array], where: str | Path) -> Rows:
    """Put rows into the order that a run knows them in, or refuse them and say what changed.

    Rows are matched by name where every name occurs once. Files with another date and the same
    size count as the same, with a warning.
    """
    if rows.classes != kept["classes"].tolist():
        raise _changed(where, "its classes, or their order, are not those that the run knows")
    rows = _in_order(rows, kept["names"].tolist(), where)
    differing = np.argwhere(rows.given.numpy() != kept["given"])
    if len(differing):
        i, k = differing[0]
        pair = kept["given"][i, k], rows.given[i, k]
        was, now = (("absent", "present", "unknown")[value] for value in pair)
        raise _changed(
            where,
            f"labels are not those that the run trains on ({len(differing)} of them), the first: "
            f"{rows.names[i]!r}, {rows.classes[k]!r} was {was} and is {now}",
        )
    differing = np.argwhere(_verified(rows) != kept.get("verified", False))
    if len(differing):
        i, k = differing[0]
        raise _changed(
            where,
            f"other labels are verified than when the run started ({len(differing)} of them), the "
            f"first: {rows.names[i]!r}, {rows.classes[k]!r}",
        )
    marks, dates = _marks(rows)
    other = [repr(rows.names[i]) for i in np.flatnonzero(marks != kept["marks"])]
    if other:
        raise _changed(where, f"inputs are not what they were: {listing(other, 3)}")
    newer = int((dates != kept["dates"]).sum())
    if newer:
        warnings.warn(
            f"{where}: files have another date but their old size ({newer} of them); taken for the "
            "same",
            stacklevel=2,
        )
    return rows


def file_facts(paths: Sequence[Path]) -> Array:
    """Look up each file's size and the dates, in ns, of its content and of any change to it: N×3.

    The last one also changes if a file is renamed, or if its date is set back. All are 0 where
    there is no file.

    >>> file_facts([Path("nowhere/cat.jpg")])
    array([[0, 0, 0]])
    """
    facts = np.zeros((len(paths), 3), np.int64)
    for i, path in enumerate(paths):
        with suppress(OSError):
            found = path.stat()
            facts[i] = found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return facts


def checksum(path: Path) -> int:
    """Hash the bytes of a file to 64 bits; 0 if it cannot be read."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8))
    except OSError:
        return 0
    return int.from_bytes(digest.digest(), "little") or 1


def _in_order(rows: Rows, names: list[str], where: str | Path) -> Rows:
    """Return the rows in the order of `names`."""
    if rows.names == names:
        return rows
    place = {name: i for i, name in enumerate(rows.names)}
    missing = [repr(name) for name in names if name not in place]
    added = sorted(set(rows.names) - set(names))
    if missing:
        raise _changed(where, f"rows of the run are gone: {listing(missing, 3)}")
    if added:
        raise _changed(where, f"rows are new: {listing([repr(name) for name in added], 3)}")
    if len(place) < len(rows) or len(set(names)) < len(names):
        raise _changed(where, "its rows are in another order, and some share a name")
    warnings.warn(f"{where}: its rows are in another order; matched by name", stacklevel=3)
    return rows.subset(torch.tensor([place[name] for name in names]))


def _verified(rows: Rows) -> Array:
    if rows.verified is None:
        return np.zeros(rows.given.shape, np.bool_)
    marks: Array = rows.verified.numpy()
    return marks


def _marks(rows: Rows) -> tuple[Array, Array]:
    """Compute a number for each row's input, and its file's date."""
    marks, dates = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.int64)
    if isinstance(rows, ImageRows):
        facts = file_facts(rows.paths)
        marks, dates = facts[:, 0].astype(np.uint64), facts[:, 1]
    elif isinstance(rows, FeatureRows):
        features = rows.features.numpy()
        for i in range(0, len(rows), max(features.nbytes // MOST_BYTES, 1)):
            marks[i] = zlib.crc32(features[i].tobytes())
    return marks, dates


def _changed(where: str | Path, what: str) -> InputError:
    return InputError(f"{where}: {what}; {REMEDY}")
