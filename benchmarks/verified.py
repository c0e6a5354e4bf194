"""What verified rows are worth, and whether they should count for more: docs/tables/verified.md.

A share of the training rows is verified by the truth (`keep`), among labels of which 40 % are
mislabelled and among captions' real errors. Scores: the last mAP on the test rows; and how well
the run's own confidence ranks the errors that are left on the rows that nobody verified, by
average precision, wrong positives and missing ones apart. `times` is the weight of a verified
label: more than 1 is a trial that the package does not offer.

    python benchmarks/verified.py             # goes on where it was stopped
    python benchmarks/verified.py --table     # write the table of what has ended

What has ended is kept in benchmarks/verified.jsonl, one line for each run.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import torch
from paired import over_seeds
from records import Record, Records
from results import ROOT, put
from sklearn.metrics import average_precision_score
from torch import Tensor

from balancemix.labels.mixtures import clean_probability
from balancemix.labels.table import LabelTable
from balancemix.plan.plan import Plan
from balancemix.run import Run
from balancemix.training.experiment import load_experiment

DATA = ROOT.parent / "shared" / "data"
SETS = {
    "mislabel 40 %": ("coco160-features.npz", "mislabel:0.4"),
    "captions": ("real-noise/coco-captions.npz", "none"),
}
METHODS = ("bce", "mixup", "balancemix", "kernel-ridge", "second-opinion")
SHARES = (0.0, 0.05, 0.2)
TIMES = (1, 3, 10)
SEEDS = (0, 1, 2)
KEY = ("set", "method", "share", "times", "seed")


def main(words: list[str]) -> None:
    """Measure what is missing, and write the table."""
    records = Records("verified", KEY)
    for case in records.missing(cases()) if "--table" not in words else ():
        record = records.add(measure(*case))
        print(*case, f"mAP {record['mAP']:.1f}", flush=True)
    put("verified", table(records.all))


def cases() -> Iterator[tuple[str, str, float, int, int]]:
    """List the runs: every method and share, then heavier weights of BCE and Mixup."""
    for seed in SEEDS:
        yield from product(SETS, METHODS, SHARES, TIMES[:1], (seed,))
    yield from product(SETS, ("bce", "mixup"), SHARES[2:], TIMES[1:], SEEDS)


def measure(name: str, method: str, share: float, times: int, seed: int) -> Record:
    """Train with a share of the rows verified, and audit the others."""
    data, noise = SETS[name]
    parts = [*([noise] if noise != "none" else []), *([f"keep:{share}"] if share else [])]
    tree = {"data": {"path": str(DATA / data)}, "noise": "+".join(parts) or "none"}
    plan = Plan.from_tree(
        {**tree, "method": {"name": method}, "model": {"hidden": 512}, "seed": seed}
    )
    experiment = load_experiment(plan)
    with tempfile.TemporaryDirectory() as folder, counting(times):
        run = Run.create(Path(folder) / "run", plan)
        score = experiment.fit(run).metrics["last"]["mAP"]
        suspicion = suspected(run)
    rows = experiment.train
    truth, verified = rows.truth, rows.verified
    assert truth is not None
    rest = torch.ones_like(rows.given, dtype=torch.bool) if verified is None else ~verified
    wrong, missing = (
        average_precision(truth[rest & side] != rows.given[rest & side], suspicion[rest & side])
        for side in (rows.given == 1, rows.given == 0)
    )
    case = dict(zip(KEY, (name, method, share, times, seed), strict=True))
    return {**case, "mAP": score, "wrong": wrong, "missing": missing}


def suspected(run: Run) -> Tensor:
    """Rank the labels by what the run itself believes: (1 − P(clean)) · |given − confidence|."""
    given, confidence, clean = run.table.given, run.confidence, run.table.clean.float()
    if bool((clean == 1).all()):  # by a method that does not select labels
        clean = clean_probability(given, confidence).float()
    return (1 - clean) * (given - confidence).abs()


@contextmanager
def counting(times: int) -> Iterator[None]:
    """Let a verified label count as often as `times`; all weights of a step sum up as before."""
    plain = LabelTable.rows

    def rows(
        self: LabelTable, index: Tensor | slice, device: torch.device | str = "cpu"
    ) -> tuple[Tensor, Tensor]:
        target, weight = plain(self, index, device)
        if isinstance(index, slice):  # for a file, not for a step
            return target, weight
        heavy = torch.where(self.verified(index).to(device), times * weight, weight)
        return target, heavy * (weight.sum() / heavy.sum())

    if times != 1:
        LabelTable.rows = rows  # type: ignore[method-assign]
    try:
        yield
    finally:
        LabelTable.rows = plain  # type: ignore[method-assign]


def average_precision(wrong: Tensor, suspicion: Tensor) -> float:
    """Score a ranking of labels by suspicion, in percent."""
    return 100 * float(average_precision_score(wrong.numpy(), suspicion.numpy()))


def table(kept: list[Record]) -> str:
    """Write mean scores, and the difference to no verified rows, or to weight 1, with its error."""
    lines = [
        "| labels | method | verified | weight | last mAP | change | wrong, AP | missing, AP |",
        "|---|---|---|---|---|---|---|---|",
    ]
    by_case: dict[tuple[Any, ...], dict[int, Record]] = {}
    for record in kept:
        case = tuple(record[name] for name in KEY[:-1])
        by_case.setdefault(case, {})[record["seed"]] = record
    for name, method, share, times in sorted(by_case, key=place):
        here = by_case[name, method, share, times]
        base = by_case.get((name, method, share if times > 1 else 0.0, 1), {})
        both = sorted(here.keys() & base.keys())
        change = ""
        if share and both:
            gap = over_seeds(*([side[s]["mAP"] for s in both] for side in (here, base)))
            change = f"{gap.mean:+.1f} ± {gap.error:.1f}"
        mean = {
            key: sum(record[key] for record in here.values()) / len(here)
            for key in ("mAP", "wrong", "missing")
        }
        scores = f"{mean['mAP']:.1f} | {change} | {mean['wrong']:.1f} | {mean['missing']:.1f}"
        lines.append(f"| {name} | {method} | {100 * share:g} % | {times} | {scores} |")
    return "\n".join(lines) + "\n"


def place(case: tuple[Any, ...]) -> tuple[int, int, int, float]:
    """Sort as the cases are listed, the weights of one share together."""
    name, method, share, times = case
    return list(SETS).index(name), METHODS.index(method), share, times


if __name__ == "__main__":
    main(sys.argv[1:])
