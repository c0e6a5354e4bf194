"""What a bench's runs came to, by row, noise and data; runs that have not ended are not there."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Literal

from balancemix.bench.plan import BenchPlan, Job, Variant, jobs
from balancemix.bench.ranking import Scores
from balancemix.bench.table import Cell
from balancemix.errors import InputError
from balancemix.labels import noise

When = Literal["last", "best"]
GROUPS = {"All": "mAP", "Many": "mAP_many", "Medium": "mAP_medium", "Few": "mAP_few"}
Key = tuple[str, str, str]  # label, noise, data


@dataclass(frozen=True)
class Results:
    """metrics: of each seed that has ended. runs: their directories."""

    plan: BenchPlan
    metrics: dict[Key, dict[int, dict[str, Any]]]
    runs: dict[Key, dict[int, Path]]

    def of(self, job: Job) -> dict[str, Any] | None:
        """Return the metrics of a run, if it has ended."""
        return self.metrics.get((job.variant.label, job.noise, job.data), {}).get(job.seed)

    def scores(self, row: Variant, noise: str, data: str, when: When, group: str) -> Cell:
        """Collect a score over the seeds."""
        found = self.metrics.get((row.label, noise, data), {}).values()
        values = [metrics[when].get(GROUPS[group]) for metrics in found]
        return Cell(tuple(value for value in values if value is not None))

    def means(self, data: str) -> dict[str, Scores]:
        """Collect the mean last mAP of every row, by noise and group."""
        found: dict[str, Scores] = {}
        for row in self.plan.methods:
            cells = {
                (text, group): self.scores(row, text, data, "last", group).mean
                for text in self.plan.noises
                for group in GROUPS
            }
            found[row.label] = {key: value for key, value in cells.items() if value is not None}
        return found

    def curve(self, row: Variant, noise: str, data: str) -> list[float]:
        """Average the mAP after each epoch over the seeds."""
        paths = self.runs.get((row.label, noise, data), {}).values()
        logs = [[line["mAP"] for line in log(path)] for path in paths]
        return [mean(values) for values in zip(*logs, strict=False)]

    def overall(self, row: Variant, noises: list[str], data: str, when: When) -> Cell:
        """Average the mAP over noises, for the seeds that have ended under each of them."""
        each = [self.metrics.get((row.label, noise, data), {}) for noise in noises]
        seeds = [seed for seed in self.plan.seeds if all(seed in found for found in each)]
        sums = (sum(found[seed][when]["mAP"] for found in each) for seed in seeds)
        return Cell(tuple(total / len(noises) for total in sums))

    def selection(self, row: Variant, noise: str, data: str, share: float, key: str) -> Cell:
        """Collect a share in percent of what was selected or re-labelled, after so many epochs."""
        values = []
        for path in self.runs.get((row.label, noise, data), {}).values():
            lines = log(path)
            line = lines[math.ceil(share * len(lines)) - 1]
            if key in line.get("selection", {}):
                values.append(100 * line["selection"][key])
        return Cell(tuple(values))

    def selects(self, row: Variant, data: str) -> bool:
        """Say whether a row doubts any label; most methods call them all clean."""
        paths = [
            path
            for noise in self.plan.noises_of(row)
            for path in self.runs.get((row.label, noise, data), {}).values()
        ]
        found = [line.get("selection", {}) for path in paths for line in log(path)]
        return any(selection.get("clean_recall", 1) < 1 for selection in found)


def read_results(plan: BenchPlan, runs: Path) -> Results:
    """Read the metrics of every run that has ended."""
    results = Results(plan, {}, {})
    for job in jobs(plan):
        path = runs / job.name / "metrics.json"
        if not path.exists():
            continue
        try:
            metrics = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"{path}: cannot be read; remove it to train again") from error
        key = (job.variant.label, job.noise, job.data)
        results.metrics.setdefault(key, {})[job.seed] = metrics
        results.runs.setdefault(key, {})[job.seed] = path.parent
    return results


def log(run: Path) -> list[dict[str, Any]]:
    """Read the log of a run."""
    lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def level(text: str) -> str:
    """Write how strong a noise is, as a column is headed.

    >>> level("none"), level("mislabel:0.4"), level("flip:0.1,0.3"), level("single")
    ('0 %', '40 %', '10 / 30 %', 'Single')
    """
    wanted = noise.parse(text)
    if wanted.kind == "none":
        return "0 %"
    if wanted.positive_rate is not None and wanted.negative_rate is not None:
        return f"{100 * wanted.positive_rate:g} / {100 * wanted.negative_rate:g} %"
    return f"{100 * wanted.rate:g} %" if noise.KINDS[wanted.kind] else wanted.kind.capitalize()


def heading(text: str) -> str:
    """Write a noise as a column of all kinds of noise is headed.

    >>> heading("none"), heading("flip:0.2"), heading("single")
    ('Clean', 'Flip 20 %', 'Single')
    """
    kind = noise.parse(text).kind
    if kind == "none":
        return "Clean"
    return f"{kind.capitalize()} {level(text)}" if noise.KINDS[kind] else level(text)
