"""How fast images are loaded: `python benchmarks/loader.py`, a few minutes.

Against torchvision's ImageFolder with the same augmentation, batch size and one loading process,
from the second epoch on; as a share of the steps of the network that is trained on them; and the
start of a loading process, by each way to start one.
Photographs are made up in a temporary directory.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import torch
from photos import report, write_photos
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

from balancemix.data import loading
from balancemix.data.images import ImageRows
from balancemix.data.loading import Loader
from balancemix.methods import BCE
from balancemix.models.classifier import build_model
from balancemix.options import IMAGENET_MEAN, IMAGENET_STD, View
from balancemix.plan.plan import Plan
from balancemix.training.fit import loading_processes

PHOTOS, SIZE, BATCH, ROUNDS = 600, 128, 64, 5
ROWS = 82_081


def main() -> None:
    """Measure, and print a line for each case."""
    with TemporaryDirectory() as name:
        folder, kept = Path(name) / "photos", Path(name) / "kept"
        paths = write_photos(folder, PHOTOS)
        labels = (torch.arange(PHOTOS * 80).view(PHOTOS, 80) % 7 == 0).to(torch.uint8)
        rows = ImageRows(paths, labels, [str(k) for k in range(80)], view=View(size=SIZE))
        for kind in ("memory", "disk"):
            ratio = speed(rows.cached(kind, kept), folder)
            report("loader", f"images/s against ImageFolder, {kind}", ratio, ">= 2")
        start(paths)
        torch.set_num_threads(2)
        share = wait(rows.cached("memory"))
        report("loader", "wait for data as a share of a Lite0 step", share, "< 0.1")


def speed(rows: ImageRows, folder: Path) -> float:
    """Compare images per second, epochs of the two in turn."""
    torch.set_num_threads(1)
    # The reference resizes before it varies, as we do: the other order takes half as long again.
    transform = v2.Compose(
        [
            v2.Resize((SIZE, SIZE)),
            v2.RandAugment(2, 9),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(IMAGENET_MEAN, IMAGENET_STD),
        ]
    )
    reference = ImageFolder(str(folder), transform)
    theirs, ours = [], []
    for epoch in range(ROUNDS + 1):
        theirs.append(seconds(DataLoader(reference, BATCH, shuffle=True, num_workers=1)))
        batches = torch.randperm(len(rows)).split(BATCH)
        order = [batch.tolist() for batch in batches]
        ours.append(seconds(Loader(rows.with_views(1, epoch), order, 1)))
    return median(theirs[1:]) / median(ours[1:])


def start(paths: list[Path]) -> None:
    """Time a loading process from its start to its first image, among as many rows as COCO has."""
    many = (paths * (ROWS // len(paths) + 1))[:ROWS]
    rows = ImageRows(many, torch.zeros(ROWS, 80, dtype=torch.uint8), [str(k) for k in range(80)])
    before, times = loading.START_METHOD, {}
    for method in ("fork", "forkserver", "spawn"):
        loading.START_METHOD = method
        times[method] = [
            seconds(Loader(rows.with_views(1, 0), [[0]], 1)) for _ in range(ROUNDS + 1)
        ]
    loading.START_METHOD = before
    forked = median(times["fork"][1:])
    for method, taken in times.items():
        first, others = taken[0], median(taken[1:])
        case = f"start of a loading process against a forked one, {method}"
        report("loader", case, others / forked, seconds=others, first=first)


def seconds(batches: Iterable[object]) -> float:
    """Time a whole pass, the start of its process included."""
    begin = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - begin


def wait(rows: ImageRows) -> float:
    """Train for two epochs; of the second, measure how much was waiting for batches."""
    method = BCE().start(rows.given, 2)
    model = build_model(classes=len(rows.classes), pretrained=False, image_size=SIZE)
    model = model.to(memory_format=torch.channels_last).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
    workers = loading_processes(Plan(), rows)
    for epoch in range(2):
        begin, waited = time.perf_counter(), 0.0
        asked = begin
        for x, index in Loader(rows.with_views(1, epoch), method.batches(BATCH), workers):
            waited += time.perf_counter() - asked
            method.loss(model, x, index).backward()
            optimiser.step()
            optimiser.zero_grad()
            asked = time.perf_counter()
        share = waited / (time.perf_counter() - begin)
    return share


if __name__ == "__main__":
    main()
