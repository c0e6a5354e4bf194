"""A second reader of .npz files, slow and literal; see literal.py."""

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.torture.literal import SPLITS, Answer, check_classes, is_text
from tests.torture.outcome import RefusedError, UnsureError

BYTES = "".join(map(chr, range(0xDC80, 0xDD00)))  # how Python reads bytes that are not UTF-8


def read_npz(file: Path, checked: bool = True) -> Answer:
    """Read features, labels and what describes them; `checked` compares sums of the archive."""
    arrays = _arrays(file, checked)
    if "features" not in arrays or "labels" not in arrays:
        raise RefusedError("no features or labels")
    features, labels = _numbers(arrays["features"]), arrays["labels"]
    if features.ndim not in (2, 4) or 0 in features.shape:
        raise RefusedError("features are not N×D or N×D×H×W")
    if labels.ndim != 2 or len(labels) != len(features):
        raise RefusedError("labels are not N×K")
    if labels.dtype.kind not in "fiub":
        raise RefusedError("not 0 or 1")
    marks = _marks_of(labels, _minus_one(arrays))
    rows, width = labels.shape
    classes = _names(arrays, "classes", width) or [f"class {k}" for k in range(width)]
    check_classes(classes)
    names = _names(arrays, "images", rows) or [f"row {i}" for i in range(rows)]
    if len(set(names)) < rows or not all(is_text(name, BYTES) for name in names):
        raise RefusedError("a name twice, or one that no file has")
    splits = _names(arrays, "split", rows)
    if splits and set(splits) - SPLITS:
        raise RefusedError("unknown split")
    truth = marks
    if "truth" in arrays:
        if arrays["truth"].shape != labels.shape:
            raise RefusedError("truth of another shape")
        truth = _marks_of(arrays["truth"], -1)
    verified = [[0] * width] * rows
    if "verified" in arrays:
        if arrays["verified"].shape != labels.shape:
            raise RefusedError("verified of another shape")
        verified = _marks_of(arrays["verified"], None, nan=False)
    views = None
    if "views" in arrays:
        views = _numbers(arrays["views"])
        if views.ndim != features.ndim + 1 or (
            (views.shape[0], *views.shape[2:]) != features.shape
        ):
            raise RefusedError("views of another shape")
    answer: dict[str, Any] = {}
    for i, name in enumerate(names):
        present = frozenset(c for c, mark in zip(classes, marks[i], strict=True) if mark == 1)
        views_ = () if views is None or not views.shape[1] else tuple(views[i].ravel().tolist())
        labels_ = tuple(truth[i]), tuple(marks[i]), tuple(verified[i])
        inputs = (tuple(features[i].ravel().tolist()), views_, labels_)
        answer[name] = (splits[i] if splits else None, present, frozenset(), inputs)
    return {"classes": frozenset(classes), "rows": answer}


def _arrays(file: Path, checked: bool) -> dict[str, Any]:
    arrays = {}
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if len({info.filename for info in members}) < len(members):
                raise RefusedError("an array twice")
            for info in members:
                name = info.filename.removesuffix(".npy")
                if name == info.filename or name not in (
                    "features", "labels", "classes", "split", "images", "truth", "views",
                    "verified", "minus_one",
                ):  # fmt: skip
                    continue
                if not _says_once(file, info):
                    raise UnsureError("two sizes of an array")
                with archive.open(info) as member:
                    if not checked:
                        member._expected_crc = None  # type: ignore[attr-defined]
                    content = member.read()
                arrays[name] = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except (RefusedError, UnsureError):
        raise
    except (Exception, struct.error) as error:
        raise RefusedError(f"cannot be read: {type(error).__name__}") from None
    return arrays


def _says_once(file: Path, info: zipfile.ZipInfo) -> bool:
    """Whether the header before an array says the same of its sizes as the archive's directory."""
    header = file.read_bytes()[info.header_offset :][:30]
    sizes = struct.unpack("<2L", header[18:26])
    return sizes == (info.compress_size, info.file_size)


def _numbers(array: Any) -> Any:
    if array.dtype.kind not in "fiub":
        raise RefusedError("not numbers")
    with np.errstate(all="ignore"):
        array = array if array.dtype == np.float16 else array.astype(np.float32)
    if not np.isfinite(array).all():
        raise RefusedError("not finite")
    return array


def _minus_one(arrays: dict[str, Any]) -> int | None:
    """Say which label a −1 stands for, if the file says so."""
    if "minus_one" not in arrays:
        return None
    array = arrays["minus_one"]
    for word, label in (("absent", 0), ("unknown", -1)):
        if array.shape == () and array.dtype.kind == "U" and array == np.array(word):
            return label
    raise RefusedError("minus_one says neither absent nor unknown")


def _marks_of(array: Any, minus_one: int | None, nan: bool = True) -> list[list[int]]:
    if array.dtype.kind not in "fiub":
        raise RefusedError("not 0 or 1")

    def mark(value: Any) -> int:
        if value in (0, 1):
            return int(value)
        if value == -1 and minus_one is not None:
            return minus_one
        if nan and value != value:  # only NaN differs from itself
            return -1
        raise RefusedError("not 0 or 1")

    return [[mark(value) for value in row] for row in array.tolist()]


def _names(arrays: dict[str, Any], name: str, count: int) -> list[str] | None:
    if name not in arrays:
        return None
    array = arrays[name]
    if array.shape != (count,):
        raise RefusedError(f"{name} of another shape")
    if array.dtype.kind not in "USiu":
        raise RefusedError(f"{name} are not text")
    try:
        return [
            v.decode("utf-8", "surrogateescape") if isinstance(v, bytes) else str(v)
            for v in array.tolist()
        ]
    except ValueError:
        raise RefusedError(f"{name} are not UTF-8") from None
