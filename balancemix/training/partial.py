"""An array that is written to disk a few rows at a time, so that a killed job can resume.

A `.npy` file holds the rows; a JSON file beside it, the note, says what they are of and how many
are done. The note is written whole or not at all, after the rows that it counts are on the disk.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from balancemix.errors import InputError
from balancemix.files import locked, write_json

Array = npt.NDArray[Any]

WRITING = "writing to it"
NOTE_EVERY = 1.0  # seconds; rows since the last note are made again after a kill


class PartialArray:
    """An array of which the first `done` rows are written; one of something else is refused.

    Rows are written, not mapped: a full disk is then an error, not a signal.
    """

    def __init__(
        self, path: Path, about: Mapping[str, Any], shape: tuple[int, ...], dtype: npt.DTypeLike
    ) -> None:
        self.path, self.done, self.noted = path, 0, time.monotonic()
        self.about = {**about, "shape": list(shape), "type": np.dtype(dtype).name}
        if path.exists() and path.stat().st_size and note_of(path).exists():
            self.done = self._read_note()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.lib.format.open_memmap(path, "w+", dtype, shape)
            self.note()
        array = self.array()
        self.offset, self.dtype, self.row_bytes = array.offset, array.dtype, array.strides[0]

    def cut(self, count: int) -> None:
        """Keep the first `count` rows."""
        self.done = count
        self.note()  # before any of the others is overwritten

    def append(self, rows: Array) -> None:
        """Write more rows after those that are done."""
        with self.path.open("r+b") as out:
            out.seek(self.offset + self.done * self.row_bytes)
            out.write(np.ascontiguousarray(rows, dtype=self.dtype).tobytes())
        self.done += len(rows)
        if time.monotonic() - self.noted >= NOTE_EVERY:
            self.note()

    def note(self) -> None:
        """Note how many rows are done, once they are on the disk."""
        with self.path.open("rb") as written:
            os.fsync(written.fileno())
        write_json(note_of(self.path), {"about": self.about, "done": self.done})
        self.noted = time.monotonic()

    def array(self) -> np.memmap[Any, Any]:
        """Map all rows into memory."""
        return np.lib.format.open_memmap(self.path, "r")

    def _read_note(self) -> int:
        file = note_of(self.path)
        try:
            note = json.loads(file.read_bytes())
            old, done = dict(note["about"]), int(note["done"])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{file}: cannot be read ({error}); pass --force to start over"
            ) from error
        pairs = ((key, old.get(key), new) for key, new in self.about.items())
        differing = [f"{key} {was!r}, now {new!r}" for key, was, new in pairs if was != new]
        if differing:
            raise InputError(
                f"{file}: was started with other settings ({', '.join(differing)}); use the same "
                "ones, or pass --force to start over"
            )
        return done


def note_of(path: Path) -> Path:
    """Name the file that says how many rows of an array are done.

    >>> note_of(Path(".x.npz.npy")).name
    '.x.npz.json'
    """
    return path.with_suffix(".json")


def rows_done(path: Path, about: Mapping[str, Any]) -> Array | None:
    """Map the rows that are done of a partial array; None if there is none, or not `about` this."""
    try:
        note = json.loads(note_of(path).read_bytes())
        array, done = np.lib.format.open_memmap(path, "r"), int(note["done"])
        same = all(note["about"].get(key) == value for key, value in about.items())
    except Exception:  # NumPy's header parser raises different ones
        return None
    return array[:done] if same and 0 <= done <= len(array) else None


def remove(path: Path) -> None:
    """Delete a partial array, if there is one; its note first, without which it is ignored."""
    with locked(path, WRITING) if path.exists() else nullcontext():
        note_of(path).unlink(missing_ok=True)
        path.unlink(missing_ok=True)
