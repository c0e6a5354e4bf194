"""What the package calls its files: the one place to change when they are renamed."""

import os
import shutil
import tempfile
from pathlib import Path

from balancemix import manifest
from balancemix.directory import FILES

SCRATCH = "TORTURE_SCRATCH"
OUTPUTS = ".outputs.json"  # checksums of what later commands wrote into a run


def file_of(meaning: str) -> str:
    """Name a file of a run by its short name."""
    return FILES[meaning]


def hide_manifest(folder: Path) -> tuple[Path, bytes]:
    """Take the checksums out of a run, as if it were an old one."""
    path = folder / manifest.NAME
    content = path.read_bytes()
    path.unlink()
    return path, content


def show_manifest(path: Path, content: bytes) -> None:
    """Put the checksums back."""
    path.write_bytes(content)


def scratch() -> str:
    """Make a folder for cases, in memory where there is such a place; processes share it."""
    if SCRATCH not in os.environ:
        shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        os.environ[SCRATCH] = tempfile.mkdtemp(dir=shared, prefix="torture-")
    return os.environ[SCRATCH]


def clear() -> None:
    """Remove that folder."""
    shutil.rmtree(os.environ.pop(SCRATCH, ""), ignore_errors=True)
