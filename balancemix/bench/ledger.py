"""Ledger: one JSON line for each finished run, in a file that can be committed.

version      of this schema
bench        the bench plan that the run was trained for, and `label`, its row there
data         the name of the data, and `fingerprint`, a digest of its rows, labels and inputs
plan         the run's settings with every default, without those that change no score
versions     of balancemix, torch, numpy and python; empty if they were not noted
chosen       the method that `auto` chose, and `candidates`, the mAP of each on held-out given
             labels; empty where the plan names the method
last, best   scores in percent: mAP in all and by class group, F1
class_ap     the last AP of each class in percent, in the data's order of classes
seconds      total: of the run, null if it was not trained in one go; epochs: of all epochs
             together; epoch: the median epoch
checksum     of all that; the oldest lines have none

A line is appended whole, by one process at a time. A process that is killed meanwhile leaves a torn
last line, which readers ignore and the next process replaces.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from balancemix.errors import DamagedFile, InputError
from balancemix.files import locked, to_json
from balancemix.plan.settings import is_deep

VERSION = 1
LARGEST = 1e12  # number that is not a score
_START = b'{"version": '  # of every line
_REMEDY = "restore the file, or delete the line to train its run again"


@dataclass(frozen=True)
class Entry:
    """What the ledger keeps of a finished run; a score that is not defined is NaN."""

    bench: str
    label: str
    data: str
    fingerprint: str
    plan: dict[str, Any]
    versions: dict[str, str]
    chosen: str
    candidates: dict[str, float]
    last: dict[str, float]
    best: dict[str, float]
    class_ap: list[float]
    seconds: dict[str, float]

    @property
    def metrics(self) -> dict[str, Any]:
        """The scores as a run has them."""
        return {"last": self.last, "best": self.best, "seconds_per_epoch": self.seconds["epoch"]}

    def line(self) -> str:
        """Write the entry as a line of the file."""
        content = {"version": VERSION, **dataclasses.asdict(self)}
        return to_json({**content, "checksum": _checksum(content)}) + "\n"


class Ledger:
    """The entries of a file, in its order; a file that does not exist has none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries = list[Entry]()
        lines, rest = _split(_read(path))
        for number, line in enumerate(lines, 1):
            self.entries.append(_parse(line, f"{path}, line {number}"))
        if rest and _is_torn(rest):
            warnings.warn(
                f"{path}: its last line is not whole, its writer was stopped; it is ignored",
                stacklevel=2,
            )
        elif rest:
            self.entries.append(_parse(rest, f"{path}, line {len(lines) + 1}"))

    def append(self, entry: Entry) -> None:
        """Add an entry at the end of the file, whoever else is adding some."""
        line = entry.line().encode()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with (
            self.path.open("ab", buffering=0) as file,
            locked(self.path, "adding to it", wait=True),
        ):
            content = _read(self.path)
            _, rest = _split(content)
            if rest and _is_torn(rest):
                file.truncate(len(content) - len(rest))
            elif rest:
                line = b"\n" + line
            while line:
                line = line[file.write(line) :]
            os.fsync(file.fileno())
        self.entries.append(entry)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def _split(content: bytes) -> tuple[list[bytes], bytes]:
    """Split into the lines and what follows the last of them."""
    *lines, rest = content.split(b"\n")
    return lines, rest


def _is_torn(rest: bytes) -> bool:
    """Tell whether this is the beginning of a line that was not written to its end."""
    started = rest.startswith(_START) or _START.startswith(rest)
    return started and _loaded(rest) is None


def _loaded(line: bytes) -> Any:
    """Read a line of strict JSON; None if it is not."""
    try:
        return json.loads(line.decode("utf-8"), parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        return None


def _finite(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError("not a finite number")
    return float(text)


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.blake2b(to_json(content).encode(), digest_size=8).hexdigest()


def _parse(line: bytes, where: str) -> Entry:
    content = _loaded(line)
    if not isinstance(content, dict) or is_deep(content):
        raise DamagedFile(f"{where}: is not an entry of a ledger; {_REMEDY}")
    if "checksum" in content and content.pop("checksum") != _checksum(content):
        raise DamagedFile(f"{where}: was changed since it was written; {_REMEDY}")
    version = content.pop("version", None)
    if type(version) is int and version > VERSION:
        raise InputError(
            f"{where}: has version {version}, this balancemix reads {VERSION}; update balancemix"
        )
    try:
        if type(version) is not int or version != VERSION:
            raise ValueError(f"its version is not {VERSION}")
        return _entry(content)
    except ValueError as error:
        raise DamagedFile(f"{where}: {error}; {_REMEDY}") from error


def _entry(content: dict[str, Any]) -> Entry:
    """Check what a line says, and put NaN where it says null."""
    names = [field.name for field in dataclasses.fields(Entry)]
    for name in names:
        if name not in content:
            raise ValueError(f"it has no {name}")
    if unknown := [name for name in content if name not in names]:
        raise ValueError(f"it has an unknown {unknown[0]!r}")
    for name in ("bench", "label", "data", "fingerprint", "chosen"):
        if not isinstance(content[name], str):
            raise ValueError(f"its {name} is not a text")
    for name in ("plan", "versions"):
        if not isinstance(content[name], dict):
            raise ValueError(f"its {name} is not a section")
    if not all(isinstance(version, str) for version in content["versions"].values()):
        raise ValueError("its versions are not texts")
    if not isinstance(content["class_ap"], list):
        raise ValueError("its class_ap is not a list")
    checked = {
        "candidates": _numbers("candidates", content["candidates"], most=100),
        "last": _numbers("last", content["last"], "mAP", most=100),
        "best": _numbers("best", content["best"], "mAP", most=100, counters=("epoch",)),
        "class_ap": [_number("class_ap", value, most=100) for value in content["class_ap"]],
        "seconds": _numbers("seconds", content["seconds"], "epoch"),
    }
    return Entry(**{**content, **checked})


def _numbers(
    name: str, section: Any, needed: str = "", most: float = LARGEST, counters: tuple[str, ...] = ()
) -> dict[str, float]:
    if not isinstance(section, dict):
        raise ValueError(f"its {name} is not a section")
    if needed and needed not in section:
        raise ValueError(f"its {name} has no {needed}")
    return {
        key: _number(f"{name}.{key}", value, LARGEST if key in counters else most)
        for key, value in section.items()
    }


def _number(name: str, value: Any, most: float) -> float:
    if value is None:
        return math.nan
    if type(value) not in (int, float) or not 0 <= value <= most:
        raise ValueError(f"its {name} is not a number from 0 to {most:g}")
    return float(value)
