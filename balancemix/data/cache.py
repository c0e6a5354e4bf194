"""Resized images kept, so that a file is decoded once for all epochs and not once for each.

Decoding and resizing a photograph takes ten times as long as augmenting it. A store fills as rows
are asked for, by whichever process is first; two that fill a row at once write the same bytes. What
comes out of any store is bit for bit what decoding the file gives.
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
from typing import TYPE_CHECKING, Any

from balancemix.errors import InputError, suggest

if TYPE_CHECKING:
    from PIL.Image import Image

Read = Callable[[Path, int], "Image"]  # decodes a file and resizes it, to size×size RGB

KINDS = ("auto", "memory", "disk", "off")
LAYOUT = "1"  # of a file of resized images; another one gets another name


class Store:
    """The resized images of N files, each decoded whenever it is asked for."""

    keeps = False

    def __init__(self, paths: Sequence[Path | str], size: int, read: Read) -> None:
        # As text, which is handed to a loading process in a twentieth of the time of paths.
        self.paths, self.size, self.read = [os.fspath(path) for path in paths], size, read

    def image(self, i: int) -> Image:
        """Return file i as size×size RGB."""
        return self.read(Path(self.paths[i]), self.size)

    def bytes(self) -> int:
        """Count the bytes of all images."""
        return len(self.paths) * self.size**2 * 3


class Kept(Store):
    """Images kept in a file, which the processes that we start share.

    It is a `file` on the disk, which later runs find, or one in memory, without a name, in which
    only images that were decoded take any room. A record is an image's pixels and a checksum, on
    the disk also of its file's length and time. A record that is missing, half written or older
    than its file does not check, and is made again. Records are read and written, not mapped:
    memory or a disk that runs out then costs time, and not the process.
    """

    keeps = True

    def __init__(self, paths: Sequence[Path], size: int, read: Read, file: Path | None) -> None:
        super().__init__(paths, size, read)
        self.file = file
        self.stamps = array("L", map(_stamp, paths) if file else ())
        self.opened = _in_memory(self.bytes()) if file is None else _on_disk(file)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy of what is in memory begins empty.
        return Kept, ([Path(path) for path in self.paths], self.size, self.read, self.file)

    def __del__(self) -> None:
        if hasattr(self, "opened"):
            os.close(self.opened)

    def image(self, i: int) -> Image:
        """Return file i as size×size RGB, from its record if there is one."""
        from PIL import Image

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
        return (checksum or 1).to_bytes(4, "little")  # 0 is what was never written reads as


def _hand_over(store: Kept) -> tuple[Any, ...]:
    """Pickle for a process that we start: it gets the same file under a number of its own."""
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
    """Open a file without a name; only what is written to it takes memory."""
    processes, free = _processes(), available_memory()
    needed *= processes
    if needed > free:
        taken = f"{needed / 1e6:.1f} MB" + f" in {processes} processes" * (processes > 1)
        raise _refusal(f"images take {taken}, {free / 1e6:.1f} MB of memory are free")
    try:
        if hasattr(os, "memfd_create"):
            # Neither bounded by /dev/shm, 64 MB in many containers, as shared memory with a name
            # is, nor lost on spawned processes, as an anonymous mapping is.
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
    """Make the store of that kind; "auto" is memory if there is room, else disk, else off."""
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
    """Name the folder of kept images; it may be deleted at any time."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "balancemix" / "images"


def _choose(needed: int, folder: Path) -> str:
    """Take a quarter of the memory at most, or half of the disk: others want some too."""
    if not hasattr(os, "pread"):
        return "off"
    if needed * _processes() <= available_memory() // 4:
        return "memory"
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


def available_memory() -> int:
    """Count the bytes that may still be taken, by the machine and its container.

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
    """Count the bytes that each of our control groups, of version 1 or 2, may still take."""
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
            with suppress(OSError, ValueError):  # a group without limit, whose maximum is "max"
                most, used = (int((folder / name).read_text()) for name in names)
                room.append(max(most - used + _evictable(folder), 0))
    return room


def _evictable(group: Path) -> int:
    """Count the bytes of files that a control group has read and would give up when asked."""
    with suppress(OSError):
        counts = (line.split() for line in (group / "memory.stat").read_text().splitlines())
        return sum(int(n) for name, n in counts if name in ("active_file", "inactive_file"))
    return 0
