"""The page of a bench: its tables, pentagons, and the curves of each data set and noise."""

import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from balancemix.bench.layouts import by_category, make_tables
from balancemix.bench.plan import BenchPlan, Variant, data_slug, distinct, jobs, read_bench, slug
from balancemix.bench.ranking import FIVE, rank_perspectives
from balancemix.bench.scores import Results, heading, read_results
from balancemix.errors import InputError
from balancemix.evaluation.scoring import headline
from balancemix.report.figures.curves import learning
from balancemix.report.figures.pentagon import pentagons
from balancemix.report.figures.style import Line, colours
from balancemix.report.page import Drawing, Page

FEW = 8  # curves that still have distinct colours
COLOURED = 6  # curves with a colour where there are more than FEW


def make_page(path: Path) -> Page:
    """Draw the figures and collect the tables; the text around them is in bench.html."""
    results = read(path)
    plan = results.plan
    counted = {"method": len(plan.methods), "noise": len(plan.noises), "seed": len(plan.seeds)}
    facts = {
        "finished": len({line.path for line in results.lines}),
        "counts": [f"{count} {name}{'s' * (count != 1)}" for name, count in counted.items()],
        "data": [data_slug(data) for data in plan.data],
        "tables": sorted(make_tables(results), key=lambda table: not table.visible),
        "runs": _runs(results),
        "plan": json.dumps(plan.tree(), indent=2, ensure_ascii=False),
        "calls": _commands(path, plan),
    }
    drawings = [*ranked(results), *learned(results)]
    return Page("bench", f"Benchmark {path.resolve().name}", drawings, facts)


def read(path: Path) -> Results:
    """Read the finished runs of a bench by the plan in its bench.json."""
    results = read_results(read_bench(str(path / "bench.json")), path / "runs")
    if not results.lines:
        raise InputError(f"{path / 'runs'}: holds no finished run; run `balancemix bench` first")
    return results


def ranked(results: Results) -> Iterator[Drawing]:
    """Draw the pentagons over all data sets, if there is enough to rank."""
    plan = results.plan
    ranks = rank_perspectives([results.means(data) for data in plan.data], plan.noises)
    ranked_from = next(iter(ranks.values()), {})
    if len(ranks) < 2 or len(ranked_from) < 3:
        return
    caption = (
        f"Ranks of the {len(ranks)} methods that ran under every noise (1 is best, at the "
        "rim), with the share of the whole pentagon that they cover; “Imbal.” is the few-shot "
        "classes without noise."
    )
    if len(plan.data) > 1:
        caption += " The ranks on each data set are added up and ranked again."
    missing = [name for name in FIVE if name not in ranked_from]
    if missing:
        caption += f" Not in the plan: {', '.join(missing)}."
    yield Drawing("pentagons", pentagons(ranks), caption)


def learned(results: Results) -> Iterator[Drawing]:
    """Draw the curves of each data set and noise."""
    plan = results.plan
    held_out = plan.settings.get("data", {}).get("score") == "held-out"
    scored = "held-out training" if held_out else "test"
    rows = by_category(plan.methods)
    curves_of = {
        (data, text): {
            row.label: curve for row in rows if (curve := results.curve(row.label, text, data))
        }
        for data in plan.data
        for text in plan.noises
    }
    notable = {key: notable_methods(rows, curves) for key, curves in curves_of.items()}
    lines = row_lines(
        [row for row in rows if any(row.label in names for names in notable.values())]
    )
    for (data, text), curves in curves_of.items():
        if not curves:
            continue
        coloured = {label: lines[label] for label in notable[data, text]}
        name, where = f"learning-{slug(text)}", heading(text)
        if len(plan.data) > 1:
            name, where = f"{name}-{data_slug(data)}", f"{where}, {data_slug(data)}"
        caption = (
            f"{where}: mAP on {scored} rows after each epoch, mean over seeds, with the last and "
            "(best) of this mean."
        )
        if len(coloured) < len(curves):
            others = ", ".join(label for label in curves if label not in coloured)
            caption += f" In grey: {others}."
        yield Drawing(name, learning(curves, coloured), caption)


def notable_methods(rows: Sequence[Variant], curves: Mapping[str, Sequence[float]]) -> list[str]:
    """Choose the curves to colour: all of a few, or the first rows, the last ones and the best."""
    if len(curves) <= FEW:
        return list(curves)
    first = [row.label for row in rows if row.category == rows[0].category][:2]
    last = [row.label for row in rows if row.category == rows[-1].category][-2:]
    last_score = {label: curve[-1] for label, curve in curves.items()}
    best = sorted(curves, key=lambda label: (math.isnan(last_score[label]), -last_score[label]))
    order = dict.fromkeys([*first, *last, *best])
    return [label for label in order if label in curves][:COLOURED]


def row_lines(rows: Sequence[Variant]) -> dict[str, Line]:
    """Choose the line of each row; a method with a single row keeps its usual colour."""
    names = [row.name for row in rows]
    keys = [row.name if names.count(row.name) == 1 else row.label for row in rows]
    lines = colours(keys)
    return {row.label: lines[key] for row, key in zip(rows, keys, strict=True)}


def _runs(results: Results) -> list[dict[str, Any]]:
    """List all runs of the plan, the unfinished ones without numbers."""
    finished = {line.path.name: line.metrics for line in results.lines}
    nothing = dict.fromkeys(headline(results.lines[0].metrics))
    records = []
    for job in distinct(jobs(results.plan)):
        metrics = finished.get(job.name)
        records.append(
            {
                "run": job.name,
                "method": job.variant.label,
                "noise": job.noise,
                "seed": job.seed,
                **(headline(metrics) if metrics else nothing),
                "s an epoch": metrics["seconds_per_epoch"] if metrics else None,
            }
        )
    return records


def _commands(path: Path, plan: BenchPlan) -> list[str]:
    data = "".join(f" --data {shlex.quote(each)}" for each in plan.data)
    seeds, folder = ",".join(map(str, plan.seeds)), shlex.quote(str(path))
    return [
        f"balancemix bench PLAN{data} --seeds {seeds} --out {folder}",
        f"balancemix report {folder}",
    ]
