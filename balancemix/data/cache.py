"""Squashed images kept, so that a file is decoded once for all epochs and not once for each.

Decoding and squashing a photograph takes ten times as long as varying it. A store fills as rows are
asked for, by whichever process is first; two that fill a row at once write the same bytes. What
comes out of any store is bit for bit what decoding the file gives.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from balancemix.data import images
from balancemix.errors import InputError
from balancemix.wording import suggest

if TYPE_CHECKING:
    from PIL.Image import Image

KINDS = ("auto", "memory", "disk", "off")
LAYOUT = "1"  # of a file of squashed images; another one gets another name


class Store:
    """The squashed images of N files, each decoded whenever it is asked for."""

    keeps = False

    def __init__(self, paths: Sequence[Path], size: int) -> None:
        self.paths, self.size = list(paths), size

    def image(self, i: int) -> Image:
        """Return file i as size×size RGB."""
        return images.squash(images.decode(self.paths[i]), self.size)

    def bytes(self) -> int:
        """Count the bytes of all images."""
        return len(self.paths) * self.size**2 * 3


class InMemory(Store):
    """Images kept in memory, which loading processes share."""

    keeps = True

    def __init__(self, paths: Sequence[Path], size: int) -> None:
        super().__init__(paths, size)
        # Pages that nobody has written to yet take no memory.
        self.pixels = torch.empty(len(paths), size, size, 3, dtype=torch.uint8)
        self.kept = torch.zeros(len(paths), dtype=torch.bool)
        for tensor in (self.pixels, self.kept):
            tensor.share_memory_()  # type: ignore[no-untyped-call]

    def image(self, i: int) -> Image:
        """Return file i as size×size RGB, from memory if it is there."""
        from PIL import Image

        if self.kept[i]:
            return Image.fromarray(self.pixels[i].numpy())
        image = super().image(i)
        self.pixels[i] = torch.from_numpy(np.array(image))
        self.kept[i] = True  # after its pixels: another process may be looking
        return image


class OnDisk(Store):
    """Images kept in one file, which other processes and later runs share.

    A record is an image's pixels and a checksum of them and of its file's length and time. A record
    that is missing, half written or older than its file does not check, and is made again. The file
    is read and written, not mapped: a disk that runs full then costs time, and not the process.
    """

    keeps = True

    def __init__(self, paths: Sequence[Path], size: int, folder: Path) -> None:
        super().__init__(paths, size)
        self.stamps = [_stamp(path) for path in self.paths]
        self.file = folder / _name(self.paths, size)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._open()
        except OSError as error:
            raise InputError(
                f"{self.file}: cannot keep images ({error.strerror}); pass --cache memory or off"
            ) from error

    def _open(self) -> None:
        self.opened = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o644)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "opened"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(
            state
        )  # in another process, where the number of an open file means nothing
        self._open()

    def __del__(self) -> None:
        if hasattr(self, "opened"):
            os.close(self.opened)

    def image(self, i: int) -> Image:
        """Return file i as size×size RGB, from the disk if it is there."""
        from PIL import Image

        length = self.size**2 * 3
        record = os.pread(self.opened, length + 4, i * (length + 4))
        pixels, found = record[:length], record[length:]
        if found == self._checksum(i, pixels):
            return Image.frombytes("RGB", (self.size, self.size), pixels)
        image = super().image(i)
        pixels = image.tobytes()
        with suppress(OSError):  # a full disk: the image is decoded again next time
            os.pwrite(self.opened, pixels + self._checksum(i, pixels), i * (length + 4))
        return image

    def _checksum(self, i: int, pixels: bytes) -> bytes:
        return zlib.crc32(pixels, self.stamps[i]).to_bytes(4, "little")


def open_store(kind: str, paths: Sequence[Path], size: int, folder: Path | None = None) -> Store:
    """Make the store of that kind; "auto" is memory if there is room, else disk, else off.

    >>> open_store("off", [], 128).bytes()
    0
    """
    if kind not in KINDS:
        raise InputError(f"cache: unknown {kind!r}; {suggest(kind, KINDS)}")
    folder = folder or default_folder()
    plain = Store(paths, size)
    if kind == "auto":
        kind = _choose(plain.bytes(), folder)
    if kind == "memory":
        return InMemory(paths, size)
    return OnDisk(paths, size, folder) if kind == "disk" else plain


def default_folder() -> Path:
    """Name the folder of kept images; it may be deleted at any time."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "balancemix" / "images"


def _choose(needed: int, folder: Path) -> str:
    """Take a quarter of the memory at most, or half of the disk: others want some too."""
    # Each of a machine's training processes keeps the images once more.
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if needed * processes <= available_memory() // 4:
        return "memory"
    if not hasattr(os, "pread"):
        return "off"
    here = next(parent for parent in (folder, *folder.parents) if parent.exists())
    writable = os.access(here, os.W_OK)
    return "disk" if writable and needed <= shutil.disk_usage(here).free // 2 else "off"


def available_memory() -> int:
    """Count the bytes that processes may share, by the machine, its container and /dev/shm.

    >>> available_memory() >= 0
    True
    """
    limits = []
    with suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable"))
        limits.append(int(line.split()[1]) * 1024)
    with suppress(OSError, ValueError):  # "max" is no limit
        group = Path("/sys/fs/cgroup")
        most, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        limits.append(max(most - used, 0))
    with suppress(OSError):  # where torch shares memory; containers are often given 64 MB
        if sys.platform == "linux":
            limits.append(shutil.disk_usage("/dev/shm").free)
    if not limits and hasattr(os, "sysconf"):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    return min(limits, default=0)


def _stamp(path: Path) -> int:
    """Sum up a file's length and time; a missing one will be complained of when it is decoded."""
    if not path.exists():
        return 0
    status = path.stat()
    return zlib.crc32(f"{status.st_size} {status.st_mtime_ns}".encode())


def _name(paths: Sequence[Path], size: int) -> str:
    """Name a file of images by what its bytes depend on, readers' versions included."""
    import PIL

    versions = f"{LAYOUT} {PIL.__version__}".encode()
    content = b"\0".join([versions, *(os.fsencode(path.resolve()) for path in paths)])
    digest = hashlib.blake2b(content, digest_size=8).hexdigest()
    return f"{paths[0].parent.name if paths else 'empty'}-{size}-{digest}"
