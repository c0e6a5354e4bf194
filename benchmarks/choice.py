"""How much `--method auto` loses by choosing on given labels: docs/tables/choice.md.

For each data set and noise, every candidate is trained twice: on 80 % of the training rows, scored
on the given labels of the rest, by which `auto` chooses; and on all training rows, scored on the
true labels of the test rows, which nothing chooses by. The regret is the mAP that the best
candidate of the second table has above the one chosen.

    python benchmarks/choice.py             # goes on where it was stopped
    python benchmarks/choice.py pixels      # only what is taken for pixels: docs/tables/pixels.md
    python benchmarks/choice.py --table     # write the tables of what has ended

What has ended is kept in benchmarks/choice.jsonl, one line for each data set, noise and seed, and
in benchmarks/choice_pixels.jsonl. For pixels no candidate is trained again: what `auto` takes is
trained as if it had been named, so its scores are those of benchmarks/plans/pixels-judge.toml.
"""

from __future__ import annotations

import sys
import time
import warnings

import torch
from records import Record, Records
from results import ROOT, put

from balancemix.data import FeatureRows
from balancemix.plan.plan import Plan
from balancemix.progress import progress
from balancemix.training.choose import Comparison, choose
from balancemix.training.experiment import load_experiment

DATA = ROOT.parent / "shared" / "data"
LITE0, RESNET = "coco160-features.npz", "coco160-resnet50.npz"
NAMES = {LITE0: "COCO, Lite0", RESNET: "COCO, ResNet-50"}
NAMES |= {"real-noise/coco-captions.npz": "captions", "real-noise/birds.npz": "birds"}
CASES = [(LITE0, noise) for noise in ("mislabel:0.4", "flip:0.2", "single", "none")]
CASES += [(name, "none") for name in NAMES if name.startswith("real")]
CASES += [(RESNET, noise) for noise in ("mislabel:0.4", "flip:0.2", "single", "none")]
HEAD = (
    "| data | noise | taken | its test mAP | best on the test rows | its test mAP | regret |\n"
    "|---|---|---|---|---|---|---|\n"
)
PIXELS = [(noise, seed) for noise in ("none", "mislabel:0.4") for seed in (0, 1)]


def main(words: list[str]) -> None:
    """Measure what is missing, and write the tables."""
    on_pixels(PIXELS if "pixels" in words else [])
    if "pixels" in words:
        return
    records = Records("choice", ("data", "noise"))
    for data, noise in records.missing(CASES) if "--table" not in words else ():
        records.add(measure(data, noise))
    order = {case: place for place, case in enumerate(CASES)}
    kept = sorted(records.all, key=lambda record: order[record["data"], record["noise"]])
    put("choice", HEAD + "".join(map(row, kept)))


def measure(data: str, noise: str, seed: int = 0) -> Record:
    """Choose by held-out given labels, and score every candidate on the true test labels."""
    start = time.perf_counter()
    tree = {"data": {"path": str(DATA / data)}, "method": {"name": "auto"}, "noise": noise}
    plan = Plan.from_tree({**tree, "model": {"hidden": 512}, "seed": seed})
    experiment = load_experiment(plan)
    choice = choose(experiment.train, plan, progress)
    seconds = time.perf_counter() - start
    train, test = experiment.train.with_given(experiment.train.given, None), experiment.test
    if not isinstance(train, FeatureRows) or not isinstance(test, FeatureRows):
        sys.exit(f"{data}: has no features")
    truth = test.given if test.truth is None else test.truth
    compared = Comparison(train, test.with_given(truth, None), plan)
    scores = compared.scores(list(choice.scores), progress)
    facts = {"chosen": choice.chosen, "held_out": choice.scores, "test": scores}
    return {"data": data, "noise": noise, "seed": seed, **facts, "seconds": round(seconds)}


def on_pixels(cases: list[tuple[str, int]]) -> None:
    """Choose for images of 64 pixels, where it was not done yet, and write the table."""
    records = Records("choice_pixels", ("noise", "seed"))
    for noise, seed in records.missing(cases):
        data = {"path": str(DATA / "coco160"), "size": 64}
        tree = {"data": data, "method": {"name": "auto"}, "noise": noise, "seed": seed}
        start = time.perf_counter()
        choice = choose(load_experiment(Plan.from_tree(tree)).train, Plan.from_tree(tree), progress)
        facts = {"chosen": choice.chosen, "held_out": choice.scores, "errors": choice.errors}
        seconds = round(time.perf_counter() - start)
        records.add({"noise": noise, "seed": seed, **facts, "seconds": seconds})
    kept = sorted(records.all, key=lambda record: PIXELS.index((record["noise"], record["seed"])))
    names = list(kept[0]["held_out"]) if kept else []
    head = ["noise", "seed", *names, "taken"]
    lines = [head, ["---"] * len(head)]
    for record in kept:
        scores = [f"{record['held_out'][name]:.2f}" for name in names]
        lines.append([record["noise"], str(record["seed"]), *scores, record["chosen"]])
    put("choice-pixels", "".join(f"| {' | '.join(line)} |\n" for line in lines))


def row(record: Record) -> str:
    """Write a line of the table."""
    test, chosen = record["test"], record["chosen"]
    best = max(test, key=test.__getitem__)
    noise = "real" if record["data"].startswith("real") else record["noise"]
    cells = [NAMES[record["data"]], noise, chosen, f"{test[chosen]:.1f}", best, f"{test[best]:.1f}"]
    return f"| {' | '.join(cells)} | {test[best] - test[chosen]:.1f} |\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    torch.set_num_threads(1)
    main(sys.argv[1:])
