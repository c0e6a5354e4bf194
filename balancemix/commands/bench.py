"""`balancemix bench`: many runs side by side, and the paper's tables of them."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from balancemix.bench.plan import BenchPlan, Job
    from balancemix.progress import Progress

DESCRIPTION = """\
compare methods, noises and seeds: many runs, then the paper's tables

PLAN is a TOML file, or one of the shipped plans, which --list shows:
  data = ["features.npz"]            # or by --data
  noises = ["none", "mislabel:0.4"]
  seeds = [0, 1, 2]
  [settings.train]                   # shared by all runs, the sections of a train plan
  epochs = 30
  [[methods]]
  name = "bce"
  category = "Default"
  [[methods]]
  name = "balancemix"
  label = "BalanceMix w/o Min."
  settings = { minority = false }    # of the method; others as set = ["train.lr=0.02"]

Each run is a directory of `balancemix train` under OUT/runs, trained on one core. Ended runs are
never repeated and killed ones go on from their last epoch: give the same command again. A plan may
grow between two commands. Tables go to OUT/tables as Markdown, CSV and LaTeX.

examples:
  balancemix bench quick
  balancemix bench paper-tables --data features.npz --out bench/coco --jobs 2
  balancemix bench paper-tables --data features.npz --out bench/coco --only bce,balancemix
  balancemix bench paper-tables --data features.npz --out bench/coco --tables   # what there is"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("plan", nargs="?", metavar="PLAN", help="see above")
    parser.add_argument("--out", type=Path, help="directory of all runs (default bench/PLAN)")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="runs at once (default: one for each core)"
    )
    parser.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="DATA",
        help="instead of the plan's, repeatable",
    )
    parser.add_argument("--seeds", metavar="0,1,2", help="instead of the plan's")
    parser.add_argument(
        "--paper", metavar="TABLE", help="the paper's numbers to compare with: coco, voc, …"
    )
    parser.add_argument("--only", metavar="METHOD,…", help="train only these now, by name or label")
    parser.add_argument("--tables", action="store_true", help="train nothing, write the tables")
    parser.add_argument("--list", action="store_true", help="show the shipped plans")


def run(arguments: argparse.Namespace) -> int:
    """Train what is missing and write the tables; 1 if a run failed."""
    from balancemix.bench.plan import distinct, jobs
    from balancemix.errors import InputError

    if arguments.list:
        show_plans()
        return 0
    plan = planned(arguments)
    out = arguments.out or Path("bench") / Path(arguments.plan).stem
    if arguments.jobs is not None and arguments.jobs < 1:
        raise InputError(f"--jobs must be at least 1, it is {arguments.jobs}")
    only = arguments.only.split(",") if arguments.only else []
    chosen = distinct(jobs(plan, only))
    if not arguments.tables:
        check_data(plan)
    remember(out, plan)
    failures: dict[str, str] = {}
    if not arguments.tables:
        missing = [job for job in chosen if not (out / "runs" / job.name / "metrics.json").exists()]
        try:
            failures = train(out, missing, arguments.jobs or cores())
        except KeyboardInterrupt:
            print(f"balancemix: stopped; the same command goes on in {out}", file=sys.stderr)
            return 130
    show_tables(out, plan)
    for name, line in failures.items():
        print(f"failed: {name}: {line}  ({out / 'failures' / name}.txt)", file=sys.stderr)
    return 1 if failures else 0


def planned(arguments: argparse.Namespace) -> BenchPlan:
    """Read the plan, with what the flags say instead."""
    import dataclasses

    from balancemix.bench.paper import paper_scores
    from balancemix.bench.plan import read_bench
    from balancemix.errors import InputError
    from balancemix.plan.shipped import bench_plans

    if arguments.plan is None:
        raise InputError(f"name a PLAN: a TOML file, or one of: {', '.join(bench_plans())}")
    plan = read_bench(arguments.plan)
    changes: dict[str, Any] = {"data": arguments.data} if arguments.data else {}
    if arguments.seeds:
        try:
            changes["seeds"] = [int(seed) for seed in arguments.seeds.split(",")]
        except ValueError:
            raise InputError(f"--seeds {arguments.seeds}: write them as 0,1,2") from None
    if arguments.paper:
        changes["paper"] = arguments.paper
    try:
        plan = dataclasses.replace(plan, **changes)
    except ValueError as error:
        raise InputError(f"{arguments.plan}: {error}") from error
    if plan.paper:
        paper_scores(plan.paper)  # a wrong name must not wait for the end of the runs
    if not plan.data:
        raise InputError(f"{arguments.plan} names no data; give it by --data")
    return plan


def check_data(plan: BenchPlan) -> None:
    """Refuse data that is not there once, rather than in every run."""
    from balancemix.data import BUILT_IN
    from balancemix.errors import InputError

    for path in plan.data:
        if path not in BUILT_IN and not Path(path).expanduser().exists():
            raise InputError(f"data {path!r} is not there; give it by --data")


def remember(out: Path, plan: BenchPlan) -> None:
    """Store the plan, and refuse a directory of another one."""
    from balancemix.bench.plan import grown
    from balancemix.errors import InputError
    from balancemix.files import write_json
    from balancemix.plan.plan import read_tree

    path = out / "bench.json"
    if path.exists():
        changed = grown(read_tree(path), plan.tree())
        if changed:
            raise InputError(f"{out}: holds another plan's runs ({changed}); give another --out")
    write_json(path, plan.tree())


def train(out: Path, missing: list[Job], at_once: int) -> dict[str, str]:
    """Train the missing runs under one bar; return what failed, and why."""
    from balancemix.bench.pool import Task, train_all
    from balancemix.progress import progress

    if not missing:
        return {}
    tasks = [Task(job.name, job.plan.tree(), out / "runs" / job.name) for job in missing]
    costs = {job.name: left(out, job) for job in missing}
    with progress(f"{len(missing)} runs", sum(costs.values())) as show:
        overview = Overview(out, costs, show)
        train_all(tasks, at_once, overview)
    return overview.failures


UNITS = 1000  # of the bar, for an epoch of BCE


def left(out: Path, job: Job) -> int:
    """Say what a run is expected to cost yet; one that was begun has logged its epochs."""
    path = out / "runs" / job.name / "log.jsonl"
    done = len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0
    return round(UNITS * job.cost * max(1 - done / job.plan.train.epochs, 0)) + 1


class Overview:
    """One bar for all runs; it counts what they are expected to cost."""

    def __init__(self, out: Path, costs: dict[str, int], show: Progress) -> None:
        self.out, self.show, self.costs = out, show, costs
        self.first: dict[str, float] = {}  # where a run was when it was first heard of
        self.counted = dict.fromkeys(costs, 0)
        self.failures: dict[str, str] = {}
        self.done, self.warnings = 0, set[str]()

    def at(self, name: str, share: float) -> None:
        """Move the bar by what is new; where a run goes on is where it begins here."""
        first = self.first.setdefault(name, share if share < 1 else 0.0)
        reached = round(self.costs[name] * (share - first) / (1 - first))
        if reached > self.counted[name]:
            self.show.advance(reached - self.counted[name])
            self.counted[name] = reached

    def ended(self, name: str, metrics: dict[str, Any]) -> None:
        """Count a run, and say its score."""
        (self.out / "failures" / f"{name}.txt").unlink(missing_ok=True)
        self.show.line(f"{name}: mAP {metrics['last']['mAP']:.1f}")
        self._over(name)

    def failed(self, name: str, line: str, trace: str) -> None:
        """Keep what went wrong for the end."""
        from balancemix.files import write_text

        self.failures[name] = line
        write_text(self.out / "failures" / f"{name}.txt", trace.rstrip() + "\n")
        self.show.line(f"{name}: failed: {line}")
        self._over(name)

    def warned(self, name: str, text: str) -> None:
        """Say once what many runs would say."""
        if text not in self.warnings:
            self.warnings.add(text)
            self.show.line(f"warning: {text}")

    def _over(self, name: str) -> None:
        self.done += 1
        self.show.say(ended=self.done, failed=len(self.failures))
        self.at(name, 1.0)


def show_tables(out: Path, plan: BenchPlan) -> None:
    """Write every table, and print those that fit a terminal."""
    from balancemix.bench.layouts import make_tables
    from balancemix.bench.render import terminal, write_tables
    from balancemix.bench.scores import read_results
    from balancemix.commands.show import console

    tables = make_tables(read_results(plan, out / "runs"))
    write_tables(out / "tables", tables)
    screen = console()
    for table in tables:
        if table.shown:
            screen.print(terminal(table, screen.width))
    screen.print(f"{len(tables)} tables: {out / 'tables'}", soft_wrap=True)


def show_plans() -> None:
    """Print the shipped plans with their head comments."""
    from balancemix.plan.shipped import bench_plans, summary

    for name, path in bench_plans().items():
        first, *rest = summary(path)
        print(f"{name}: {first}", *(f"  {line}" for line in rest), "", sep="\n")


def cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
