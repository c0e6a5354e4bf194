"""What the package calls its files: the one place to change when they are renamed."""

import functools
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from balancemix import run as run_

FILES = {
    "plan": ["plan.json"],
    "noise": ["noise.json"],
    "log": ["log.jsonl"],
    "metrics": ["metrics.json"],
    "per class": ["per_class.json", "classes.json"],
    "label table": ["label_table.npz", "labels.npz"],
    "truth": ["truth.npz"],
    "weights": ["model.safetensors"],
    "checkpoint": ["checkpoint.pt"],
}
SCRATCH = "TORTURE_SCRATCH"
MANIFEST = ["checksums.json", "manifest.json"]  # without it a run is an old one
OUTPUTS = ".outputs.json"  # what later commands wrote into a run
RESTORE = ["read_checkpoint", "stored"]  # the method of Run that loads checkpoint and log


@functools.cache
def file_of(meaning: str) -> str:
    """Name a file of a run by its meaning, in this version of the package."""
    listed = str(getattr(run_, "FILES", "")) + Path(run_.__file__).read_text(encoding="utf-8")
    return next(name for name in FILES[meaning] if f'"{name}"' in listed or f"'{name}'" in listed)


def restore(run: Any) -> Any:
    """Load what a resumed run begins with."""
    name = next(name for name in RESTORE if hasattr(run, name))
    return getattr(run, name)()


def attribute(thing: Any, name: str) -> Any:
    """Read an attribute, whether it is a property or a method."""
    value = getattr(thing, name)
    return value() if callable(value) else value


def hide_manifest(folder: Path) -> tuple[Path, bytes] | None:
    """Take the manifest out of a run, as if it were an old one."""
    for name in MANIFEST:
        path = folder / name
        if path.exists():
            content = path.read_bytes()
            path.unlink()
            return path, content
    return None


def show_manifest(folder: Path, hidden: tuple[Path, bytes]) -> None:
    """Put the manifest back."""
    path, content = hidden
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
