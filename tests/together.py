"""Trainings for one process or several: `torchrun … tests/together.py OUT GROUP` runs a group.

Each process writes what it ended with to OUT; test_distributed.py compares.
"""

import itertools
import os
import signal
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader

from balancemix import cli, processes
from balancemix.data.features import FeatureRows
from balancemix.data.images import ImageRows
from balancemix.data.source import View
from balancemix.judge import blocks, factor, judge
from balancemix.judge.ridge import Ridge
from balancemix.judge.stages import Stages
from balancemix.labels.noise import parse
from balancemix.methods import BalanceMix, Method
from balancemix.methods.balancemix import Relabel
from balancemix.plan.plan import Plan
from balancemix.training.engine import Engine
from balancemix.training.fit import fit
from balancemix.training.opinion import informed
from balancemix.training.predict import predict, predict_logits
from tests.methods.settings import SETTINGS

CLASSES, WIDTH = 6, 10
Case = tuple[int, dict[str, Any], dict[str, Any]]  # rows, settings of training, of the method
EXACT: dict[str, Case] = {
    "uneven": (203, {}, {}),
    "fewer rows than two batches": (40, {}, {}),
    "fewer rows than a batch": (20, {}, {}),
    "batches of one row": (13, {"epochs": 2, "batch_size": 1}, {}),
    "online": (101, {}, {"relabel": "online"}),
    "as in the paper": (101, {}, {"relabel": "paper"}),
    "a ratio for each pair": (101, {"clip": 1.0, "ema": 0.9}, {"lambda_per": "pair"}),
    "accumulated": (101, {"accumulate": 3}, {"relabel": "epoch"}),
    "shared BatchNorm": (101, {"sync_batchnorm": True}, {}),
    "images, shared BatchNorm": (
        45,
        {"batch_size": 16, "sync_batchnorm": True},
        {"relabel": "paper"},
    ),
    "plain": (101, {}, {"name": "bce"}),
    "unknown labels": (101, {}, {}),
    "unknown labels, as in the paper": (101, {}, {"relabel": "paper"}),
    "unknown labels, plain": (101, {}, {"name": "bce"}),
    "unknown labels, single positive": (101, {"epochs": 3}, {"name": "an-ls", "alpha": 0.0}),
}
OWN: dict[str, Relabel] = {
    "own loop, epoch": "epoch",
    "own loop, paper": "paper",
    "own loop, BatchNorm, online": "online",
}
LIKE: dict[str, Case] = {
    "own BatchNorm": (101, {"ema": 0.9}, {}),
    **{name: (101, {"epochs": 3}, {"name": name}) for name in SETTINGS},
    "unknown labels, second opinion": (
        101,
        {"epochs": 3},
        {"name": "second-opinion", "alpha": 0.0, "form": "trained"},
    ),
    **{  # each process mixes the rows that it has
        f"unknown labels, {name}, mixed": (101, {"epochs": 3}, {"name": name})
        for name in ("mixup", "role", "second-opinion")
    },
    "bf16": (101, {"precision": "bf16"}, {}),
}
JUDGED = "judged by landmarks"
# A launch each, so that what ends one process ends no other group; bf16 ends it on some machines.
GROUPS = {
    "features": [case for case in EXACT if "images" not in case],
    "images": [case for case in EXACT if "images" in case],
    "own loops": [*OWN, JUDGED],
    "methods": [case for case in LIKE if case != "bf16"],
    "bf16": ["bf16"],
}


def make_rows(count: int, seed: int = 0) -> FeatureRows:
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(CLASSES, WIDTH, generator=torch.Generator().manual_seed(9))
    share = torch.linspace(0.5, 0.2, CLASSES)
    truth = (torch.rand(count, CLASSES, generator=generator) < share).to(torch.uint8)
    features = truth.float() @ directions
    features += 0.3 * torch.randn(count, WIDTH, generator=generator)
    rows = FeatureRows(features, truth, [f"c{k}" for k in range(CLASSES)])
    return rows.with_given(parse("mislabel:0.3").apply(truth, seed).given, truth)


def make_photos(folder: Path, count: int, seed: int = 0) -> ImageRows:
    """Squares whose channels tell the first classes, in front of noise."""
    like = make_rows(count, seed)
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 100, (count, 16, 16, 3), dtype=np.uint8)
    pixels[:, 4:12, 4:12] += (120 * like.truth[:, None, None, :3]).numpy().astype(np.uint8)
    paths = [folder / f"{seed}-{row}.png" for row in range(count)]
    for path, picture in zip(paths, pixels, strict=True):
        Image.fromarray(picture).save(path)
    photos = ImageRows(paths, like.given, like.classes, view=View(size=16))
    return photos.with_given(like.given, like.truth)


def make_model(case: str) -> nn.Module:
    if "images" in case:
        seen = [nn.Conv2d(3, 16, 3, 2), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
        return nn.Sequential(*seen, nn.Flatten(), nn.Linear(16, CLASSES))
    norm = nn.BatchNorm1d(16) if "BatchNorm" in case else nn.Identity()
    layers = [nn.Linear(WIDTH, 16), norm, nn.ReLU(), nn.Linear(16, CLASSES)]
    return nn.Sequential(*layers)


def train(case: str) -> dict:
    count, settings, options = {**LIKE, **EXACT}[case]
    if options.get("name", "balancemix") == "balancemix":
        options = {"warmup": 1, "epsilon": 0.6, **options}
    settings = {"epochs": 4, "batch_size": 32, "lr": 0.1, "device": "cpu", **settings}
    plan = Plan.from_tree({"method": options, "train": settings, "seed": 3})
    seen, loss = [], Method.loss

    def remember(method, model, x, index):
        seen.append(index.tolist())
        return loss(method, model, x, index)

    with TemporaryDirectory() as name, patch.object(Method, "loss", remember):
        make = partial(make_photos, Path(name)) if "images" in case else make_rows
        rows, valid = make(count), make(37, seed=1)
        if "unknown" in case:
            noisy = parse("unknown:0.4+keep:0.2").apply(rows.given, 0)
            rows = rows.with_given(noisy.given, rows.truth).with_verified(noisy.verified)
        plan = informed(plan, rows)
        model, method, metrics = fit(lambda: make_model(case), rows, valid, plan)
        return {
            "weights": dict(model.state_dict()),
            "method": method.state_dict(),
            "seen": seen,
            "scores": metrics["last"],
            "logits": predict_logits(model, valid.plain, 16),
            "one": predict_logits(model, make(1).plain, 16),
        }


def own_loop(case: str) -> dict:
    """Train in the README's loop; of several processes, each wraps the model and that is all."""
    rows = make_rows(101).with_views(2, 0)
    method = BalanceMix(warmup=1, epsilon=0.6, relabel=OWN[case]).start(rows.given, 3, seed=5)
    torch.manual_seed(0)
    model = bare = make_model(case)
    if processes.world_size() > 1:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader: DataLoader = DataLoader(rows, batch_sampler=method.batches(32), collate_fn=rows.collate)
    for _ in range(3):
        for x, index in loader:
            method.loss(model, x, index).backward()
            optimizer.step()
            optimizer.zero_grad()
        method.end_epoch(predict(model, rows))
    return {"weights": dict(bare.state_dict()), "method": method.state_dict()}


def judged() -> dict:
    """Judge rows by landmarks, in blocks that several processes share; again from the stages."""
    rows = make_rows(203)
    with (
        patch.object(blocks, "BLOCK", 16),
        patch.object(factor, "LONG", 0),
        TemporaryDirectory() as folder,
    ):
        stages = Stages(Path(folder))
        first = judge(rows.given, Ridge.of(rows.features, landmarks=40, stages=stages))
        ridge = Ridge.of(rows.features, landmarks=40, stages=stages)
        with patch.object(Ridge, "leave_one_out", side_effect=AssertionError("is stored")):
            opinion = judge(rows.given, ridge)
        assert torch.equal(first.score, opinion.score)
        machine = ridge.solve(rows.given.float(), 1.0)
    return {"posterior": opinion.posterior, "score": opinion.score, **machine.state_dict()}


def go_elsewhere() -> None:
    """Let the second process work on another machine's disk, which has the data but no run."""
    if os.environ["RANK"] == "1":
        os.chdir("elsewhere")


def die_in_the_second_epoch() -> None:
    """Let the second process be killed in the midst of an epoch, the first time it is started."""
    if os.environ["RANK"] == "1" and not Path("was killed").exists():
        step, steps = Engine.step, itertools.count(1)

        def last_step(self, loss, **how):
            if next(steps) == 10:
                Path("was killed").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return step(self, loss, **how)

        patch.object(Engine, "step", last_step).start()


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1] in ("--killed", "--elsewhere"):
        {"--killed": die_in_the_second_epoch, "--elsewhere": go_elsewhere}[sys.argv[1]]()
        sys.exit(cli.main(sys.argv[2:]))
    processes.PIECE = 2048  # bytes: as if tables were large
    processes.start(cpu=True)
    out, group = Path(sys.argv[1]), sys.argv[2]
    for name in GROUPS[group]:
        end = judged() if name == JUDGED else own_loop(name) if name in OWN else train(name)
        torch.save(end, out / f"{name}-{processes.rank()}.pt")
