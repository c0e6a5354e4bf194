"""Is one method ahead of another? `bootstrap.py NAME …`, of the judge's benches if none is named.

Every method is compared with auto, BalanceMix and Mixup under each noise, by its last mAP:
over seeds      the differences between runs of the same seed, from the ledger: mean, standard
                error, and Student's 95 % interval
over test rows  the test rows are drawn 1,000 times with replacement, the same rows for all runs;
                the 95 % interval of the difference, the mean over seeds. Predictions are made
                again by the models in bench/NAME/runs.

Results are lines of benchmarks/bootstrap.jsonl, and those that are there are not computed again.
With --tables, the tables are printed of what is there.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from paired import Floats, draw_rows, mean_ap, over_rows, over_seeds
from results import BENCHES, JUDGE, LEDGER, ROOT

from balancemix.bench.finished import Finished
from balancemix.bench.ledger import Ledger
from balancemix.bench.plan import BenchPlan, Job, data_slug, jobs
from balancemix.bench.scores import heading
from balancemix.evaluation.metrics import evaluate
from balancemix.files import to_json, with_nan, write_text
from balancemix.run import Run
from balancemix.training.experiment import load_rows
from balancemix.training.models import trained_model
from balancemix.training.predict import predict_logits

LINES = Path("benchmarks") / "bootstrap.jsonl"
VERSION = 1
DRAWS = 1000
REFERENCES = ("auto", "balancemix", "mixup")
KEY = ("bench", "data", "noise", "method", "reference")
NEAR = 0.02  # points of mAP by which predictions may differ between machines
HEAD = (
    "| Method | Against | mAP | s. e. | over seeds, 95 % | over test rows, 95 % | |\n"
    "|---|---|---|---|---|---|---|\n"
)
Line = dict[str, Any]
Lines = dict[tuple[str, ...], Line]  # by the values of KEY
Scored = dict[tuple[str, int], tuple[Job, float]]  # by label and seed: a run and its last mAP


def main(words: list[str]) -> None:
    """Compare what has ended, and print the tables."""
    os.chdir(ROOT)
    names = [word for word in words if word != "--tables"] or JUDGE
    for name in names:
        if name not in BENCHES:
            sys.exit(f"unknown bench {name}; use some of: {', '.join(BENCHES)}")
    for name in names:
        plan = BENCHES[name].read()
        if "--tables" not in words:
            compare(name, plan)
        print(tables(name, plan, read_lines()))


def compare(name: str, plan: BenchPlan) -> None:
    """Compute the lines of a bench that are missing, or of runs that have changed.

    The lines of one noise are stored together: a killed comparison goes on with that noise.
    """
    finished = Finished(Ledger(Path(LEDGER)), name)
    for data in plan.data:
        for noise in plan.noises:
            scored: Scored = {}
            for job in jobs(plan):
                here = (job.data, job.noise) == (data, noise)
                if here and (entry := finished.find(job)) is not None:
                    scored[job.variant.label, job.seed] = job, entry.last["mAP"]
            lines = read_lines()
            new = dict(compared(name, scored, lines))
            if new:
                content = (lines | new).values()
                write_text(LINES, "".join(to_json(line) + "\n" for line in content))


def compared(name: str, scored: Scored, lines: Lines) -> Iterator[tuple[tuple[str, ...], Line]]:
    """Compare the methods under one noise where that is not done yet."""

    @cache
    def draws(label: str, seed: int) -> Floats | None:
        return draw(name, *scored[label, seed])

    for method, reference in pairs([job for job, _ in scored.values()]):
        seeds = [seed for label, seed in scored if label == method and (reference, seed) in scored]
        if not seeds:
            continue
        ours, others = ([scored[label, seed][1] for seed in seeds] for label in (method, reference))
        job = scored[method, seeds[0]][0]
        place = (name, data_slug(job.data), job.noise, method, reference)
        line: Line = dict(zip(KEY, place, strict=True))
        line |= {"version": VERSION, "seeds": seeds, "ours": ours, "others": others}
        line["draws"] = DRAWS
        known = lines.get(place, {})
        if known.get("rows_low") is not None and known.items() >= line.items():
            continue
        pair = [(draws(method, seed), draws(reference, seed)) for seed in seeds]
        both = [(a, b) for a, b in pair if a is not None and b is not None]
        whole = len(both) == len(seeds)
        low, high = over_rows([a for a, _ in both], [b for _, b in both]) if whole else (None, None)
        found = {**vars(over_seeds(ours, others)), "rows_low": low, "rows_high": high}
        rounded = {key: None if value is None else round(value, 4) for key, value in found.items()}
        yield place, {**line, **rounded}


def pairs(column: list[Job]) -> Iterator[tuple[str, str]]:
    """List each method with each reference, by their labels."""
    names = {job.variant.label: job.variant.name for job in column}
    for wanted in REFERENCES:
        for reference in (label for label, method in names.items() if method == wanted):
            yield from ((label, reference) for label in names if label != reference)


def draw(name: str, job: Job, expected: float) -> Floats | None:
    """Compute the mAP of a run in each draw of test rows; None if its model is not here."""
    run = Run(Path("bench") / name / "runs" / job.name)
    if not run.has("model"):
        return None
    rows = load_rows(run.plan, job.data).test
    logits = predict_logits(trained_model(run, rows), rows.plain)
    truth = rows.given if rows.truth is None else rows.truth
    score = evaluate(truth, logits)["mAP"]
    if abs(score - expected) > NEAR:
        sys.exit(f"{run.path}: its model scores {score:.2f}, the ledger says {expected:.2f}")
    return mean_ap(truth, logits, draw_rows(len(rows), DRAWS))


def read_lines() -> Lines:
    """Read what has been compared."""
    if not LINES.exists():
        return {}
    lines = [json.loads(line) for line in LINES.read_text("utf-8").splitlines()]
    if any(line["version"] != VERSION for line in lines):
        sys.exit(f"{LINES}: is of another version; delete it to compare again")
    return {tuple(line[key] for key in KEY): line for line in lines}


def tables(name: str, plan: BenchPlan, lines: Lines) -> str:
    """Write a table for each noise, and which other method comes closest to auto, or is ahead."""
    text, auto = "", [row.label for row in plan.methods if row.name == "auto"]
    for data in plan.data:
        for noise in plan.noises:
            place = (name, data_slug(data), noise)
            rows = [with_nan(line) for key, line in lines.items() if key[:3] == place]
            if rows:
                seeds = max(len(row["seeds"]) for row in rows)
                text += f"\n{place[1]}, {heading(noise)}, {seeds} seeds\n\n{HEAD}"
                text += "".join(map(row_of, rows))
            others = [row for row in rows if row["reference"] in auto]
            if others:
                best = max(others, key=lambda row: row["mean"])
                text += f"\nBest of the others: {best['method']}, {best['mean']:+.2f}\n"
    return text


def row_of(line: Line) -> str:
    """Write a row: the difference, its intervals, and whether both exclude 0."""
    both = (line["low"], line["high"]), (line["rows_low"], line["rows_high"])
    ahead, behind = all(low > 0 for low, _ in both), all(high < 0 for _, high in both)
    verdict = "ahead" if ahead else "behind" if behind else ""
    intervals = ("–" if math.isnan(low) else f"{low:+.2f} to {high:+.2f}" for low, high in both)
    cells = [line["method"], line["reference"], f"{line['mean']:+.2f}", f"{line['error']:.2f}"]
    return f"| {' | '.join([*cells, *intervals, verdict])} |\n"


if __name__ == "__main__":
    main(sys.argv[1:])
