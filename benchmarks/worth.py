"""What is a person's time worth? mAP and errors left by hours of checking: docs/tables/worth.md.

    python benchmarks/worth.py             # goes on where it was stopped
    python benchmarks/worth.py WORD …      # only of these ways, sets or students
    python benchmarks/worth.py again WORD …    # the same, measured again
    python benchmarks/worth.py --table     # write the table and docs/worth.svg of what has ended

A person with the truth at hand checks labels for some hours in one of five ways, then a model is
trained on the result, with all that was looked at verified:

list        labels, the most doubtful first; those of one image together
sweep       the same labels on pages of one class, each at a glance
cleanlab    labels by cleanlab's default ranker with five-fold cross-validated confidence, as `list`
most errors all labels of the images in which the judge expects most errors
random      all labels of images drawn at random

Nothing is ranked again as answers come in. The seconds are assumed, not measured: see
`checking.py`.
`times` is the weight of a verified label in the loss: more than 1 is a trial that the package does
not offer. What has ended is kept in benchmarks/worth.jsonl, a line for each training.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import product
from statistics import mean
from typing import Any

import rankings
import torch
from checking import SECONDS, Checked, listed, settled, swept
from folds import cross_validated
from label_sets import Case, factored, in_ledger, judged, load_case, train_last
from paired import over_seeds
from results import ROOT, put
from torch import Tensor
from verified import counting

from balancemix.auditing.judged import weigh_opinion
from balancemix.data import Rows
from balancemix.files import to_json, write_text
from balancemix.judge import judge
from balancemix.report.figures import style
from balancemix.training.experiment import Experiment
from balancemix.training.solve import solve

KEPT = ROOT / "benchmarks" / "worth.jsonl"
SETS: dict[str, tuple[str, str]] = {
    "captions": ("captions", "real"),
    "birds": ("birds", "real"),
    "mislabel 40 %": ("COCO, Lite0", "mislabel:0.4"),
}
HOURS = (0.5, 2.0, 8.0)
WAYS = ("random", "list", "most errors", "cleanlab", "sweep")
SETTLED = ("random", "most errors")
STUDENTS = ("bce", "kernel-ridge", "second-opinion")
TIMES = (3, 10)
SEEDS = (0, 1, 2)
COUNTS = ("images", "looked", "fixed", "wrong_left", "missing_left")
KEY = ("set", "seed", "way", "hours", "student", "times")

Record = dict[str, Any]
Key = tuple[str, int, str, float, str, int]


def main(words: list[str]) -> None:
    """Measure what is missing, and write the table and the figure."""
    kept = read()
    if words[:1] == ["again"]:
        words = words[1:]
        kept = [record for record in kept if not asked(key_of(record), words)]
    known = {key_of(record) for record in kept}
    for key in keys() if "--table" not in words else ():
        if key not in known and asked(key, words):
            kept.append(measure(*key))
            write_text(KEPT, "".join(to_json(record) + "\n" for record in kept))
            print(*key, f"mAP {kept[-1]['mAP']:.2f}", flush=True)
    put("worth", table(kept))
    draw(kept)


def read() -> list[Record]:
    """Read what has ended."""
    text = KEPT.read_text(encoding="utf-8") if KEPT.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def key_of(record: Record) -> Key:
    """Say which training a line is of."""
    name, seed, way, hours, student, times = (record[part] for part in KEY)
    return name, seed, way, hours, student, times


def asked(key: Key, words: list[str]) -> bool:
    """Say whether words ask for a training: its way, set and student, where words name one.

    >>> asked(("birds", 0, "list", 2.0, "bce", 1), ["birds", "captions"])
    True
    >>> asked(("birds", 0, "list", 2.0, "bce", 1), ["birds", "kernel-ridge"])
    False
    """
    name, _, way, _, student, _ = key
    parts = ((name, SETS), (way, ("nothing", *WAYS, "everything")), (student, STUDENTS))
    return all(mine in words or not set(words) & set(known) for mine, known in parts)


def keys() -> Iterator[Key]:
    """List the trainings, the most telling first."""
    ways = [way for way in WAYS if way != "cleanlab" or importlib.util.find_spec("cleanlab")]
    for seed in SEEDS:
        for student in STUDENTS:
            for name in SETS:
                yield name, seed, "nothing", 0.0, student, 1
                yield from ((name, seed, way, h, student, 1) for h in HOURS[1:] for way in ways)
            if student == "bce":
                settled = product(SETTLED, SETS, TIMES)
                yield from ((name, seed, way, HOURS[2], student, t) for way, name, t in settled)
        for student in STUDENTS:
            for name in SETS:
                yield from ((name, seed, way, HOURS[0], student, 1) for way in ways)
                yield name, seed, "everything", 0.0, student, 1


def measure(name: str, seed: int, way: str, hours: float, student: str, times: int) -> Record:
    """Check labels for some hours, and train on the result."""
    case = (*SETS[name], seed)
    rows, truth = prepared(case).train, true_labels(case)
    checked = look(case, way, 3600 * hours)
    given = torch.where(checked.labels, truth, rows.given)
    known = checked.labels if bool(checked.labels.any()) else None
    scores = in_ledger(case, student) if way == "nothing" else None
    with counting(times):
        corrected = rows.with_given(given, truth)
        before = None if known is None else rows.given
        scores = scores or train(case, student, corrected.with_verified(known, before))
    errors = given != truth
    facts = {
        "looked": int(checked.labels.sum()),
        "images": checked.images,
        "fixed": int((given != rows.given).sum()),
        "wrong_left": int((errors & (given == 1)).sum()),
        "missing_left": int((errors & (given == 0)).sum()),
        "mAP": scores["mAP"],
        "mAP_few": scores["mAP_few"],
    }
    return {**dict(zip(KEY, (name, seed, way, hours, student, times), strict=True)), **facts}


def train(case: Case, student: str, rows: Rows) -> dict[str, float]:
    """Train a student on rows, and return its last scores on the test rows.

    The features are the same for all, and so is what is factored of them.
    """
    plan, test = load_case(case, student).plan, prepared(case).test
    if plan.method.closed:
        return solve(rows, test, plan, ridge=factored(case[0])).metrics["last"]
    if plan.method.needs_opinion:
        known = {"verified": rows.verified, "before": rows.before}
        opinion = judge(rows.given, factored(case[0]), **known, seed=plan.seed)
        plan = dataclasses.replace(plan, method=plan.method.informed_by(opinion, factored(case[0])))
    return train_last(plan, rows, test)


@cache
def prepared(case: Case) -> Experiment:
    """Load the rows of a case."""
    return load_case(case)


def true_labels(case: Case) -> Tensor:
    """Return the truth of the training rows."""
    truth = prepared(case).train.truth
    assert truth is not None
    return truth


@cache
def probabilities(case: Case) -> Tensor:
    """Compute how likely each label is wrong, as modelled."""
    given = prepared(case).train.given
    return weigh_opinion(given, judged(case), factored(case[0])).probability


def look(case: Case, way: str, seconds: float) -> Checked:
    """Choose the labels that a person looks at in so many seconds."""
    given, seed = prepared(case).train.given, case[2]
    if way in ("nothing", "everything"):
        return settled(given.shape, torch.arange(len(given)), len(given) * (way == "everything"))
    count = int(seconds / SECONDS["settled"])
    if way == "random":
        generator = torch.Generator().manual_seed(1000 + seed)
        return settled(given.shape, torch.randperm(len(given), generator=generator), count)
    if way == "cleanlab":
        doubt = -rankings.quality(given, cross_validated(case))
        return listed(doubt, seconds)
    if way == "most errors":
        order = probabilities(case).sum(1).argsort(descending=True, stable=True)
        return settled(given.shape, order, count)
    if way == "sweep":
        return swept(probabilities(case), seconds)
    return listed(probabilities(case), seconds)


def table(kept: list[Record]) -> str:
    """Write what each way has reached: means over seeds, with the change from doing nothing."""
    head = ("set", "way", "hours", "weight", "images", "labels", "fixed", "wrong left",
            "missing left", *STUDENTS, "seeds")  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    cells: dict[tuple[str, str, float, int], dict[str, dict[int, Record]]] = {}
    for record in kept:
        cell = (record["set"], record["way"], record["hours"], record["times"])
        cells.setdefault(cell, {}).setdefault(record["student"], {})[record["seed"]] = record
    for name, way, hours, times in sorted(cells, key=place):
        here = cells[name, way, hours, times]
        base = cells.get((name, "nothing", 0.0, 1), {})
        lines_here = [record for by_seed in here.values() for record in by_seed.values()]
        facts = [mean(record[key] for record in lines_here) for key in COUNTS]
        scores = [reached(here.get(s, {}), base.get(s, {}), way) for s in STUDENTS]
        seeds = sorted({len(by_seed) for by_seed in here.values()})
        row = [name, way, f"{hours:g}" if hours else "–", str(times),
               *(f"{fact:,.0f}" for fact in facts), *scores,
               "–".join(map(str, seeds))]  # fmt: skip
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def reached(here: dict[int, Record], base: dict[int, Record], way: str) -> str:
    """Write a mean mAP and, of the same seeds, its change with the standard error."""
    if not here:
        return "–"
    score = mean(record["mAP"] for record in here.values())
    both = sorted(here.keys() & base.keys())
    if way == "nothing" or not both:
        return f"{score:.1f}"
    gap = over_seeds(*([side[seed]["mAP"] for seed in both] for side in (here, base)))
    error = "" if len(both) < 2 else f" ± {gap.error:.1f}"
    return f"{score:.1f} ({gap.mean:+.1f}{error})"


def place(cell: tuple[str, str, float, int]) -> tuple[int, int, float, int]:
    """Sort by set, way, hours and weight."""
    name, way, hours, times = cell
    return list(SETS).index(name), ("nothing", *WAYS, "everything").index(way), hours, times


def draw(kept: list[Record]) -> None:
    """Draw mAP by hours, a panel for each set and student; a student needs points in all sets."""
    shown = [
        student
        for student in STUDENTS
        if all(any(len(curve(kept, name, student, w)) > 1 for w in WAYS) for name in SETS)
    ]
    if not shown:
        return
    hues = (style.GREEN, style.PINK, style.ORANGE, style.GREY, style.BLUE)
    with style.style():
        figure, axes = style.figure(1.9 * len(shown) + 0.6, len(shown), len(SETS))
        for panel, (student, name) in zip(axes, product(shown, SETS), strict=True):
            for way, hue in zip(WAYS, hues, strict=True):
                points = curve(kept, name, student, way)
                panel.plot(*zip(*points, strict=True), color=hue, marker="o", ms=2.5, label=way)
            panel.set_xticks([0, *HOURS[1:]])
            panel.tick_params(labelsize=7)
        for panel in axes[-len(SETS) :]:
            panel.set_xlabel("hours of a person", fontsize=7.5)
        for panel, name in zip(axes, SETS, strict=False):
            panel.set_title(name, fontsize=7.5)
        for panel, student in zip(axes[:: len(SETS)], shown, strict=True):
            panel.set_ylabel(f"{student}: mAP, %", fontsize=7.5)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(WAYS), fontsize=7.5)
        for file in style.save(figure, ROOT / "docs" / "worth"):
            if file.suffix != ".svg":
                file.unlink()


def curve(kept: list[Record], name: str, student: str, way: str) -> list[tuple[float, float]]:
    """List hours and mean mAP, from nothing on."""
    found: dict[float, list[float]] = {}
    for record in kept:
        fits = record["set"] == name and record["student"] == student and record["times"] == 1
        if fits and record["way"] in ("nothing", way):
            found.setdefault(record["hours"], []).append(record["mAP"])
    return [(hours, mean(scores)) for hours, scores in sorted(found.items())]


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    torch.set_num_threads(1)
    main(sys.argv[1:])
