"""What commands print for people, where they do not print JSON."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from balancemix.auditing.findings import Findings
from balancemix.auditing.measured import Measured
from balancemix.auditing.wording import sentences
from balancemix.errors import counted, listing, printable
from balancemix.evaluation.scoring import headline
from balancemix.methods.auto import Choice
from balancemix.run import Run
from balancemix.training.experiment import Experiment


class Screen(Console):
    """Standard output, on which text is only text: no markup, no emoji, no control characters."""

    def __init__(self) -> None:
        super().__init__(highlight=False, markup=False, emoji=False)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print lines of text and tables."""
        texts = (printable(each) if isinstance(each, str) else each for each in objects)
        super().print(*texts, **options)


def console() -> Console:
    """Make a console on the current standard output."""
    return Screen()


def make_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Lay out rows of text, the first column aligned left."""
    table = Table(title=printable(title), title_justify="left", header_style="bold")
    for i, name in enumerate(header):
        table.add_column(printable(name), justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*map(printable, row))
    return table


def scores(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Write last and best mAP and the groups' last mAP, by their headings."""
    return {name: written(value, ".1f") for name, value in headline(metrics).items()}


def written(number: float | None, form: str) -> str:
    """Write a number, or a dash where it is not defined."""
    return "–" if number is None or math.isnan(number) else f"{number:{form}}"


def show_training(run: Run, experiment: Experiment, metrics: Mapping[str, Any]) -> None:
    """Print the scores of a training and what to do next."""
    out, plan, log = console(), experiment.plan, run.log
    solved = "penalty" in log[-1]
    seconds = {"solved in" if solved else "an epoch": f"{metrics['seconds_per_epoch']:.1f} s"}
    name = plan.tree()["method"]["name"]
    if (choice := run.choice) is not None:
        out.print(choice_table(choice))
        out.print(f"{choice.chosen} was taken: {choice.reason}", markup=False)
        name = choice.chosen
    row = {"method": name, **scores(metrics), **seconds}
    how = f"penalty {log[-1]['penalty']:g}" if solved else f"{metrics['epochs']} epochs"
    title = f"{plan.data.path}, noise {plan.noise}, {how}"
    out.print(make_table(title, list(row), [list(row.values())]))
    chosen = metrics["selection"]
    if "clean_precision" in chosen:
        out.print(
            f"clean labels: precision {chosen['clean_precision']:.3f}, "
            f"recall {written(chosen.get('clean_recall'), '.3f')}; re-labelled "
            f"{chosen.get('relabel_proportion', 0):.2%} of all"
            + (f", flips {chosen['flip_accuracy']:.1%} right" if "flip_accuracy" in chosen else "")
        )
    for line in log:
        if "wrong" in line:
            out.print(judgement(line))
    few = log[-1].get("upsampling_few")
    if few is not None and few < 1.05:
        out.print(
            f"minority sampler: rare classes drawn {few:.3f} × as often as at random "
            "(Eq. 4 is nearly uniform; --set method.power=10 strengthens it)"
        )
    out.print(f"run: {run.path}   next: balancemix audit {run.path}", soft_wrap=True)


def choice_table(choice: Choice) -> Table:
    """List the candidates of `--method auto` with their scores, and mark the one taken."""
    records = choice.table()
    cells = [
        [written(c, ".2f") if isinstance(c, float) else c for c in r.values()] for r in records
    ]
    title = (
        f"mAP on the given labels of {choice.held_out:,} training rows, after training on the "
        f"other {choice.rows:,}"
    )
    return make_table(title, list(records[0]), cells)


def judgement(line: Mapping[str, Any]) -> str:
    """Describe what a pilot measured on rows that it had not seen, and what follows from it.

    >>> line = {"positives": 490, "wrong": 0.06, "missing": 5.4, "error": 0.02, "epsilon": 0.975}
    >>> judgement({**line, "trust_positives": 1.0, "warmup": 6.0})[-40:]
    'es are trusted, epsilon 0.975, warm-up 6'
    """
    trust = "trusted" if line["trust_positives"] else "doubted like all labels"
    warm = f", warm-up {line['warmup']:g}" if "warmup" in line else ""  # older runs have none
    return (
        f"labels: by {line['positives']:,} positives of rows that a pilot had not seen, "
        f"about {line['wrong']:.0%} (± {line['error']:.0%}) of the given ones look wrong, "
        f"and up to {line['missing']:.1f} are missing for each that is given. "
        f"Positives are {trust}, epsilon {line['epsilon']:g}{warm}"
    )


def show_findings(
    findings: Findings, summary: Mapping[str, Any], measured: Measured | None = None, most: int = 8
) -> None:
    """Print the first findings of each problem, and what to do about all of them."""
    out = console()
    for problem in ("wrong", "missing", "unknown"):
        if count := summary[problem]:
            lines = findings.of(problem)[:most].lines()
            rows = [[str(line[0]), str(line[1]), f"{float(str(line[5])):.3f}"] for line in lines]
            look = "looks" if count == 1 else "look"
            title = f"{counted(count, 'label')} {look} {TITLES[problem]}"
            title += f"; the first {len(rows)}" * (len(rows) < count)
            out.print(make_table(title, ("image", "class", "probability"), rows))
    if not len(findings):
        out.print("no label is listed")
    for line in sentences(measured) if measured is not None else ():
        out.print(line, soft_wrap=True)
    for line in advice(summary):
        out.print(line)
    out.print(f"all of them: {summary['file']}", soft_wrap=True)


TITLES = {"wrong": "wrong", "missing": "missing", "unknown": "present, though unknown"}


def advice(summary: Mapping[str, Any], most: int = 3) -> Iterator[str]:
    """Say in short lines what the summary of an audit holds."""
    measured = summary.get("measured", {}).get("figures", {})
    expected = {
        name: count for name, count in (summary["expected"] or {}).items() if name not in measured
    }
    if expected:
        first, *others = (f"{count:,.0f} {{}}{name}" for name, count in expected.items())
        totals = " and ".join([first.format("labels "), *(each.format("") for each in others)])
        yield f"about {totals} in all: {summary['note']}"
    elif not measured:
        yield summary["note"]
    problems = ("wrong", "missing", "unknown")
    if summary["classes"]:
        counts = [
            f"{each['class']} ({', '.join(f'{each[p]:,} {p}' for p in problems if each[p])})"
            for each in summary["classes"]
        ]
        yield f"worst classes: {listing(counts, most)}"
    if summary["confused"]:
        pairs = [
            f"{p['given']} looks like {p['looks_like']} ({p['rows']:,})"
            for p in summary["confused"]
        ]
        yield f"confused: {listing(pairs, most)}"
    if summary["images"]:
        images = [f"{each['image']} ({each['findings']})" for each in summary["images"]]
        yield f"most findings: {listing(images[:most], most)}"
    twins = summary["near_duplicates"]
    if twins and twins["pairs"]:
        pairs = [
            f"{' and '.join(p['images'])} ({listing(p['classes'], 2)})" for p in twins["pairs"]
        ]
        some = (
            ""
            if twins["compared"] == summary["rows"]
            else f", of {twins['compared']:,} images compared"
        )
        yield f"near-duplicates with contradicting labels{some}: {listing(pairs, most)}"
    if summary["not_judged"]:
        yield f"could not be judged: {listing(summary['not_judged'], 2 * most)}"
    if summary["left_unlabelled"]:
        yield f"{counted(summary['left_unlabelled'], 'image')} would be left without a label"
    if "precision" in summary:
        yield (
            f"against the truth: {written(summary['precision'], '.1%')} of the findings are "
            f"errors, {written(summary['recall'], '.1%')} of the {summary['errors']:,} errors "
            "were found"
        )
