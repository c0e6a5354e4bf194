"""What an epoch costs after the warm-up: `python benchmarks/epoch.py`, minutes on two free cores.

Seconds of whole epochs, with the passes at their end, as ratios to Mixup's; the methods take turns,
and of each one's epochs the fastest counts: what disturbs a measurement only ever adds to it.
Also how much of BalanceMix's epoch is neither loading, forward, backward nor the optimiser's step:
what sampling, mixtures and the label table take. Rows and weights are random.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch
from photos import report, write_photos
from torch import Tensor

import balancemix.train
from balancemix.data import FeatureRows, ImageRows, Rows
from balancemix.engine import Engine
from balancemix.experiment import make_model
from balancemix.model import Classifier
from balancemix.plan import Plan
from balancemix.progress import progress
from balancemix.run import Run

CLASSES = [f"class {k}" for k in range(80)]
METHODS: dict[str, dict[str, Any]] = {
    "bce": {"name": "bce"},  # first: whatever a process does only once falls to it, not to Mixup
    "mixup": {"name": "mixup"},
    "balancemix online": {"name": "balancemix", "warmup": 1, "mode": "online"},
    "balancemix epoch": {"name": "balancemix", "warmup": 1, "mode": "epoch"},
}
REQUIRED = {"balancemix online": "<= 1.9", "balancemix epoch": "<= 1.45"}
PHOTOS, SIZE = 1024, 128
# The first epoch is the warm-up, and the last has a pass more for the final record.
EPOCHS, MEASURED = 3, (1,)


def main() -> None:
    """Measure, and print a line for each case."""
    torch.set_num_threads(2)
    wanted = sys.argv[1:] or ["features", "images"]
    with TemporaryDirectory() as name:
        folder = Path(name)
        if "features" in wanted:
            compare("features", feature_rows(), folder, rounds=5, required={}, rest="")
        if "images" in wanted:
            rows = image_rows(folder)
            compare("images", rows, folder, rounds=2, required=REQUIRED, rest="< 0.03")


def feature_rows() -> FeatureRows:
    """Make random features."""
    features = torch.randn(5000, 1280, generator=torch.Generator().manual_seed(0))
    return FeatureRows(features, random_labels(5000), CLASSES)


def image_rows(folder: Path) -> ImageRows:
    """Write made-up photographs, and decode them once."""
    paths = write_photos(folder / "photos", PHOTOS)
    rows = ImageRows(paths, random_labels(PHOTOS), CLASSES, size=SIZE).cached("memory")
    for i in range(PHOTOS):
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
    case: str, rows: Rows, folder: Path, *, rounds: int, required: dict[str, str], rest: str
) -> None:
    """Train with every method in turn, and report each one's ratio to Mixup."""
    epochs: dict[str, list[tuple[float, float]]] = {name: [] for name in METHODS}
    with progress(f"epochs on {case}", rounds * len(METHODS)) as show:
        for turn in range(rounds):
            for name, method in METHODS.items():
                run = Run(folder / f"{case} {name} {turn}")
                epochs[name] += measure(rows, method, run)
                show.advance()
    fastest = {name: min(found) for name, found in epochs.items()}
    for name, (seconds, _) in fastest.items():
        ratio = seconds / fastest["mixup"][0]
        if name != "mixup":
            report("epoch", f"{case}, {name}, against mixup", ratio, required.get(name, ""))
    for name in ("balancemix online", "balancemix epoch"):
        report("epoch", f"{case}, {name}, bookkeeping", fastest[name][1], rest)


def measure(rows: Rows, method: dict[str, Any], run: Run) -> list[tuple[float, float]]:
    """Train, and return of some epochs the seconds and the share of them that is bookkeeping."""
    tree = {
        "method": method,
        "train": {"epochs": EPOCHS, "device": "cpu"},
        "data": {"size": SIZE},
        "model": {"pretrained": False},
    }
    plan = Plan.from_tree(tree)
    run.path.mkdir()
    few = rows.subset(torch.arange(64))
    with clock() as (busy, ends):
        balancemix.train.fit(lambda: make_model(plan, rows, pretrained=False), rows, few, plan, run)
    found = []
    for epoch in MEASURED:
        seconds, end = run.log()[epoch]["seconds"], ends[epoch]
        accounted = sum(stop - start for start, stop in busy if end - seconds <= start <= end)
        found.append((seconds, 1 - accounted / seconds))
    return found


@contextmanager
def clock() -> Iterator[tuple[list[tuple[float, float]], list[float]]]:
    """Record when loading, forward, backward and steps began and ended, and when epochs ended."""
    busy: list[tuple[float, float]] = []
    ends: list[float] = []

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **settings: Any) -> Any:
            begin = time.perf_counter()
            result = function(*arguments, **settings)
            busy.append((begin, time.perf_counter()))
            return result

        return call

    def score(*arguments: Any, **settings: Any) -> Any:
        ends.append(time.perf_counter())  # the first thing after an epoch's seconds are taken
        return predict_logits(*arguments, **settings)

    predict_logits = balancemix.train.predict_logits
    with ExitStack() as stack:
        for owner, name in ((Rows, "__getitems__"), (Classifier, "forward"), (Engine, "step")):
            stack.enter_context(patch.object(owner, name, timed(getattr(owner, name))))
        stack.enter_context(patch.object(balancemix.train, "predict_logits", score))
        yield busy, ends


if __name__ == "__main__":
    main()
