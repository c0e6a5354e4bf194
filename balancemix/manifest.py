"""Manifest: checksums of the files that a run reads back, so that damage is noticed.

A checksum is entered before its file is moved into place, and the one before it stays beside it.
So whenever a process is killed, the file that is there has one of the two.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from balancemix.errors import DamagedFile
from balancemix.files import write_json, write_whole

NAME = "manifest.json"
VERSION = 1


class Manifest:
    """The checksums of one directory. A directory without any was written by an older version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / NAME

    def write(self, name: str, save: Callable[[Path], object], keep: str | None = None) -> None:
        """Write a file and enter its checksum; under the name `keep` the file before stays."""
        path = self.folder / name

        def enter(draft: Path) -> None:
            entries = self._read() or {}
            previous = entries.get(name, [])[-1:]
            entries[name] = [*previous, checksum(draft)]
            if keep is not None and path.exists():
                entries[keep] = [*entries.get(keep, [])[-1:], *previous]
            self._write(entries)
            if keep is not None and path.exists():
                path.replace(self.folder / keep)

        write_whole(path, save, ready=enter)

    def is_intact(self, name: str) -> bool | None:
        """Tell whether a file is as it was written; None where no checksums were kept."""
        entries = self._read()
        if entries is None:
            return None
        return checksum(self.folder / name) in entries.get(name, [])

    def check(self, name: str, remedy: str) -> None:
        """Refuse a file that is not as it was written."""
        intact = self.is_intact(name)
        if intact is None:
            warnings.warn(
                f"{self.folder}: was written by an older version, without checksums", stacklevel=3
            )
        elif not intact:
            raise DamagedFile(
                f"{self.folder / name}: is not as balancemix wrote it: it is damaged, or somebody "
                f"changed it; {remedy}"
            )

    def _read(self) -> dict[str, list[str]] | None:
        try:
            content = json.loads(self.path.read_bytes())
            entries: dict[str, list[str]] = content["files"]
            if content == _sealed(entries):
                return entries
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
        raise DamagedFile(
            f"{self.path}: is damaged; delete it to read the run's files without checking them"
        )

    def _write(self, entries: dict[str, list[str]]) -> None:
        write_json(self.path, _sealed(entries))


def checksum(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _sealed(entries: dict[str, list[str]]) -> dict[str, Any]:
    """Put a checksum of the checksums beside them."""
    text = json.dumps(entries, sort_keys=True).encode()
    return {"version": VERSION, "files": entries, "checksum": hashlib.sha256(text).hexdigest()}
