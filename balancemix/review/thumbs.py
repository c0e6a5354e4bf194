"""Thumbs: small pictures kept on the disk, so that each is decoded once."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

LIMIT = 2**30  # bytes
DRAFT = ".draft"  # the end of a name that is being written


class Thumbs:
    """JPEGs in a folder by name, at most `limit` bytes: the least recently used goes first.

    Only a cache: what is damaged or cannot be written is as if it were not there. Any thread may
    use it, but only one process.
    """

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder, self.limit = folder, limit
        self._lock = threading.Lock()
        self._bytes = self._listed()  # by name, the least recently used first
        self._total = sum(self._bytes.values())

    def get(self, name: str) -> bytes | None:
        """Return a picture that is kept whole, and note that it was used."""
        try:
            content = (self.folder / name).read_bytes()
        except OSError:
            return None
        if not (content.startswith(b"\xff\xd8") and content.endswith(b"\xff\xd9")):
            return None  # the power went while it was written
        with suppress(OSError):
            os.utime(self.folder / name)
        with self._lock:
            if name in self._bytes:
                self._bytes.move_to_end(name)
        return content

    def put(self, name: str, content: bytes) -> None:
        """Keep a picture, if the disk takes it, and remove others until all fit."""
        draft = self.folder / f".{name}.{threading.get_ident()}{DRAFT}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(content)
            draft.replace(self.folder / name)
        except OSError:
            with suppress(OSError):
                draft.unlink()
            return
        with self._lock:
            self._total += len(content) - self._bytes.pop(name, 0)
            self._bytes[name] = len(content)
            while self._total > self.limit and len(self._bytes) > 1:
                oldest, size = self._bytes.popitem(last=False)
                self._total -= size
                with suppress(OSError):
                    (self.folder / oldest).unlink()

    def _listed(self) -> OrderedDict[str, int]:
        """List what is kept; a draft was left by a process that was killed."""
        kept = []
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.name.endswith(DRAFT):
                        os.unlink(entry)
                    elif entry.name.endswith(".jpg") and entry.is_file(follow_symlinks=False):
                        facts = entry.stat(follow_symlinks=False)
                        kept.append((facts.st_mtime_ns, entry.name, facts.st_size))
        return OrderedDict((name, size) for _, name, size in sorted(kept))
