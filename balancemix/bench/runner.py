"""Run a bench: check what is asked for, remember the plan, train what is missing under one bar."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from balancemix.bench.plan import BenchPlan, Job, read_bench
from balancemix.bench.pool import Task, train_all
from balancemix.bench.progress import BenchProgress
from balancemix.data import BUILT_IN
from balancemix.errors import InputError
from balancemix.files import write_json
from balancemix.progress import progress
from balancemix.run import Run

UNITS = 1000  # of the bar, for an epoch of BCE


def check_data(plan: BenchPlan) -> None:
    """Refuse missing data once, rather than in every run."""
    for path in plan.data:
        if path not in BUILT_IN and not Path(path).expanduser().exists():
            raise InputError(f"data {path!r} is not there; give it by --data")


def remember(out: Path, plan: BenchPlan) -> None:
    """Store the plan, and refuse a directory of another one."""
    path = out / "bench.json"
    if path.exists():
        changed = grown(read_bench(str(path)).tree(), plan.tree())
        if changed:
            raise InputError(f"{out}: holds another plan's runs ({changed}); give another --out")
    write_json(path, plan.tree())


def train_missing(out: Path, chosen: Sequence[Job], at_once: int | None = None) -> dict[str, str]:
    """Train the runs that have not ended, `at_once` at a time (one a core); return failures."""
    missing = [job for job in chosen if not Run(out / "runs" / job.name).has("metrics")]
    if not missing:
        return {}
    tasks = [Task(job.name, job.plan.tree(), out / "runs" / job.name) for job in missing]
    costs = {job.name: _cost_left(out, job) for job in missing}
    with progress(f"{len(missing)} runs", sum(costs.values())) as bar:
        shown = BenchProgress(out, costs, bar)
        train_all(tasks, at_once or _cores(), shown)
    return shown.failures


def grown(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Describe what a plan changed of an older one; nothing if it only grew.

    >>> grown({"seeds": [0]}, {"seeds": [0, 1]}), grown({"seeds": [0, 2]}, {"seeds": [0]})
    ('', 'seeds: 2 is gone')
    """
    changes = []
    for name in ("noises", "seeds", "data"):
        before, after = old.get(name, []), new.get(name, [])
        gone = [str(item) for item in before if item not in after]
        if gone:
            changes.append(f"{name}: {', '.join(gone)} is gone")
        elif name == "data" and before[:1] != after[:1]:
            changes.append(f"data: {before[0]} must stay the first")
    if old.get("settings", {}) != new.get("settings", {}):
        changes.append(f"settings were {old.get('settings')}, are {new.get('settings')}")
    after = {variant["label"]: variant for variant in new.get("methods", [])}
    for variant in old.get("methods", []):
        label = variant["label"]
        if label not in after:
            changes.append(f"methods: {label} is gone")
            continue
        for key in ("name", "settings", "on", "set"):
            if variant.get(key) != after[label].get(key):
                changes.append(f"{label}: {key} was {variant.get(key)}, is {after[label].get(key)}")
    return "; ".join(changes)


def _cost_left(out: Path, job: Job) -> int:
    """Estimate what a run will still cost; one that was started has logged its epochs."""
    done = len(Run(out / "runs" / job.name).log)
    return round(UNITS * job.cost * max(1 - done / job.plan.train.epochs, 0)) + 1


def _cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
