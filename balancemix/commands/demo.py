"""`balancemix demo`: the method at work on data that everybody has."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

DESCRIPTION = """\
see BCE and BalanceMix learn from digits of which 40 % are mislabelled

Makes strips of handwritten digits, moves 40 % of their labels to wrong classes, trains twice, and
ends with a table and a page of pictures. Needs no download and about two minutes.

example:
  balancemix demo --out demo"""

METHODS = ("bce", "balancemix")
NOISE = "mislabel:0.4"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--out", type=Path, default=Path("demo"), help="default demo/")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    parser.add_argument("--epochs", type=int, default=30, help="default 30")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def run(arguments: argparse.Namespace) -> None:
    """Train both, print the table, write the page."""
    from balancemix.auditing.findings import audit, score
    from balancemix.commands.show import SCORES, console, make_table, scores
    from balancemix.files import write_text
    from balancemix.plan.plan import Plan
    from balancemix.progress import progress
    from balancemix.report.gallery import render
    from balancemix.run import Run
    from balancemix.training.experiment import prepare

    results: dict[str, Any] = {}
    logs: dict[str, Any] = {}
    for name in METHODS:
        tree = {"method": {"name": name}, "noise": NOISE, "seed": arguments.seed}
        plan = Plan.from_tree({**tree, "train": {"epochs": arguments.epochs}})
        experiment = prepare(plan)
        run_ = Run.create(arguments.out / name, plan, force=True)
        experiment.record_noise(run_)
        with progress(name, experiment.steps) as show:
            trained = experiment.fit(run_, show)
        results[name] = trained.metrics
        logs[name] = run_.log()

    table = trained.method.table
    confidence = run_.confidence()
    findings = audit(table.given, confidence, table.clean)
    truth = experiment.train.truth
    quality = score(findings, table.given, truth if truth is not None else table.given)
    commands = [f"balancemix demo --seed {arguments.seed} --epochs {arguments.epochs}"]
    commands += [f"balancemix audit {arguments.out / name}" for name in METHODS]
    page = arguments.out / "index.html"
    write_text(page, render(results, logs, experiment.train, findings, quality, commands, NOISE))
    if arguments.json:
        print(json.dumps({**results, "audit": quality, "page": str(page)}, indent=2))
        return
    out = console()
    lines = [[name, *scores(metrics)] for name, metrics in results.items()]
    title = f"{len(experiment.train):,} digit strips, 40 % of the labels wrong"
    out.print(make_table(title, ("method", *SCORES), lines))
    out.print(
        f"{quality['findings']:,} labels called wrong: {quality['precision']:.1%} of them are, "
        f"and {quality['recall']:.1%} of all wrong labels were found"
    )
    out.print(f"pictures: {page}", soft_wrap=True)
