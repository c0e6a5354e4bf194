"""What an epoch costs after the warm-up: `python benchmarks/epoch.py`, minutes on two free cores.

The time of whole epochs, with the passes at their end, as ratios to Mixup's. The methods train in
turns of a second and go on until the slowest has been measured. Their time is counted in steps that
Mixup makes just then, so that a change in the machine's speed is none in the ratio, which is of
means over epochs and has their standard error. Also how much of an epoch is neither loading,
forward, backward nor the optimiser's step: what sampling, mixtures and the label table take,
besides what any training has. Rows and weights are random.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from photos import report, write_photos
from torch import Tensor
from turns import Enough, Turn, in_turns

import balancemix.training.fit
from balancemix.data import FeatureRows, ImageRows, Rows, View
from balancemix.judge import judge
from balancemix.methods import Mixup
from balancemix.models.classifier import Classifier
from balancemix.plan.plan import Plan
from balancemix.progress import progress
from balancemix.training.engine import Engine
from balancemix.training.fit import fit
from balancemix.training.models import make_model
from balancemix.training.opinion import informed

CLASSES = [f"class {k}" for k in range(80)]
# Positives are not left to a pilot, whose epochs would be measured as well.
REFINED = {"name": "balancemix", "warmup": 1, "trust_positives": False}
METHODS: dict[str, dict[str, Any]] = {
    "mixup": {"name": "mixup"},  # the yardstick has the first turn
    "bce": {"name": "bce"},
    "balancemix online": {**REFINED, "relabel": "online"},
    "balancemix epoch": {**REFINED, "relabel": "epoch"},
    "balancemix paper": {**REFINED, "relabel": "paper"},
    "second opinion": {"name": "second-opinion"},
}
REQUIRED = {"balancemix online": "<= 1.9", "balancemix epoch": "<= 1.45"}
OPINION = {"second opinion": "<= 1.05"}  # without the judge, which has its own line
EPOCHS = 30  # of a training, over which the judge's time is spread
# So many that mixtures, which take as long whatever the number of images, weigh no more than in
# somebody's small data set.
PHOTOS, SIZE = 2048, 128


def main() -> None:
    """Measure, and print a line for each case."""
    wanted = sys.argv[1:] or ["features", "images"]
    with TemporaryDirectory() as name:
        folder = Path(name)
        if "features" in wanted:
            ratios = compare("features", folder, epochs=8, required=OPINION)
            time_judge("features", folder, ratios["second opinion"])
        if "images" in wanted:
            write_photos(folder, PHOTOS)
            required = REQUIRED | OPINION
            ratios = compare("images", folder, epochs=3, required=required, rest="< 0.03")
            time_judge("images", folder, ratios["second opinion"])


def feature_rows() -> FeatureRows:
    """Make random features."""
    features = torch.randn(5000, 1280, generator=torch.Generator().manual_seed(0))
    return FeatureRows(features, random_labels(5000), CLASSES)


def image_rows(folder: Path) -> ImageRows:
    """Decode the photographs once."""
    paths = sorted(folder.rglob("*.jpg"))
    rows = ImageRows(paths, random_labels(len(paths)), CLASSES, view=View(size=SIZE))
    rows = rows.cached("memory")
    for i in range(len(rows)):
        rows.store.image(i)
    return rows


def random_labels(count: int) -> Tensor:
    """Give each row about three of the 80 classes, as COCO does, and any 64 rows all of them."""
    generator = torch.Generator().manual_seed(1)
    labels = (torch.rand(count, len(CLASSES), generator=generator) < 0.012).to(torch.uint8)
    rows = torch.arange(count)
    labels[rows, rows % 80] = labels[rows, (rows + 40) % 80] = 1
    return labels


def compare(
    case: str, folder: Path, *, epochs: int, required: dict[str, str], rest: str = ""
) -> dict[str, float]:
    """Train with all methods in turns until each has so many epochs; report and return ratios."""
    with progress(f"epochs on {case}", epochs * len(METHODS)) as show:
        found = in_turns(partial(train, case, folder), list(METHODS), epochs, show)
    mean = {name: each[:, 0].mean() for name, each in found.items()}
    error = {name: each[:, 0].std() / len(each) ** 0.5 for name, each in found.items()}
    for name in METHODS:
        if name != "mixup":
            ratio = mean[name] / mean["mixup"]
            spread = ratio * sum((error[one] / mean[one]) ** 2 for one in (name, "mixup")) ** 0.5
            what, bound = f"{case}, {name}, against mixup", required.get(name, "")
            report("epoch", what, float(ratio), bound, standard_error=float(spread))
    for name, each in found.items():
        whole, busy = each.sum(0).tolist()
        bound = rest if name in REQUIRED else ""
        report("epoch", f"{case}, {name}, bookkeeping", 1 - busy / whole, bound)
    return {name: float(each / mean["mixup"]) for name, each in mean.items()}


def train(case: str, folder: Path, name: str, turn: Turn) -> Tensor:
    """Train until it is enough; of epochs but the first, all time and that accounted for."""
    torch.set_num_threads(2)
    rows = image_rows(folder) if case == "images" else feature_rows()
    few = rows.subset(torch.arange(64))
    tree = {
        "method": METHODS[name],
        "train": {"epochs": 1000, "device": "cpu"},
        "data": {"size": SIZE},
        "model": {"pretrained": False},
    }
    plan = Plan.from_tree(tree)
    if name == "second opinion":
        plan = judged(plan, rows)
    with watched(turn, yardstick=name == "mixup") as marks, suppress(Enough):
        balancemix.training.fit.fit(
            lambda: make_model(plan, rows, pretrained=False), rows, few, plan
        )
    whole = torch.tensor(marks[: len(marks) // 2 * 2], dtype=torch.float64)
    return whole.view(-1, 2, 2).diff(dim=1)[1:, 0]


def judged(plan: Plan, rows: Rows) -> Plan:
    """Let the judge see the rows; its time is measured by `judge`, not here."""
    features = torch.randn(len(rows), 64, generator=torch.Generator().manual_seed(2))
    method = plan.method.informed_by(judge(rows.given, features), None)
    return dataclasses.replace(plan, method=method)


def time_judge(case: str, folder: Path, ratio: float) -> None:
    """Report what the judge takes before training, in epochs of Mixup, and over a training.

    `ratio` is an epoch of second opinion to one of Mixup. For images, their features are made by
    the frozen backbone, which is most of it.
    """
    torch.set_num_threads(2)
    rows = image_rows(folder) if case == "images" else feature_rows()
    tree: dict[str, Any] = {
        "method": {"name": "second-opinion"},
        "train": {"epochs": 3, "device": "cpu"},
        "data": {"size": SIZE},
        "model": {"pretrained": False},
    }
    plan = Plan.from_tree(tree)
    start = time.perf_counter()
    informed(plan, rows)
    taken = time.perf_counter() - start
    mixup = dataclasses.replace(plan, method=Mixup())
    few = rows.subset(torch.arange(64))
    trained = fit(lambda: make_model(mixup, rows, pretrained=False), rows, few, mixup)
    epochs = taken / trained.metrics["seconds_per_epoch"]
    report("epoch", f"{case}, the judge, in epochs of mixup", epochs)
    bound = "<= 1.05" if case == "images" else ""
    what = f"{case}, second opinion in all, {EPOCHS} epochs, against mixup"
    report("epoch", what, ratio + epochs / EPOCHS, bound)


@contextmanager
def watched(turn: Turn, *, yardstick: bool) -> Iterator[list[tuple[float, float]]]:
    """Offer the turn after whatever takes long; note when epochs begin and end.

    Beside each such time stands what was spent until then on loading, forward, backward and step.
    """
    busy = 0.0
    marks: list[tuple[float, float]] = []

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **settings: Any) -> Any:
            nonlocal busy
            begin = turn.clock()
            result = function(*arguments, **settings)
            taken = turn.clock() - begin
            busy += taken
            if yardstick and function is step:
                turn.measure(taken)
            turn.offer()
            return result

        return call

    step = Engine.step

    def mark() -> float:  # fit looks at the clock when an epoch begins and when it has ended
        marks.append((turn.clock(), busy))
        if len(marks) % 2 == 0 and len(marks) > 2:
            turn.count()
        return marks[-1][0]

    with ExitStack() as stack:
        for owner, name in ((Rows, "__getitems__"), (Classifier, "forward"), (Engine, "step")):
            stack.enter_context(patch.object(owner, name, timed(getattr(owner, name))))
        looking = SimpleNamespace(perf_counter=mark)
        stack.enter_context(patch.object(balancemix.training.fit, "time", looking))
        yield marks


if __name__ == "__main__":
    main()
