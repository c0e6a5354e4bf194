"""cleanlab's arrays: labels and `pred_probs` for it, what it flags, and labels that were corrected.

The .npz for cleanlab holds, of N rows and K classes:

    labels      N×K: 1 present, 0 absent, −1 unknown; to be corrected
    given       the same: what of `labels` differs when it comes back, somebody changed
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
from balancemix.data.decisions import decide
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
            "given": judged.given.numpy(),
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
    """Keep the findings that another program flags: labels (N×K), or rows (N, or their numbers).

    What a person has verified is not asked again.
    """
    array = read_array(file)
    if findings.judged.verified is not None:
        findings = findings[~findings.judged.verified[findings.row, findings.column]]
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
    """Read labels that a person corrected: those that somebody changed are answers.

    Changed is what differs from `given` in an .npz; elsewhere, what differs both from the file of
    the data and from what is decided already. `lists` say nothing of a class that is unknown in the
    data and is not listed.
    """
    source, now = known.source, None
    if file.suffix.lower() == ".npz":
        labels, given, names, classes = _named(file, known)
    else:
        names, classes, given = source.names, source.classes, source.given
        now = decide(source).given
        if lists is None:
            labels = _labels(file, read_array(file))
        else:
            labels = from_lists(str(file), lists, len(classes))
            if labels.shape == given.shape:
                labels = torch.where((given < 0) & (labels == 0), -1, labels)
        if labels.shape != given.shape:
            shapes = f"{tuple(labels.shape)}, the data {tuple(given.shape)}"
            raise InputError(
                f"{file}: has labels of shape {shapes}; give a row for each of its rows"
            )
    changed = (labels >= 0) & (labels != given)
    if now is not None:
        changed &= labels != now
    rows, columns = changed.nonzero(as_tuple=True)
    answers = [
        FilledLabel(f"{file} row {i}", None, names[i], classes[k], "present" if value else "absent")
        for i, k, value in zip(
            rows.tolist(), columns.tolist(), labels[rows, columns].tolist(), strict=True
        )
    ]
    return Filled(answers, [], 0)


def _named(file: Path, known: Known) -> tuple[Tensor, Tensor, list[str], list[str]]:
    """Read the labels of an .npz, what they were before, and the names of rows and classes."""
    arrays = read_arrays(file, ("labels", "given", "names", "classes"))
    for name in ("labels", "given", "names", "classes"):
        if name not in arrays:
            raise InputError(f"{file}: no array {name!r}; it needs labels, given, names, classes")
    labels, given = (
        _labels(file, torch.from_numpy(_plain(file, name, arrays[name])))
        for name in ("labels", "given")
    )
    if labels.shape != given.shape:
        raise InputError(f"{file}: labels and given have different shapes; keep `given` as it is")
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
    return labels, given, names, classes


def _plain(file: Path, name: str, array: Any) -> Any:
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise InputError(f"{file}: {name} are {array.dtype}, not numbers")
    return np.require(array.astype(np.float64), requirements=["C", "W"])


def _labels(file: Path, array: Tensor) -> Tensor:
    if array.dtype == torch.bool:
        raise InputError(
            f"{file}: holds booleans, which say what a program flagged, not what is there; list "
            f"them by `balancemix audit DATA --issues {file}`"
        )
    try:
        return as_given(array)
    except ValueError as error:
        raise InputError(f"{file}: {error}") from None
