"""Plant the bugs of planted.toml, one at a time, in a copy, and see that the torture finds each."""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.torture import figures
from tests.torture.runner import Notebook

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Planted:
    """A bug: in `file`, `new` instead of `old`; `count` cases of `part` must find it."""

    name: str
    file: str
    old: str
    new: str
    part: str
    count: int


def read() -> list[Planted]:
    """Read all bugs."""
    tree = tomllib.loads((ROOT / "tests" / "torture" / "planted.toml").read_text(encoding="utf-8"))
    return [Planted(name, **bug) for name, bug in tree.items()]


def find(bug: Planted, plant: bool = True) -> set[str]:
    """Try the cases on a copy of the package with the bug, and list what fails."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for part in ("balancemix", "tests"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        path = copy / bug.file
        text = path.read_text(encoding="utf-8")
        if text.count(bug.old) != 1:
            raise ValueError(f"{bug.file} has {text.count(bug.old)} of {bug.old!r}, not 1")
        if plant:
            path.write_text(text.replace(bug.old, bug.new), encoding="utf-8")
        words = ["--only", bug.part, "--count", str(bug.count), "--processes", "1"]
        state = copy / "state.jsonl"
        done = subprocess.run(
            [sys.executable, "-m", "tests.torture", *words, "--state", str(state)],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": name, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        if done.returncode not in (0, 1) or not state.exists():
            raise RuntimeError(f"the torture ended with {done.returncode}: {done.stderr[-300:]}")
        return {line.rpartition(" (case")[0] for line in figures.failures(Notebook(state).results)}


def find_all(say: Callable[[str], object]) -> int:
    """Look for every bug; 1 if one is not found. What fails without a bug does not count."""
    missed, bugs = 0, read()
    for bug in bugs:
        new = find(bug) - find(bug, plant=False)
        missed += not new
        say(f"{bug.name:40} {'found: ' + min(new) if new else 'NOT FOUND'}\n")
    say(f"{len(bugs) - missed} of {len(bugs)} planted bugs are found\n")
    return 1 if missed else 0
