"""`balancemix demo`: the method at work on data that everybody has."""

import argparse
from pathlib import Path

from balancemix.commands.arguments import add_force, add_json
from balancemix.plan.sections import SEED, TrainPlan

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
    parser.add_argument("--out", type=Path, default=Path("demo"), help="default %(default)s")
    parser.add_argument("--seed", type=int, default=SEED, help="default %(default)s")
    parser.add_argument("--epochs", type=int, default=TrainPlan.epochs, help="default %(default)s")
    add_force(parser)
    add_json(parser, "the results")


def run(arguments: argparse.Namespace) -> None:
    """Train both, write the page, print the table."""
    from balancemix.commands.show import console, make_table, scores
    from balancemix.errors import InputError
    from balancemix.files import check_folder, to_json, write_text
    from balancemix.manifest import Outputs
    from balancemix.plan.plan import Plan
    from balancemix.progress import progress
    from balancemix.report import gallery
    from balancemix.report.summary import Summary
    from balancemix.run import Run
    from balancemix.training.experiment import train_plan

    page, outputs = arguments.out / "index.html", Outputs(arguments.out)
    check_folder(arguments.out, (page.name, *METHODS), "the demo")
    for name in METHODS:
        old = Run(arguments.out / name)
        foreign = old.has("plan") and (old.plan.data.path, old.plan.noise) != ("digits", NOISE)
        if foreign and not arguments.force:
            raise InputError(f"{old.path}: holds a run that is not the demo's; use another --out")
    outputs.check_output(page, force=arguments.force)
    summaries = {}
    for name in METHODS:
        tree = {"method": {"name": name}, "noise": NOISE, "seed": arguments.seed}
        plan = Plan.from_tree({**tree, "train": {"epochs": arguments.epochs}})
        run_, experiment, _ = train_plan(plan, arguments.out / name, progress, force=True)
        summaries[name] = Summary(run_)
    commands = [f"balancemix demo --seed {arguments.seed} --epochs {arguments.epochs}"]
    commands += [f"balancemix audit {arguments.out / name}" for name in METHODS]
    write_text(page, gallery.make_page(summaries, experiment.train, commands).render())
    outputs.remember(page)
    quality = summaries[METHODS[-1]].quality
    if arguments.json:
        results = {name: summary.metrics for name, summary in summaries.items()}
        print(to_json({**results, "audit": quality, "page": str(page)}, indent=2))
        return
    out = console()
    lines = [{"method": name, **scores(each.metrics)} for name, each in summaries.items()]
    title = f"{len(experiment.train):,} digit strips, 40 % of the labels wrong"
    out.print(make_table(title, list(lines[0]), [list(line.values()) for line in lines]))
    out.print(
        f"{quality['findings']:,} labels called wrong: {quality['precision']:.1%} of them are, "
        f"and {quality['recall']:.1%} of all wrong labels were found"
    )
    out.print(f"pictures: {page}", soft_wrap=True)
