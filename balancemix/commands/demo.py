"""`balancemix demo`: the method at work on data that everybody has."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from balancemix.commands.arguments import add_force, add_json
from balancemix.commands.kept import keep_findings
from balancemix.plan.sections import SEED, TrainPlan

if TYPE_CHECKING:
    from balancemix.manifest import Outputs
    from balancemix.plan.plan import Plan

DESCRIPTION = """\
see BCE and BalanceMix learn from digits of which 40 % are mislabelled

Draws pictures of handwritten digits, moves 40 % of their labels to wrong classes, trains twice, and
ends with a table, a page of pictures, and the command that opens the review of their labels. Needs
no download and about a minute.

example:
  balancemix demo --out demo"""

METHODS = ("bce", "balancemix")
NOISE = "mislabel:0.4"
PLAN, METRICS = "plan.json", "metrics.json"  # of a run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--out", type=Path, default=Path("demo"), help="default %(default)s")
    parser.add_argument("--seed", type=int, default=SEED, help="default %(default)s")
    parser.add_argument("--epochs", type=int, default=TrainPlan.epochs, help="default %(default)s")
    add_force(parser)
    add_json(parser, "the results")


def planned(name: str, data: Path, arguments: argparse.Namespace) -> Plan:
    """Make the plan of a method; the noise is in the data."""
    from balancemix.plan.plan import Plan

    tree = {"method": {"name": name}, "data": {"path": str(data)}, "seed": arguments.seed}
    return Plan.from_tree({**tree, "train": {"epochs": arguments.epochs}})


def program() -> str:
    """Name `balancemix` as it can be called from here: `make demo` does not put it on the path."""
    if shutil.which("balancemix"):
        return "balancemix"
    script = Path(sys.argv[0])
    if script.name == "balancemix" and script.is_file():
        return shlex.quote(os.path.relpath(script))
    return f"{shlex.quote(sys.executable)} -m balancemix"


def check_run(outputs: Outputs, name: str, plan: Plan, *, force: bool) -> None:
    """Refuse a run that no demo trained here, which starting over would delete.

    A demo enters the checksums of its plans before, and of its metrics after the training: the run
    of a person has other metrics, even if its plan is the same.
    """
    from balancemix.errors import InputError
    from balancemix.run import Run

    path = outputs.folder / name
    there = [f"{name}/{file}" for file in (PLAN, METRICS) if (path / file).exists()]
    if not force and not all(map(outputs.is_intact, there)):
        raise InputError(
            f"{path}: holds a run that is not the demo's; use another --out, or --force replaces it"
        )
    Run.check(path, plan, force=True)


def draw(outputs: Outputs, seed: int, *, force: bool) -> Path:
    """Draw the pictures, or take those of an earlier demo; what a person changed is not replaced.

    Each seed has a folder, so that answers about pictures never meet other pictures.
    """
    from balancemix.data.drawn import FILE, write_digits
    from balancemix.errors import InputError
    from balancemix.manifest import checksum

    folder = outputs.folder / f"seed-{seed}"
    name = f"{folder.name}/{FILE}"
    if folder.exists() and not force:
        if not outputs.is_intact(name):
            raise InputError(
                f"{outputs.folder / name}: is not as the demo wrote it; use another --out, or "
                "--force replaces it"
            )
        return folder / FILE
    file = write_digits(folder, NOISE, seed)
    outputs.enter(name, checksum(file))
    return file


def run(arguments: argparse.Namespace) -> None:
    """Draw, train both, write the page, print the table."""
    from balancemix.commands.show import console, make_table, scores
    from balancemix.data.drawn import FILE
    from balancemix.files import check_folder, json_text, to_json, write_text
    from balancemix.manifest import Outputs, checksum, checksum_of
    from balancemix.progress import progress
    from balancemix.report import demo_page
    from balancemix.report.cards import make_cards
    from balancemix.report.pictures import PicturedRows
    from balancemix.report.summary import Summary
    from balancemix.training.experiment import train_plan

    page, outputs = arguments.out / "index.html", Outputs(arguments.out)
    seeds = [path.name for path in arguments.out.glob("seed-*")]
    check_folder(arguments.out, (page.name, *METHODS, *seeds), "the demo")
    data = arguments.out / f"seed-{arguments.seed}" / FILE
    plans = {name: planned(name, data, arguments) for name in METHODS}
    for name, plan in plans.items():
        check_run(outputs, name, plan, force=arguments.force)
    outputs.check_output(page, force=arguments.force)
    draw(outputs, arguments.seed, force=arguments.force)
    summaries = {}
    for name, plan in plans.items():
        outputs.enter(f"{name}/{PLAN}", checksum_of(json_text(plan.tree())))
        run_, experiment, _ = train_plan(plan, arguments.out / name, progress, force=True)
        outputs.enter(f"{name}/{METRICS}", checksum(run_.path / METRICS))
        summaries[name] = Summary(run_)
    review = f"{program()} review {shlex.quote(str(data))}"
    commands = [
        f"balancemix demo --seed {arguments.seed} --epochs {arguments.epochs}",
        *(f"balancemix report {shlex.quote(str(arguments.out / name))}" for name in METHODS),
        review,
    ]
    assert experiment.splits.source is not None
    rows = PicturedRows.of(experiment.splits.source)
    findings = summaries[METHODS[-1]].findings
    keep_findings(findings, run_)  # the review then opens at once
    cards = make_cards(findings, rows)
    write_text(page, demo_page.make_page(summaries, cards, review, commands).render())
    outputs.remember(page)
    quality = summaries[METHODS[-1]].quality
    if arguments.json:
        results = {name: summary.metrics for name, summary in summaries.items()}
        print(to_json({**results, "audit": quality, "page": str(page)}, indent=2))
        return
    out = console()
    lines = [{"method": name, **scores(each.metrics)} for name, each in summaries.items()]
    title = f"{len(experiment.train):,} pictures of digits, 40 % of the labels wrong"
    out.print(make_table(title, list(lines[0]), [list(line.values()) for line in lines]))
    out.print(
        f"{quality['findings']:,} labels called wrong or missing: {quality['precision']:.1%} of "
        f"them are, and {quality['recall']:.1%} of all errors were found"
    )
    out.print(f"look at them: {page}", soft_wrap=True)
    out.print(f"decide yourself: {review}", soft_wrap=True)
