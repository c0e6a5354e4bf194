"""Run a bench: check its data, store its plan, train the runs that are missing."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from balancemix.bench.finished import Finished
from balancemix.bench.layouts import make_tables
from balancemix.bench.plan import BenchPlan, Job, read_bench
from balancemix.bench.pool import Task, train_all
from balancemix.bench.progress import BenchProgress
from balancemix.bench.render import check_tables
from balancemix.bench.scores import read_results
from balancemix.data import BUILT_IN
from balancemix.errors import InputError
from balancemix.files import check_folder, write_json
from balancemix.manifest import Outputs
from balancemix.progress import progress
from balancemix.run import Run

UNITS = 1000  # of the bar, for an epoch of BCE


def check_data(plan: BenchPlan) -> None:
    """Refuse missing data before any run starts."""
    for path in plan.data:
        if path not in BUILT_IN and not Path(path).expanduser().exists():
            raise InputError(f"data {path!r}: not found; name it with --data")


def check_out(out: Path) -> None:
    """Refuse a directory that holds other files and is not a bench, and tables of other origin."""
    plan, folder = out / "bench.json", out / "tables"
    if not plan.is_file():
        check_folder(out, (), "a bench")  # a bench stores its plan before anything else
    check_tables(folder)
    if folder.is_dir() and not Outputs(folder).exists:
        check_tables(folder, make_tables(read_results(read_bench(str(plan)), out / "runs")))


def remember(out: Path, plan: BenchPlan) -> None:
    """Store the plan in the bench's directory, which must not hold another plan's runs."""
    path = out / "bench.json"
    if path.exists():
        changed = grown(read_bench(str(path)).tree(), plan.tree())
        if changed:
            raise InputError(
                f"{out}: holds the runs of another plan ({changed}); use another --out"
            )
    write_json(path, plan.tree())


def enter_finished(out: Path, chosen: Sequence[Job], finished: Finished) -> None:
    """Enter the runs that have ended in this bench's directory into the ledger."""
    for job in chosen:
        run = Run(out / "runs" / job.name)
        if run.has("metrics"):
            finished.enter(job, run)


def train_missing(
    out: Path,
    chosen: Sequence[Job],
    at_once: int | None = None,
    finished: Finished | None = None,
) -> dict[str, str]:
    """Train unfinished runs, `at_once` at a time (default: one per core); return failures.

    Those that the ledger knows are not trained; those that end are entered into it.
    """
    missing = [
        job
        for job in chosen
        if not Run(out / "runs" / job.name).has("metrics")
        and (finished is None or finished.find(job) is None)
    ]
    if not missing:
        return {}
    tasks = [Task(job.name, job.plan.tree(), out / "runs" / job.name) for job in missing]
    costs = {job.name: _cost_left(out, job) for job in missing}
    by_name = {job.name: job for job in missing}

    def enter(name: str, seconds: float | None) -> None:
        if finished is not None:
            run = Run(out / "runs" / name)
            finished.enter(by_name[name], run, trained=True, seconds=seconds)

    with progress(f"{len(missing)} runs", sum(costs.values())) as bar:
        overall = BenchProgress(out, costs, bar, enter)
        train_all(tasks, at_once or _cores(), overall)
    return overall.failures


def grown(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Describe how a plan differs from an older one; "" if it only grew.

    >>> grown({"seeds": [0]}, {"seeds": [0, 1]}), grown({"seeds": [0, 2]}, {"seeds": [0]})
    ('', 'seeds: 2 is gone')
    """
    changes = []
    for name in ("noises", "seeds", "data"):
        before, after = old.get(name, []), new.get(name, [])
        gone = [str(item) for item in before if item not in after]
        if gone:
            changes.append(f"{name}: {', '.join(gone)} is gone")
        elif name == "data" and before and before[0] != after[0]:
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
    """Estimate the remaining cost of a run by the epochs in its log."""
    done = len(Run(out / "runs" / job.name).log)
    return round(UNITS * job.cost * max(1 - done / job.plan.train.epochs, 0)) + 1


def _cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
