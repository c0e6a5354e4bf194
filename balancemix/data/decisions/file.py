"""Decisions in a file that people write: `photos.balancemix/decisions.csv` beside `photos/`.

A line is image,class,verdict; further columns are ignored, and of two lines about one label the
last one counts. The verdict is present, absent or unsure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from balancemix.data.beside import folder_beside
from balancemix.data.small_table import read_small_table
from balancemix.errors import InputError, suggest

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


def read_decisions(file: Path) -> Iterator[tuple[str, str, str, int]]:
    """Read the lines of a file of decisions: place, image, class, and 1, 0 or −1."""
    for where, (image, class_, verdict) in read_small_table(file, COLUMNS):
        if verdict.strip() not in VERDICTS:
            raise InputError(
                f"{where}: verdict {verdict!r}; {suggest(verdict.strip(), list(VERDICTS))}"
            )
        yield where, image, class_, VERDICTS[verdict.strip()]
