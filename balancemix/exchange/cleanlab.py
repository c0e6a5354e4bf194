"""cleanlab's arrays: labels and `pred_probs` for it, what it flags, and labels that were corrected.

The .npz for cleanlab holds, of N rows and K classes:

    labels      N×K: 1 present, 0 absent, −1 unknown
    pred_probs  N×K: how sure the audit is of each class without its given label; out of sample
    issues      N×K: whether the label is a finding, as find_multilabel_issues_per_class says it
    quality     N×K: 1 − probability that the label is wrong
    names, classes
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from balancemix.auditing.findings import Findings
from balancemix.data.arrays import read_array
from balancemix.data.decisions.filled import Filled, FilledLabel
from balancemix.data.formats.npz import read_arrays
from balancemix.errors import InputError
from balancemix.exchange.known import Known, shown
from balancemix.files import from_json, write_arrays
from balancemix.labels.table import as_given


def write(findings: Findings, out: Path) -> list[str]:
    """Write the arrays; returns how cleanlab takes them."""
    judged = findings.judged
    issues = torch.zeros(judged.given.shape, dtype=torch.bool)
    issues[findings.row, findings.column] = True
    write_arrays(
        out,
        {
            "labels": judged.given.numpy(),
            "pred_probs": judged.confidence.numpy().astype(np.float32),
            "issues": issues.numpy(),
            "quality": (1 - judged.probability).numpy().astype(np.float32),
            "names": np.array(list(judged.names), dtype=str),
            "classes": np.array(list(judged.classes), dtype=str),
        },
    )
    return [
        f"in Python: arrays = np.load({str(out)!r}); "
        "labels = [np.flatnonzero(row == 1).tolist() for row in arrays['labels']]; "
        "find_label_issues(labels, arrays['pred_probs'])"
    ]


def flagged(findings: Findings, file: Path) -> Findings:
    """Keep the findings that another program flags: labels (N×K), or rows (N, or their numbers)."""
    array = read_array(file)
    count, width = findings.labels.shape
    if array.dtype == torch.bool and array.shape == (count, width):
        return findings[array[findings.row, findings.column]]
    if array.dtype == torch.bool and array.shape == (count,):
        return findings[array[findings.row]]
    if array.ndim == 1 and not array.is_floating_point() and array.dtype != torch.bool:
        if len(array) and (int(array.min()) < 0 or int(array.max()) >= count):
            raise InputError(f"{file}: names rows that the data does not have; it has {count:,}")
        rows = torch.zeros(count, dtype=torch.bool)
        rows[array.long()] = True
        return findings[rows[findings.row]]
    raise InputError(
        f"{file}: has shape {tuple(array.shape)} of {str(array.dtype).removeprefix('torch.')}; "
        f"needed are booleans {count}×{width} or {count}, or numbers of rows"
    )


def of_labels(file: Path) -> bool:
    """Tell whether a file of arrays flags labels, not rows."""
    return read_array(file).ndim == 2


def from_lists(where: str, lists: Any, width: int) -> Tensor:
    """Make N×K labels of a list of the classes of each row, by their numbers.

    >>> from_lists("x", [[0, 2], []], 3).tolist()
    [[1, 0, 1], [0, 0, 0]]
    """
    if not isinstance(lists, list) or not lists:
        raise InputError(f"{where}: is not a list of lists of the numbers of classes")
    given = torch.zeros(len(lists), width, dtype=torch.int8)
    for i, row in enumerate(lists):
        if not isinstance(row, list):
            raise InputError(f"{where} row {i}: is {shown(row)}, not a list of numbers of classes")
        for k in row:
            if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k < width:
                raise InputError(
                    f"{where} row {i}: {shown(k)} is not the number of a class, 0 to {width - 1}"
                )
            given[i, k] = 1
    return given


def read_lists(file: Path, scores: Tensor) -> Tensor:
    """Read the classes of each row from JSON, for the N×K scores of a model."""
    try:
        lists = from_json(file.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: is not JSON ({error})") from None
    return from_lists(str(file), lists, scores.shape[-1] if scores.ndim else 0)


def is_lists(content: Any) -> bool:
    """Tell whether JSON is a list of lists.

    >>> is_lists([[0, 2], []]), is_lists([{"image": "a.png"}])
    (True, False)
    """
    return isinstance(content, list) and bool(content) and isinstance(content[0], list)


def read_corrected(file: Path, known: Known, lists: Any = None) -> Filled:
    """Read labels that a person corrected: those that differ from the data's are answers.

    `lists` say nothing of a class that is unknown in the data and is not listed.
    """
    source = known.source
    names, classes = source.names, source.classes
    if lists is not None:
        labels = from_lists(str(file), lists, len(classes))
        _check_shape(file, labels, source.given)
        labels = torch.where((source.given < 0) & (labels == 0), -1, labels)
        given = source.given
    elif file.suffix.lower() == ".npz":
        labels, names, classes = _named(file, known)
        place = {name: i for i, name in enumerate(source.names)}
        column = {name: k for k, name in enumerate(source.classes)}
        rows = torch.tensor([place[name] for name in names], dtype=torch.long)
        given = source.given[rows][:, torch.tensor([column[name] for name in classes])]
    else:
        labels = _labels(file, "", read_array(file))
        _check_shape(file, labels, source.given)
        given = source.given
    changed = ((labels >= 0) & (labels != given)).nonzero().tolist()
    verdicts = {1: "present", 0: "absent"}
    found = [
        FilledLabel(
            f"{file} row {i}", None, names[i], classes[k], verdicts[int(labels[i, k])]
        )
        for i, k in changed
    ]  # fmt: skip
    return Filled(found, [], 0)


def _named(file: Path, known: Known) -> tuple[Tensor, list[str], list[str]]:
    """Read the labels of an .npz with the names of its rows and classes."""
    arrays = read_arrays(file, ("labels", "names", "classes"))
    for name in ("labels", "names", "classes"):
        if name not in arrays:
            raise InputError(f"{file}: no array {name!r}; it needs labels, names and classes")
    labels = _labels(file, "labels: ", torch.from_numpy(_plain(file, arrays["labels"])))
    words = [arrays[name] for name in ("names", "classes")]
    for name, array, count in zip(("names", "classes"), words, labels.shape, strict=True):
        if array.dtype.kind != "U" or array.shape != (count,):
            raise InputError(f"{file}: {name} are not {count} names; save them as text")
    names = [known.image(f"{file} row {i}", name) for i, name in enumerate(words[0].tolist())]
    classes = [known.class_(str(file), name) for name in words[1].tolist()]
    for what, each in (("image", names), ("class", classes)):
        if len(set(each)) < len(each):
            twice = next(name for name in each if each.count(name) > 1)
            raise InputError(f"{file}: the {what} {twice!r} is there twice; keep one of them")
    return labels, names, classes


def _plain(file: Path, array: Any) -> Any:
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise InputError(f"{file}: labels are {array.dtype}, not numbers")
    return np.require(array.astype(np.float64), requirements=["C", "W"])


def _labels(file: Path, what: str, array: Tensor) -> Tensor:
    if array.dtype == torch.bool:
        raise InputError(
            f"{file}: holds booleans, which say what a program flagged, not what is there; list "
            f"them by `balancemix audit DATA --issues {file}`"
        )
    try:
        return as_given(array)
    except ValueError as error:
        raise InputError(f"{file}: {what}{error}") from None


def _check_shape(file: Path, labels: Tensor, given: Tensor) -> None:
    if labels.shape != given.shape:
        shapes = f"{tuple(labels.shape)}, the data {tuple(given.shape)}"
        raise InputError(f"{file}: has labels of shape {shapes}; give a row for each of its rows")
