"""A file that grows by equal rows, so that a job that was killed goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from balancemix.errors import InputError
from balancemix.files import write_whole

Array = npt.NDArray[Any]

PAGE = 4096  # the header fills whole pages, so that the rows can be mapped


class RowFile:
    """Rows of one shape and type behind a header that says what they are of.

    A row that was cut off when the job was killed does not count. A file that is of something else
    is refused.
    """

    def __init__(
        self, path: Path, about: Mapping[str, Any], shape: tuple[int, ...], dtype: npt.DTypeLike
    ) -> None:
        self.path, self.shape, self.dtype = path, shape, np.dtype(dtype)
        self.bytes = self.dtype.itemsize * int(np.prod(shape))
        header = _header({**about, "row": list(shape), "type": self.dtype.name})
        self.begin = len(header)
        if not path.exists():
            write_whole(path, lambda draft: draft.write_bytes(header))
            return
        with path.open("rb") as stream:
            found = stream.readline()
        if found.strip() != header.strip():
            raise InputError(
                f"{path}: was begun otherwise ({_differences(found, header)}); do as then, "
                "or pass --force to begin anew"
            )

    def __len__(self) -> int:
        return (self.path.stat().st_size - self.begin) // self.bytes

    def cut(self, count: int) -> None:
        """Keep the first `count` rows."""
        with self.path.open("r+b") as stream:
            stream.truncate(self.begin + count * self.bytes)

    def append(self, rows: Array) -> None:
        """Write some rows behind the others."""
        with self.path.open("ab") as out:
            out.write(np.ascontiguousarray(rows, dtype=self.dtype).tobytes())

    def array(self) -> Array:
        """Map all rows into memory."""
        return np.memmap(self.path, self.dtype, "r", self.begin, (len(self), *self.shape))


def _header(about: Mapping[str, Any]) -> bytes:
    text = json.dumps(about, ensure_ascii=True).encode()
    return text.ljust(-(-(len(text) + 1) // PAGE) * PAGE - 1) + b"\n"


def _differences(found: bytes, wanted: bytes) -> str:
    try:
        old, new = json.loads(found), json.loads(wanted)
        differing = [key for key in new if old.get(key) != new[key]]
    except (ValueError, AttributeError):
        return "it is of another kind"
    return ", ".join(f"{key} {old.get(key)!r}, now {new[key]!r}" for key in differing)
