"""The labels of an .npz: what its numbers mean, and how labels are written.

1 is present and 0 absent; NaN is unknown. −1 means absent to some and unknown to others: the
array `minus_one` of the file says which ("absent" or "unknown"), or else `ReadOptions.minus_one`;
without either it is refused. In `truth`, −1 is unknown. `verified` holds 0 and 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from balancemix.data.source import Source
from balancemix.errors import InputError
from balancemix.labels.stored import stored_labels
from balancemix.options import Meaning

Array = npt.NDArray[Any]
MEANINGS: tuple[Meaning, ...] = ("absent", "unknown")


def meaning_of_minus_one(
    file: Path, arrays: dict[str, Array], option: Meaning | None
) -> Meaning | None:
    """Look up what −1 means: as the file says, or else the option."""
    if "minus_one" not in arrays:
        return option
    word = text_of(arrays["minus_one"])
    stored = next((each for each in MEANINGS if each == word), None)
    if stored is None:
        raise InputError(f"{file}: minus_one must be the text 'absent' or 'unknown'")
    if option not in (None, stored):
        raise InputError(
            f"--minus-one {option}: {file} says that −1 is {stored}; leave the option out"
        )
    return stored


def text_of(array: Array) -> str | None:
    """Return the text that an array holds; None if it is anything but a single text."""
    if array.shape != () or array.dtype.kind != "U":
        return None
    try:
        return str(array)
    except (ValueError, SystemError):  # numbers that are no characters
        return None


def read_labels(
    file: Path, name: str, array: Array, classes: list[str], minus_one: Meaning | None
) -> Tensor:
    """Read N×K labels as int8: 1, 0 and −1 (unknown). Messages count rows from 0."""
    if array.dtype.kind not in "fiub":
        raise InputError(f"{file}: {name} are {array.dtype}; they must be 0 or 1")
    unknown = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, np.bool_)
    negative = (array == -1) if array.dtype.kind != "u" else np.zeros(array.shape, np.bool_)
    wrong = ~((array == 0) | (array == 1) | unknown)
    wrong = wrong & ~negative if minus_one is not None else wrong
    if wrong.any():
        i, k = np.argwhere(wrong)[0]
        value = array[i, k].item()
        raise InputError(f"{file} row {i}, class {classes[k]!r}: {name} hold {_refusal(value)}")
    labels = torch.from_numpy(array == 1).to(torch.int8)
    labels[torch.from_numpy(unknown)] = -1
    if minus_one == "unknown":
        labels[torch.from_numpy(negative)] = -1
    return labels


def _refusal(value: float) -> str:
    if value == -1:
        return "-1; say what it means with --minus-one absent or --minus-one unknown"
    if 0 < value < 1:
        return (
            f"{value!r}; shares of votes and other soft labels are not read: make them 0, 1 or "
            "NaN (unknown)"
        )
    return f"{value!r}; they must be 0 or 1, or NaN where they are unknown"


def read_verified(file: Path, array: Array, shape: tuple[int, ...], classes: list[str]) -> Tensor:
    """Read which labels are verified: N×K of 0 and 1."""
    if array.shape != shape or array.dtype.kind not in "fiub":
        sizes = "×".join(map(str, shape))
        raise InputError(f"{file}: verified must be {sizes} of 0 and 1, like labels")
    wrong = np.argwhere((array != 0) & (array != 1))
    if len(wrong):
        i, k = wrong[0]
        value = array[i, k].item()
        raise InputError(
            f"{file} row {i}, class {classes[k]!r}: verified holds {value!r}; it must be 0 or 1"
        )
    return torch.from_numpy(array == 1)


def recognised_labels(file: Path, arrays: dict[str, Array], minus_one: Meaning | None) -> list[str]:
    """Say what −1 and NaN were taken for; nothing if the labels are 0 and 1."""
    array, notes = arrays["labels"], []
    if minus_one is not None and array.dtype.kind in "if" and bool((array == -1).any()):
        source = "as the file says in minus_one" if "minus_one" in arrays else "--minus-one"
        notes.append(f"−1 is {minus_one} ({source})")
    if array.dtype.kind == "f" and bool(np.isnan(array).any()):
        notes.append("NaN is unknown: it counts neither as present nor as absent")
    return [f"{file} is read as npz (--format)", *notes] if notes else []


def label_arrays(
    given: Tensor, truth: Tensor | None = None, verified: Tensor | None = None
) -> dict[str, Array]:
    """Return the arrays of a new file, which says what −1 is if there are any.

    >>> list(label_arrays(torch.tensor([[1, -1]], dtype=torch.int8)))
    ['labels', 'minus_one']
    """
    arrays = {"labels": stored_labels(given)}
    if bool((given < 0).any()):
        arrays["minus_one"] = np.array("unknown")
    if truth is not None:
        arrays["truth"] = stored_labels(truth)
    if verified is not None:
        arrays["verified"] = verified.numpy()
    return arrays


def changed_arrays(source: Source, given: Tensor, arrays: dict[str, Array]) -> dict[str, Array]:
    """Return those of a file's arrays that are not as `source` was read, with `given` as labels."""
    if "labels" not in arrays or arrays["labels"].shape != tuple(given.shape):
        raise InputError(f"{source.path}: has changed since it was read; start again")
    changed = _changed_labels(arrays["labels"], source.given, given)
    now = label_arrays(given, source.truth, source.verified)
    if "truth" in now and not _is_truth(source, arrays.get("truth")):
        changed["truth"] = now["truth"]
    if "verified" in now and not np.array_equal(arrays.get("verified", ()), now["verified"]):
        changed["verified"] = now["verified"]
    return changed


def _is_truth(source: Source, array: Array | None) -> bool:
    if array is None or source.truth is None:
        return False
    stored = read_labels(source.path, "truth", array, source.classes, "unknown")
    return torch.equal(stored, source.truth.to(torch.int8))


def _changed_labels(array: Array, before: Tensor, given: Tensor) -> dict[str, Array]:
    """Write labels into a copy of `array`, which was read as `before`.

    Labels that stay the same keep their number, also if −1 means absent in the file, unless −1 is
    needed for unknown ones.
    """
    places = (before != given).numpy()
    if not places.any():
        return {}
    values = given.numpy()[places]
    changed = array.copy()
    if (values >= 0).all():
        changed[places] = values
        return {"labels": changed}
    if array.dtype.kind == "f":
        changed[places] = np.where(values < 0, np.nan, values)
        return {"labels": changed}
    signed = array.dtype.kind == "i"
    if signed and not ((array == -1) & (before == 0).numpy()).any():
        changed[places] = values
        return {"labels": changed, "minus_one": np.array("unknown")}
    kind = array.dtype if signed else np.dtype(np.int8)
    return {"labels": given.numpy().astype(kind), "minus_one": np.array("unknown")}
