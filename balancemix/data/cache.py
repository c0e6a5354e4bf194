"""Kept images: a file is decoded and resized once for all epochs, not once for each.

Decoding and resizing a photograph takes ten times as long as augmenting it. A store fills as rows
are read, by whichever process is first; two that write the same row write the same bytes. Every
store returns bit for bit what decoding the file gives.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zlib
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import reduction
from pathlib import Path
from typing import Any

import PIL
from PIL import Image

from balancemix.errors import InputError, suggest

Read = Callable[[Path, int], Image.Image]  # decodes a file as size×size RGB

KINDS = ("auto", "memory", "disk", "off")
LAYOUT = "2"  # of a file of kept images; part of its name


class Store:
    """The resized images of N files, each decoded every time."""

    keeps = False

    def __init__(self, paths: Sequence[Path | str], size: int, read: Read) -> None:
        # As text, which is sent to a loading process in a twentieth of the time of paths.
        self.paths, self.size, self.read = [os.fspath(path) for path in paths], size, read

    def image(self, i: int) -> Image.Image:
        """Return file i as size×size RGB."""
        return self.read(Path(self.paths[i]), self.size)

    def bytes(self) -> int:
        """Count the bytes of all images."""
        return len(self.paths) * self.size**2 * 3


class Kept(Store):
    """Images kept in a file that is shared with the processes that this one starts.

    It is a `file` on disk, which later runs use again, or an unnamed one in memory, where only
    decoded images take space. A record is an image's pixels and a checksum, on disk also of its
    file's size and time. A record that is missing, half written or older than its file fails the
    checksum and is written again. Records are read and written, not mapped: if memory or disk runs
    out, that costs time but does not kill the process.
    """

    keeps = True

    def __init__(self, paths: Sequence[Path], size: int, read: Read, file: Path | None) -> None:
        super().__init__(paths, size, read)
        self.file = file
        self.stamps = array("L", map(_stamp, paths) if file else ())
        self.opened = _in_memory(self.bytes()) if file is None else _on_disk(file)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy of a store in memory starts empty.
        return Kept, ([Path(path) for path in self.paths], self.size, self.read, self.file)

    def __del__(self) -> None:
        if hasattr(self, "opened"):
            os.close(self.opened)

    def image(self, i: int) -> Image.Image:
        """Return file i as size×size RGB, from its record if there is one."""
        length = self.size**2 * 3
        place = i * (length + 4)
        record = os.pread(self.opened, length + 4, place)
        pixels, checksum = record[:length], record[length:]
        if checksum == self._checksum(i, pixels):
            return Image.frombytes("RGB", (self.size, self.size), pixels)
        image = super().image(i)
        pixels = image.tobytes()
        with suppress(OSError):  # no room left: the image is decoded again next time
            os.pwrite(self.opened, pixels + self._checksum(i, pixels), place)
        return image

    def _checksum(self, i: int, pixels: bytes) -> bytes:
        checksum = zlib.crc32(pixels, self.stamps[i] if self.stamps else 0)
        return (checksum or 1).to_bytes(4, "little")  # a record never written reads as 0


def _hand_over(store: Kept) -> tuple[Any, ...]:
    """Pickle for a process that we start: it gets a descriptor of the same file."""
    content = store.paths, store.size, store.read, store.file, store.stamps
    return _take_over, (*content, reduction.DupFd(store.opened))


def _take_over(
    paths: Sequence[str], size: int, read: Read, file: Path | None, stamps: array[int], opened: Any
) -> Kept:
    store = Kept.__new__(Kept)
    Store.__init__(store, paths, size, read)
    store.file, store.stamps, store.opened = file, stamps, opened.detach()
    return store


reduction.register(Kept, _hand_over)


def _in_memory(needed: int) -> int:
    """Open an unnamed file; only what is written to it takes memory."""
    processes, free = _processes(), available_memory()
    needed *= processes
    if needed > free:
        taken = f"{needed / 1e6:.1f} MB" + f" in {processes} processes" * (processes > 1)
        raise _refusal(f"images take {taken}, {free / 1e6:.1f} MB of memory are free")
    try:
        if hasattr(os, "memfd_create"):
            # Unlike named shared memory, not limited by /dev/shm (64 MB in many containers);
            # unlike an anonymous mapping, available to spawned processes.
            return os.memfd_create("balancemix")
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())
    except OSError as error:
        raise _refusal(f"cannot share memory ({error.strerror})") from error


def _on_disk(file: Path) -> int:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(
            f"{file}: cannot keep images ({error.strerror}); pass --cache memory or off"
        ) from error


def open_store(
    kind: str, paths: Sequence[Path], size: int, read: Read, folder: Path | None = None
) -> Store:
    """Open a store of a kind; "auto" is memory if there is room, else disk, else off."""
    if kind not in KINDS:
        raise InputError(f"cache: unknown {kind!r}; {suggest(kind, KINDS)}")
    folder = folder or default_folder()
    plain = Store(paths, size, read)
    if kind == "auto":
        kind = _choose(plain.bytes(), folder)
    if kind == "off":
        return plain
    if not hasattr(os, "pread"):
        raise InputError("cache: this system cannot keep images; pass --cache off")
    return Kept(paths, size, read, folder / _name(paths, size) if kind == "disk" else None)


def default_folder() -> Path:
    """Return the folder of kept images; it may be deleted at any time."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "balancemix" / "images"


def _choose(needed: int, folder: Path) -> str:
    """Take at most a quarter of the free memory, or half of the free disk: others need some too."""
    if not hasattr(os, "pread"):
        return "off"
    if needed * _processes() <= available_memory() // 4:
        return "memory"
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    writable = os.access(existing, os.W_OK)
    return "disk" if writable and needed <= shutil.disk_usage(existing).free // 2 else "off"


def _refusal(reason: str) -> InputError:
    return InputError(f"cache: {reason}; pass --cache disk or off")


def _processes() -> int:
    """Count the training processes on this machine, each of which keeps its own images."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def _stamp(path: Path) -> int:
    """Hash a file's size and time; a missing file is an error only when it is decoded."""
    if not path.exists():
        return 0
    status = path.stat()
    return zlib.crc32(f"{status.st_size} {status.st_mtime_ns}".encode())


def _name(paths: Sequence[Path], size: int) -> str:
    """Name a file of images by everything that its bytes depend on, Pillow's version included."""
    versions = f"{LAYOUT} {PIL.__version__}".encode()
    content = b"\0".join([versions, *(os.fsencode(path.resolve()) for path in paths)])
    digest = hashlib.blake2b(content, digest_size=8).hexdigest()
    folder = paths[0].parent.name if paths else "empty"
    return f"{folder[:50]}-{size}-{digest}"  # a name may have 255 bytes


def available_memory() -> int:
    """Count the free bytes of memory, as limited by the machine and its container.

    >>> available_memory() >= 0
    True
    """
    limits = []
    with suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable"))
        limits.append(int(line.split()[1]) * 1024)
    with suppress(OSError):
        membership = Path("/proc/self/cgroup").read_text()
        limits += room_in_groups(membership, Path("/sys/fs/cgroup"))
    if not limits and hasattr(os, "sysconf"):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    return min(limits, default=0)


def room_in_groups(membership: str, mount: Path) -> list[int]:
    """Count the bytes left to each of our control groups, of version 1 or 2."""
    room = []
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, names = mount, ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            root, names = mount / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            with suppress(OSError, ValueError):  # a group without a limit says "max"
                most, used = (int((folder / name).read_text()) for name in names)
                room.append(max(most - used + _evictable(folder), 0))
    return room


def _evictable(group: Path) -> int:
    """Count the bytes of cached files, which a control group gives up on demand."""
    with suppress(OSError):
        counts = (line.split() for line in (group / "memory.stat").read_text().splitlines())
        return sum(int(n) for name, n in counts if name in ("active_file", "inactive_file"))
    return 0
