"""`balancemix bench`: many runs side by side, and the paper's tables of them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from balancemix.bench.plan import BenchPlan

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
  settings = { minority = false }    # of the method; others: set = ["train.lr=0.02"]

Each run is a directory of `balancemix train` under OUT/runs, trained on one core. Finished runs are
not repeated, and killed ones resume from their last epoch: repeat the same command. A plan may grow
between two commands. Tables go to OUT/tables as Markdown, CSV and LaTeX.

With --ledger, each finished run becomes a line of FILE: settings, a fingerprint of the data, scores
and times, but no weights. A run whose line is there is never trained again, in whatever directory,
and tables are made from lines alone (but not the selection of labels, which needs the runs).

examples:
  balancemix bench quick
  balancemix bench paper-tables --data features.npz --out bench/coco --jobs 2
  balancemix bench paper-tables --data features.npz --out bench/coco --only bce,balancemix
  balancemix bench paper-tables --data features.npz --out bench/coco --tables   # so far"""


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
        help="data, instead of the plan's; repeatable",
    )
    parser.add_argument("--seeds", metavar="0,1,2", help="seeds, instead of the plan's")
    parser.add_argument(
        "--paper", metavar="TABLE", help="the paper's numbers to compare with: coco, voc, …"
    )
    parser.add_argument("--only", metavar="METHOD,…", help="train only these now, by name or label")
    parser.add_argument("--tables", action="store_true", help="train nothing, write the tables")
    parser.add_argument(
        "--ledger", type=Path, metavar="FILE", help="read finished runs here, and add new ones"
    )
    parser.add_argument("--list", action="store_true", help="show the shipped plans")


def run(arguments: argparse.Namespace) -> int:
    """List the plans, or run one; return 1 if a run failed."""
    if arguments.list:
        show_plans()
        return 0
    return compare(arguments)


def compare(arguments: argparse.Namespace) -> int:
    """Train the missing runs, write the tables, and print those meant for a terminal."""
    from balancemix.bench.finished import Finished
    from balancemix.bench.layouts import make_tables
    from balancemix.bench.ledger import Ledger
    from balancemix.bench.plan import distinct, jobs
    from balancemix.bench.render import terminal, write_tables
    from balancemix.bench.runner import (
        check_data,
        check_out,
        enter_finished,
        remember,
        train_missing,
    )
    from balancemix.bench.scores import read_results
    from balancemix.commands.show import console
    from balancemix.errors import InputError, printable

    plan = planned(arguments)
    out = directory(arguments)
    if arguments.jobs is not None and arguments.jobs < 1:
        raise InputError(f"--jobs must be at least 1, it is {arguments.jobs}")
    check_out(out)
    ledger = Ledger(arguments.ledger) if arguments.ledger else None
    finished = Finished(ledger, Path(plan.source).stem) if ledger else None
    chosen = distinct(jobs(plan, arguments.only.split(",") if arguments.only else []))
    if not arguments.tables:
        check_data(plan)
    remember(out, plan)
    if finished is not None:
        enter_finished(out, chosen, finished)
    failures = {} if arguments.tables else train_missing(out, chosen, arguments.jobs, finished)
    tables, screen = make_tables(read_results(plan, out / "runs", finished)), console()
    write_tables(out / "tables", tables)
    for table in tables:
        if table.visible:
            screen.print(terminal(table, screen.width))
    screen.print(f"{len(tables)} tables: {out / 'tables'}", soft_wrap=True)
    for name, line in failures.items():
        trace = out / "failures" / f"{name}.txt"
        print(printable(f"failed: {name}: {line}  ({trace})"), file=sys.stderr)
    return 1 if failures else 0


def directory(arguments: argparse.Namespace) -> Path:
    """Choose where the runs go."""
    out: Path | None = arguments.out
    return out or Path("bench") / Path(arguments.plan).stem


def stopped(arguments: argparse.Namespace) -> str:
    """Say what an interruption leaves."""
    return f"the same command continues in {directory(arguments)}"


def planned(arguments: argparse.Namespace) -> BenchPlan:
    """Read the plan with the changes that the flags make."""
    from balancemix.bench.paper import paper_scores
    from balancemix.bench.plan import read_bench
    from balancemix.errors import InputError
    from balancemix.plan.shipped import bench_plans

    if arguments.plan is None:
        raise InputError(f"name a PLAN: a TOML file, or one of: {', '.join(bench_plans())}")
    try:
        seeds = [int(seed) for seed in arguments.seeds.split(",")] if arguments.seeds else []
    except ValueError:
        raise InputError(f"--seeds {arguments.seeds}: write whole numbers as 0,1,2") from None
    changes = {"data": arguments.data, "seeds": seeds, "paper": arguments.paper}
    plan = read_bench(arguments.plan, {key: value for key, value in changes.items() if value})
    if plan.paper:
        paper_scores(plan.paper)  # refuse a wrong name now, not after the last run
    if not plan.data:
        raise InputError(f"{arguments.plan} names no data; name it with --data")
    return plan


def show_plans() -> None:
    """Print the shipped plans with their head comments."""
    from balancemix.plan.shipped import bench_plans, summary

    for name, path in bench_plans().items():
        first, *rest = summary(path)
        print(f"{name}: {first}", *(f"  {line}" for line in rest), "", sep="\n")
