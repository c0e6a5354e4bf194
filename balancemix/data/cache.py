"""Squashed images kept, so that a file is decoded once for all epochs and not once for each.

Decoding and squashing a photograph takes ten times as long as varying it. A store fills as rows are
asked for, by whichever process is first; two that fill a row at once write the same bytes. What
comes out of any store is bit for bit what decoding the file gives.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zlib
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import reduction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from balancemix.data import images
from balancemix.data.memory import available_memory
from balancemix.errors import InputError, suggest

if TYPE_CHECKING:
    from PIL.Image import Image

KINDS = ("auto", "memory", "disk", "off")
LAYOUT = "1"  # of a file of squashed images; another one gets another name


class Store:
    """The squashed images of N files, each decoded whenever it is asked for."""

    keeps = False

    def __init__(self, paths: Sequence[Path | str], size: int) -> None:
        # As text, which is handed to a loading process in a twentieth of the time of paths.
        self.paths, self.size = [os.fspath(path) for path in paths], size

    def image(self, i: int) -> Image:
        """Return file i as size×size RGB."""
        return images.squash(images.decode(Path(self.paths[i])), self.size)

    def bytes(self) -> int:
        """Count the bytes of all images."""
        return len(self.paths) * self.size**2 * 3


class InMemory(Store):
    """Images kept in memory, which loading processes share; only those decoded take any.

    They are in a file without a name: a byte for each image that says whether it is there, then the
    pixels. It is read and written, not mapped: memory that is refused then costs time, and not the
    process.
    """

    keeps = True

    def __init__(self, paths: Sequence[Path], size: int) -> None:
        super().__init__(paths, size)
        processes, free = _processes(), available_memory()
        needed = self.bytes() * processes
        if needed > free:
            taken = f"{needed / 1e6:.1f} MB" + f" in {processes} processes" * (processes > 1)
            raise _refusal(f"images take {taken}, {free / 1e6:.1f} MB of memory are free")
        try:
            # Neither bounded by /dev/shm, 64 MB in many containers, as shared memory with a name
            # is, nor lost on spawned processes, as an anonymous mapping is.
            self.opened = os.memfd_create("balancemix")
        except OSError as error:
            raise _refusal(f"cannot share memory ({error.strerror})") from error

    def __reduce__(self) -> tuple[Any, ...]:
        return InMemory, ([Path(path) for path in self.paths], self.size)  # a copy begins empty

    def __del__(self) -> None:
        if hasattr(self, "opened"):
            os.close(self.opened)

    def image(self, i: int) -> Image:
        """Return file i as size×size RGB, from memory if it is there."""
        from PIL import Image

        length = self.size**2 * 3
        place = len(self.paths) + i * length
        if os.pread(self.opened, 1, i) == b"\1":
            pixels = os.pread(self.opened, length, place)
            return Image.frombytes("RGB", (self.size, self.size), pixels)
        image = super().image(i)
        with suppress(OSError):  # no memory left: the image is decoded again next time
            if os.pwrite(self.opened, image.tobytes(), place) == length:
                os.pwrite(self.opened, b"\1", i)  # after its pixels: others may be looking
        return image


def _hand_over(store: InMemory) -> tuple[Any, ...]:
    """Pickle for a process that we start: it gets the same file under a number of its own."""
    return _take_over, (store.paths, store.size, reduction.DupFd(store.opened))


def _take_over(paths: Sequence[str], size: int, file: Any) -> InMemory:
    store = InMemory.__new__(InMemory)
    Store.__init__(store, paths, size)
    store.opened = file.detach()
    return store


reduction.register(InMemory, _hand_over)


class InTensor(Store):
    """Images kept in a shared tensor, all taken at once, where there are no files in memory."""

    keeps = True

    def __init__(self, paths: Sequence[Path], size: int) -> None:
        super().__init__(paths, size)
        try:
            self.pixels = torch.empty(len(paths), size, size, 3, dtype=torch.uint8)
            self.kept = torch.zeros(len(paths), dtype=torch.bool)
            for tensor in (self.pixels, self.kept):
                tensor.share_memory_()  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            raise _refusal(f"cannot share memory ({str(error).splitlines()[0]})") from error

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
        self.stamps = [_stamp(path) for path in paths]
        self.file = folder / _name(paths, size)
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
        vars(self).update(state)  # in another process, where our file's number means nothing
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
        return InMemory(paths, size) if hasattr(os, "memfd_create") else InTensor(paths, size)
    return OnDisk(paths, size, folder) if kind == "disk" else plain


def default_folder() -> Path:
    """Name the folder of kept images; it may be deleted at any time."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "balancemix" / "images"


def _choose(needed: int, folder: Path) -> str:
    """Take a quarter of the memory at most, or half of the disk: others want some too."""
    if needed * _processes() <= available_memory() // 4:
        return "memory"
    if not hasattr(os, "pread"):
        return "off"
    here = next(parent for parent in (folder, *folder.parents) if parent.exists())
    writable = os.access(here, os.W_OK)
    return "disk" if writable and needed <= shutil.disk_usage(here).free // 2 else "off"


def _refusal(reason: str) -> InputError:
    return InputError(f"cache: {reason}; pass --cache disk or off")


def _processes() -> int:
    """Count the machine's training processes, each of which keeps the images once more."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


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
