"""Whether two runs are the same, bit for bit, but for the time that they took."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from balancemix.directory import FILES
from tests.torture import names
from tests.torture.run_files import canonical

TIMES = re.compile("second|time|memory")


def without_times(tree: Any) -> Any:
    """Leave out what a clock says."""
    if isinstance(tree, dict):
        kept = {key: value for key, value in tree.items() if not TIMES.search(key)}
        return {key: without_times(value) for key, value in kept.items()}
    return [without_times(value) for value in tree] if isinstance(tree, list) else tree


def arrays_of(path: Path) -> dict[str, Any]:
    """Read the arrays of an .npz."""
    with np.load(path, allow_pickle=False) as arrays:
        return {name: array for name, array in arrays.items() if name != "root"}  # where it is


def run_content(run: Path) -> dict[str, Any]:
    """Read all that a finished run came to."""
    files = {meaning: run / names.file_of(meaning) for meaning in FILES}
    content: dict[str, Any] = {"model": files["model"].read_bytes()}
    for meaning in ("metrics", "per_class", "plan", "noise", "auto"):
        if files[meaning].exists():
            content[meaning] = repr(without_times(json.loads(files[meaning].read_bytes())))
    lines = files["log"].read_text(encoding="utf-8").splitlines()
    content["log"] = repr([without_times(json.loads(line)) for line in lines])
    for meaning in ("table", "truth", "judge"):
        if files[meaning].exists():
            content[meaning] = canonical(arrays_of(files[meaning]))
    return content


def bench_content(bench: Path) -> dict[str, Any]:
    """Read all runs of a bench."""
    return {run.name: run_content(run) for run in sorted((bench / "runs").iterdir())}
