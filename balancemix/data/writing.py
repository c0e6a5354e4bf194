"""Labels written back: in the format of the file they go to, with a log of what changed."""

from __future__ import annotations

import stat
from pathlib import Path

import torch
from torch import Tensor

from balancemix.data.changes import Why, log_of, write_changes
from balancemix.data.formats import Format, WritableFormat, builtin, coco, find_format, find_writer
from balancemix.data.source import Source


def write_labels(source: Source, given: Tensor, out: Path, why: Why) -> list[str]:
    """Write a source with other labels, and the log of the changes beside it.

    `why` is the reason for all changes, or says that for a row and a class. Returns what a person
    should know about the file, a sentence each. What a decision replaced when the data was read is
    a change as well: the file still has the value from before.
    """
    writer = find_writer(out, source.path)
    stored = source.as_in_file
    form = _format_of(source)
    only_read = form is not None and not isinstance(form, WritableFormat)
    notes = [_only_as_table(source, out)] if only_read else []
    labels = _with_unscored(source, given) if only_read else given
    notes += writer.write(stored, labels, out) or []
    if is_regular(out):
        write_changes(stored, given, out, why)
    return notes


def outputs_of(out: Path) -> list[Path]:
    """List the files that `write_labels` writes, to be checked before anything is computed."""
    if not is_regular(out):
        return [out]
    return [out, log_of(out), *(coco.beside(out) if out.suffix == coco.ENDING else ())]


def natural_ending(source: Source) -> str:
    """Choose the ending of the file that a source's labels are written to by default."""
    ending = getattr(source.origin, "ending", None)  # a table knows that of its file
    if isinstance(ending, str) and ending:
        return ending
    form = _format_of(source)
    if isinstance(form, WritableFormat):
        return form.ENDING
    return ".csv" if source.features is None else ".npz"


def is_only_read(path: Path) -> bool:
    """Tell whether the format of data has no writer, so that a new table is written of it.

    >>> is_only_read(Path("photos.csv"))
    False
    """
    return not isinstance(find_format(path), WritableFormat)


def is_regular(out: Path) -> bool:
    """Tell whether a path is that of a file, there or not, and not of a device or a pipe."""
    return not out.exists() or stat.S_ISREG(out.stat().st_mode)


def _format_of(source: Source) -> Format | None:
    """Find the format of a source that is in files."""
    in_files = source.path.exists() and builtin.recognise(source.path) is None
    return find_format(source.path) if in_files else None


def _with_unscored(source: Source, given: Tensor) -> Tensor:
    """Make labels unknown that are not scored, which a new table cannot say in another way.

    These are VOC's difficult objects among the rows to score on, unless somebody decided.
    """
    if source.truth is None:
        return given
    held = torch.tensor([name != "train" for name in source.split or ["train"] * len(source)])
    left = held.unsqueeze(1) & (source.truth < 0) & (given == source.as_in_file.given)
    if source.verified is not None:
        left &= ~source.verified
    return given.masked_fill(left, -1)


def _only_as_table(source: Source, out: Path) -> str:
    return f"{source.path}: its format is only read, so {out.name} is a new table of all its rows"
