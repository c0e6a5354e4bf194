"""The results of a bench, one line for each run: tables, figures and pages all read these."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any, Literal

from balancemix.bench.finished import Finished
from balancemix.bench.plan import BenchPlan, jobs
from balancemix.bench.pool import advise
from balancemix.bench.ranking import Scores
from balancemix.bench.table import Cell
from balancemix.errors import InputError
from balancemix.evaluation.scoring import headline
from balancemix.labels import noise
from balancemix.run import Run

When = Literal["last", "best"]
GROUPS = {"All": "mAP", "Many": "mAP_many", "Medium": "mAP_medium", "Few": "mAP_few"}


@dataclass(frozen=True)
class Result:
    """A finished run: what it trained (`method` is the label of a row), and its metrics.

    A run that only the ledger knows has no files at `path`, and no log.
    """

    method: str
    noise: str
    data: str
    seed: int
    path: Path
    metrics: dict[str, Any]

    def score(self, when: When, group: str) -> float | None:
        """Return the mAP of a group of classes, if the data has such classes."""
        value: float | None = self.metrics[when].get(GROUPS[group])
        return value

    @cached_property
    def log(self) -> list[dict[str, Any]]:
        """The lines of its log, one for each epoch."""
        return Run(self.path).log


class Results:
    """The finished runs of a plan, in the order of its jobs."""

    def __init__(self, plan: BenchPlan, lines: Iterable[Result]) -> None:
        self.plan, self.lines = plan, list(lines)
        self._by_cell: dict[tuple[str, str, str], list[Result]] = {}
        for line in self.lines:
            self._by_cell.setdefault((line.method, line.noise, line.data), []).append(line)

    def of(self, method: str, noise: str, data: str) -> list[Result]:
        """Return the runs of a method, one for each seed."""
        return self._by_cell.get((method, noise, data), [])

    def groups(self, data: str) -> list[str]:
        """List the groups that have classes, by the finished runs; all groups if there are none."""
        lines = [line for line in self.lines if line.data == data]
        return [
            group
            for group in GROUPS
            if not lines or any(line.score("last", group) is not None for line in lines)
        ]

    def score(self, method: str, noise: str, data: str, when: When, group: str = "All") -> Cell:
        """Collect a score over the seeds."""
        return Cell.of(*(line.score(when, group) for line in self.of(method, noise, data)))

    def means(self, data: str) -> dict[str, Scores]:
        """Return the mean last mAP of every row, by noise and group."""
        return {
            row.label: {
                (text, group): value
                for text in self.plan.noises
                for group in GROUPS
                if (value := self.score(row.label, text, data, "last", group).mean) is not None
            }
            for row in self.plan.methods
        }

    def overall(self, method: str, data: str, when: When) -> Cell:
        """Average the mAP over all noises, for the seeds that have finished under each of them."""
        noises = self.plan.noises
        scores: dict[int, list[float]] = {seed: [] for seed in self.plan.seeds}
        for line in (line for text in noises for line in self.of(method, text, data)):
            scores[line.seed].append(line.metrics[when]["mAP"])
        whole = (each for each in scores.values() if len(each) == len(noises))
        return Cell.of(*map(mean, whole))

    def curve(self, method: str, noise: str, data: str) -> list[float]:
        """Average the mAP after each epoch over the seeds."""
        logs = (line.log for line in self.of(method, noise, data))
        curves = ([epoch["mAP"] for epoch in log] for log in logs if log)
        return [mean(values) for values in zip(*curves, strict=False)]

    def selection(self, method: str, noise: str, data: str, share: float, key: str) -> Cell:
        """Collect a selection quality in percent after `share` of the epochs."""
        logs = [line.log for line in self.of(method, noise, data) if line.log]
        epochs = [log[math.ceil(share * len(log)) - 1].get("selection", {}) for log in logs]
        return Cell.of(*(100 * epoch[key] for epoch in epochs if key in epoch))

    def selects(self, method: str, data: str) -> bool:
        """Return whether a method doubts any label; most take all labels as clean."""
        return any(
            epoch.get("selection", {}).get("clean_recall", 1) < 1
            for text in self.plan.noises
            for line in self.of(method, text, data)
            for epoch in line.log
        )


def read_results(plan: BenchPlan, runs: Path, finished: Finished | None = None) -> Results:
    """Read the metrics of every finished run, from the ledger where that has them."""
    lines = []
    for job in jobs(plan):
        run, entry = Run(runs / job.name), finished.find(job) if finished else None
        if entry is None and not run.has("metrics"):
            continue
        facts = (job.variant.label, job.noise, job.data, job.seed)
        metrics = entry.metrics if entry is not None else _metrics(run)
        lines.append(Result(*facts, run.path, metrics))
    return Results(plan, lines)


def _metrics(run: Run) -> dict[str, Any]:
    try:
        metrics = run.metrics
        headline(metrics)
    except InputError as error:
        raise InputError(advise(error, run.path)) from error
    except (AttributeError, KeyError, TypeError) as error:
        problem = InputError(f"{run.path_of('metrics')}: does not hold scores")
        raise InputError(advise(problem, run.path)) from error
    return metrics


def level(text: str) -> str:
    """Write the rate of a noise, as the heading of a column.

    >>> level("none"), level("mislabel:0.4"), level("flip:0.1,0.3"), level("single+keep:0.1")
    ('0 %', '40 %', '10 / 30 %', 'Single + 10 %')
    """
    return " + ".join(map(_level, noise.parse(text).parts))


def heading(text: str) -> str:
    """Write the kind and rate of a noise, as the heading of a column.

    >>> heading("none"), heading("flip:0.2"), heading("single+keep:0.1")
    ('Clean', 'Flip 20 %', 'Single + Keep 10 %')
    """
    return " + ".join(map(_heading, noise.parse(text).parts))


def _level(part: noise.Noise) -> str:
    if part.kind == "none":
        return "0 %"
    if part.positive_rate is not None and part.negative_rate is not None:
        return f"{100 * part.positive_rate:g} / {100 * part.negative_rate:g} %"
    return f"{100 * part.rate:g} %" if noise.KINDS[part.kind] else part.kind.capitalize()


def _heading(part: noise.Noise) -> str:
    if part.kind == "none":
        return "Clean"
    return f"{part.kind.capitalize()} {_level(part)}" if noise.KINDS[part.kind] else _level(part)
