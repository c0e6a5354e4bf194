"""Stages: finished parts of a long judgement, in files, to resume from after an interruption.

A stage is read only if it was stored whole and of the same data: a file begins with a digest of
the data and of the content. Where there are several processes, the first one reads and writes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from balancemix import files, processes
from balancemix.judge.blocks import blocks

_NAMES = ("basis", "scores")
_DIGEST = 32  # bytes


class Stages:
    """The stages in a folder; without one, nothing is stored."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def load(self, name: str, key: bytes) -> dict[str, Tensor] | None:
        """Read a stage of this key; a file that is damaged, or of another key, is ignored."""
        from safetensors.torch import load

        if self.folder is None:
            return None
        content = None
        if processes.rank() == 0:
            with suppress(OSError):
                stored = self._path(name).read_bytes()
                if stored[:_DIGEST] == _digest(key, stored[_DIGEST:]):
                    content = stored[_DIGEST:]
        content = processes.broadcast(content)
        return None if content is None else load(content)

    def save(self, name: str, key: bytes, tensors: Mapping[str, Tensor]) -> None:
        """Store a stage."""
        from safetensors.torch import save

        if self.folder is None or processes.rank() != 0:
            return
        content = save({name: tensor.cpu().contiguous() for name, tensor in tensors.items()})
        files.write_bytes(self._path(name), _digest(key, content) + content)

    def remove(self) -> None:
        """Delete the stages, and their folder if nothing else is in it."""
        if self.folder is None or processes.rank() != 0:
            return
        for name in _NAMES:
            with suppress(FileNotFoundError, NotADirectoryError):  # there is nothing to delete
                self._path(name).unlink()
        with suppress(OSError):
            self.folder.rmdir()

    def _path(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{name}.stage"


def fingerprint(*parts: Tensor | str | int | bytes | None) -> bytes:
    """Compute a digest of data and settings."""
    digest = hashlib.blake2b(digest_size=_DIGEST)
    for part in parts:
        if isinstance(part, Tensor):
            digest.update(f"{part.dtype} {tuple(part.shape)}".encode())
            for rows in blocks(len(part)):  # as bytes: NumPy does not know bfloat16
                digest.update(part[rows].cpu().contiguous().view(torch.uint8).numpy().data)
        else:
            digest.update(f"{part!r};".encode())
    return digest.digest()


def _digest(key: bytes, content: bytes) -> bytes:
    digest = hashlib.blake2b(key, digest_size=_DIGEST)
    digest.update(content)
    return digest.digest()
