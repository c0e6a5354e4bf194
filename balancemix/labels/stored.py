"""Labels as files store them: the table of a run is checked, an older one translated."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from balancemix.labels.table import Labels, Status, check_given

Array = npt.NDArray[Any]

# The first version's codes of status: clean, re-labelled, ambiguous.
_RELABELLED, _AMBIGUOUS = 1, 2


class Stored(NamedTuple):
    """The labels of a finished run, the model's confidence, the names of rows and classes."""

    labels: Labels
    confidence: Tensor
    names: list[str]
    classes: list[str]


def read_stored(arrays: Mapping[str, Array]) -> Stored:
    """Check the arrays of a label table's file; a ValueError says what is wrong with them."""
    given = read_labels(arrays, "given")
    shape = tuple(given.shape)
    target, weight, clean, confidence = (
        _shares(arrays, name, shape) for name in ("target", "weight", "clean", "confidence")
    )
    status = _array(arrays, "status")
    if status.shape != shape or status.dtype != np.uint8 or status.max() > max(Status):
        raise ValueError("its status is not that of a label table")
    if "version" not in arrays:
        status = _translated(status, target, weight)
    names, classes = (_words(arrays, name) for name in ("names", "classes"))
    if (len(names), len(classes)) != shape:
        raise ValueError(f"it has {len(names)} names and {len(classes)} classes for {shape} labels")
    if len(set(classes)) < len(classes):
        raise ValueError("two of its classes share a name")
    matrices = (torch.from_numpy(each) for each in (target, weight, status, clean))
    return Stored(Labels(given, *matrices), torch.from_numpy(confidence), names, classes)


def stored_labels(labels: Tensor) -> Array:
    """Return labels as files hold them: uint8, or int8 if any is unknown.

    >>> stored_labels(torch.tensor([[1, 0]], dtype=torch.int8))
    array([[1, 0]], dtype=uint8)
    """
    array: Array = labels.numpy()
    return array if bool((labels < 0).any()) else array.astype(np.uint8)


def read_labels(
    arrays: Mapping[str, Array], name: str, shape: tuple[int, ...] | None = None
) -> Tensor:
    """Check a matrix of labels; a ValueError says what is wrong with it."""
    array = _array(arrays, name)
    if array.dtype not in (np.int8, np.uint8) or array.ndim != 2 or not array.size:
        raise ValueError(f"its {name} is not a matrix of labels")
    if shape is not None and array.shape != shape:
        raise ValueError(f"its {name} has the shape {array.shape}, the label table {shape}")
    labels = torch.from_numpy(array)
    check_given(labels)
    return labels


def _translated(status: Array, target: Array, weight: Array) -> Array:
    """Write the first version's codes of status as today's."""
    relabelled = np.where(target > 0.5, Status.PRESENT, Status.ABSENT)
    doubted = np.where(weight > 0, Status.AMBIGUOUS, Status.IGNORED)
    today = np.where(status == _RELABELLED, relabelled, Status.CLEAN)
    return np.where(status == _AMBIGUOUS, doubted, today).astype(np.uint8)


def _shares(arrays: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    array = _array(arrays, name)
    if array.shape != shape or array.dtype not in (np.float16, np.float32, np.float64):
        raise ValueError(f"its {name} is not a matrix of numbers for {shape} labels")
    if not (array.min() >= 0 and array.max() <= 1):  # also if there is a NaN
        raise ValueError(f"its {name} is not between 0 and 1")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _words(arrays: Mapping[str, Array], name: str) -> list[str]:
    array = _array(arrays, name)
    if array.ndim != 1 or array.dtype.kind != "U":
        raise ValueError(f"its {name} are not a list of names")
    return list(array.tolist())


def _array(arrays: Mapping[str, Array], name: str) -> Array:
    if name not in arrays:
        raise ValueError(f"it holds no {name}")
    return np.asarray(arrays[name])
