"""What people decided about labels: `photos.balancemix/decisions.csv` beside `photos/`.

A line is image,class,verdict; further columns are ignored, and of two lines about one label the
last one counts. The verdict is present, absent or unsure. On reading data, it replaces the given
label, which is then verified; "unsure" changes nothing.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from balancemix.data.beside import folder_beside
from balancemix.data.small_table import read_small_table
from balancemix.data.source import Source
from balancemix.errors import InputError, listing, suggest

COLUMNS = ("image", "class", "verdict")
VERDICTS = {"present": 1, "absent": 0, "unsure": -1}


def decisions_file(data: Path) -> Path | None:
    """Find the decisions about a data set, if there are any.

    >>> decisions_file(Path("nowhere"))
    """
    folder = folder_beside(data)
    file = None if folder is None else folder / "decisions.csv"
    # os.path, since a name can be too long for the file system.
    return file if file is not None and os.path.isfile(file) else None


def decide(source: Source) -> Source:
    """Replace given labels by what people decided about them; the file's are kept.

    Decisions about images that are gone are left out with a warning. A class that is not there is
    refused.
    """
    file = decisions_file(source.path)
    if file is None:
        return source
    place = {name: i for i, name in enumerate(source.names)}
    column = {name: k for k, name in enumerate(source.classes)}
    given = source.given.clone()
    verified = _verified(source)
    gone: dict[str, None] = {}
    for where, image, class_, verdict in read_decisions(file):
        if class_ not in column:
            raise InputError(
                f"{where}: {class_!r} is not a class of {source.path}; "
                f"{suggest(class_, source.classes)}"
            )
        if image not in place:
            gone[repr(image)] = None
            continue
        i, k = place[image], column[class_]
        sure = verdict >= 0  # else as in the file, also if an earlier line decided it
        given[i, k] = verdict if sure else source.given[i, k]
        verified[i, k] = sure or (source.verified is not None and source.verified[i, k])
    if gone:
        warnings.warn(
            f"{file}: images that {source.path} does not have ({len(gone)}): "
            f"{listing(list(gone), 3)}; their decisions are left out",
            stacklevel=2,
        )
    return replace(source, given=given, verified=verified, file_given=source.given)


def read_decisions(file: Path) -> Iterator[tuple[str, str, str, int]]:
    """Read the lines of a file of decisions: place, image, class, and 1, 0 or −1."""
    for where, (image, class_, verdict) in read_small_table(file, COLUMNS):
        if verdict.strip() not in VERDICTS:
            raise InputError(
                f"{where}: verdict {verdict!r}; {suggest(verdict.strip(), list(VERDICTS))}"
            )
        yield where, image, class_, VERDICTS[verdict.strip()]


def _verified(source: Source) -> Tensor:
    if source.verified is not None:
        return source.verified.clone()
    return torch.zeros(source.given.shape, dtype=torch.bool)
