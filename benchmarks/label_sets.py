"""The data of the benchmarks of findings: features, and labels with planted or with real errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from results import FASHION, JUDGE, LEDGER, ROOT

from balancemix.data import Rows
from balancemix.evaluation.metrics import evaluate
from balancemix.files import write_arrays
from balancemix.judge import Opinion, judge
from balancemix.judge.ridge import Ridge
from balancemix.plan.plan import Plan
from balancemix.training.experiment import Experiment, load_experiment
from balancemix.training.features import features_of
from balancemix.training.fit import fit, true_groups
from balancemix.training.models import make_model
from balancemix.training.predict import predict_logits

SHARED = ROOT.parent / "shared" / "data"
FILES = {
    "COCO, Lite0": SHARED / "coco160-features.npz",
    "COCO, ResNet-50": SHARED / "coco160-resnet50.npz",
    "DeepFashion": ROOT / FASHION,
    "captions": SHARED / "real-noise" / "coco-captions.npz",
    "birds": SHARED / "real-noise" / "birds.npz",
}
REAL = ("captions", "birds")
PLANTED = ("mislabel:0.2", "mislabel:0.4", "flip:0.1", "single")
HEADINGS = {
    "none": "clean", "mislabel:0.2": "mislabel 20 %", "mislabel:0.4": "mislabel 40 %",
    "flip:0.1": "flip 10 %", "single": "single", "real": "real",
}  # fmt: skip
KEPT = ROOT / "bench" / "opinions"
MATRICES = ("score", "confidence", "posterior")  # kept whole, where a run's file rounds them

Case = tuple[str, str, int]  # set, noise, seed


def cases(seeds: Sequence[int]) -> Iterator[Case]:
    """List real noise once and planted noise with each seed, of the files that are here."""
    for seed in seeds:
        for name, file in FILES.items():
            if not file.exists() or (name in REAL and seed != seeds[0]):
                continue
            for noise in ("real",) if name in REAL else PLANTED:
                yield name, noise, seed


def load_case(case: Case, method: str = "bce", **more: Any) -> Experiment:
    """Load a case: training rows with their noise and truth, and test rows."""
    name, noise, seed = case
    tree = {
        "data": {"path": str(FILES[name])},
        "noise": "none" if noise == "real" else noise,
        "method": {"name": method},
        "model": {"hidden": 512},
        "train": {"device": "cpu"},
        "seed": seed,
    }
    return load_experiment(Plan.from_tree({**tree, **more}))


@cache
def factored(name: str) -> Ridge:
    """Factor the features of a set's training rows once: no noise and no seed changes them."""
    experiment = load_case((name, "none", 0))
    return Ridge.of(features_of(experiment.train, experiment.plan))


def judged(case: Case) -> Opinion:
    """Return the judge's opinion of a case's training rows, made once."""
    name, noise, seed = case
    file = KEPT / f"{name}-{noise}-{seed}.npz".replace(", ", "-").replace(":", "-")
    if not file.exists():
        opinion = judge(load_case(case).train.given, factored(name))
        arrays = opinion.arrays() | {each: getattr(opinion, each).numpy() for each in MATRICES}
        file.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(file, arrays)
    with np.load(file) as stored:
        return Opinion.from_arrays(dict(stored))


def in_ledger(case: Case, method: str) -> dict[str, float] | None:
    """Look up the last scores of a method at its defaults, on the labels as they are.

    The benches of the judge have the same recipe: what they trained need not be trained again.
    """
    name, noise, seed = case
    plain = "none" if noise == "real" else noise
    for line in (ROOT / LEDGER).read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        plan = entry["plan"]
        found = (entry["data"], plan["noise"], plan["seed"], plan["method"]["name"])
        if entry["bench"] in JUDGE and found == (FILES[name].stem, plain, seed, method):
            last: dict[str, float] = entry["last"]
            return last
    return None


def train_last(plan: Plan, rows: Rows, test: Rows) -> dict[str, float]:
    """Train a plan's method on rows, and score the last epoch, but none before, on test rows."""
    few = test.subset(torch.arange(2))
    trained = fit(partial(make_model, plan, rows, pretrained=False), rows, few, plan)
    truth = test.given if test.truth is None else test.truth
    logits = predict_logits(trained.model, test.plain)
    return evaluate(truth, logits, true_groups(rows, plan), classes=test.classes)
