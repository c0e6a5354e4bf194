"""Checksums of files: of those that a run reads back, and of those that it wrote for people.

A checksum is entered before its file is moved into place, and the one before it stays beside it.
So whenever a process is killed, the file that is there has one of the two.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from balancemix.errors import DamagedFile, InputError
from balancemix.files import check_output, write_json, write_whole

NAME = "checksums.json"
VERSION = 1


class Manifest:
    """The checksums of files in one directory, kept there under `name`; one process writes it.

    A directory without any was written by an older version.
    """

    def __init__(self, folder: Path, name: str = NAME) -> None:
        self.folder = folder
        self.path = folder / name

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

    def enter(self, name: str, digest: str) -> None:
        """Enter the checksum of a file that is about to be written; the one before it stays."""
        entries = self._read() or {}
        self._write({**entries, name: [*entries.get(name, [])[-1:], digest]})

    @property
    def exists(self) -> bool:
        """Whether any checksums were kept."""
        return self.path.is_file()

    @property
    def names(self) -> list[str]:
        """The names of the files that it knows."""
        return list(self._read() or {})

    def is_intact(self, name: str) -> bool | None:
        """Tell whether a file is as it was written; None where its checksum was not kept."""
        expected = (self._read() or {}).get(name)
        return None if expected is None else checksum(self.folder / name) in expected

    def check(self, name: str, remedy: str) -> None:
        """Refuse a file that is not as it was written."""
        if self.is_intact(name) is False:
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


class Outputs(Manifest):
    """The files that commands wrote into a directory for people, who may edit them.

    A command may write such a file again as long as it is as a command left it.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, ".outputs.json")

    def check_output(self, path: Path, *, force: bool = False, inputs: Iterable[Path] = ()) -> None:
        """Refuse to write over a file that is not as a command left it here."""
        intact = self.is_intact(path.name) if self._holds(path) and path.is_file() else None
        if intact is False and not force:
            raise InputError(f"{path}: was edited since it was written; --force replaces it")
        check_output(path, force=force or intact is True, inputs=inputs)

    def remember(self, path: Path) -> None:
        """Enter the checksum of a file that a command has written here."""
        if self._holds(path) and path.is_file():
            self._write({**(self._read() or {}), path.name: [checksum(path)]})

    def edited(self) -> list[str]:
        """List the files that somebody changed since."""
        present = [name for name in self.names if (self.folder / name).is_file()]
        return [name for name in present if not self.is_intact(name)]

    def _holds(self, path: Path) -> bool:
        return path.parent.resolve() == self.folder.resolve()


def checksum(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def checksum_of(text: str) -> str:
    """Compute the SHA-256 of a text file that holds this."""
    return hashlib.sha256(text.encode()).hexdigest()


def _sealed(entries: dict[str, list[str]]) -> dict[str, Any]:
    """Put a checksum of the checksums beside them."""
    text = json.dumps(entries, sort_keys=True).encode()
    return {"version": VERSION, "files": entries, "checksum": hashlib.sha256(text).hexdigest()}
