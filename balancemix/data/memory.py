"""How much memory may still be taken, by the machine and by the container that we are in."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


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
