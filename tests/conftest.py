"""What several tests need: one thread, tiny data with known truth, the shared images if any."""

import json
import signal
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from balancemix.bench.plan import BenchPlan, jobs
from balancemix.errors import InputError
from balancemix.training import devices

# In the background of a shell Ctrl-C is ignored; tests that press it need Python's handler.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Small matrices gain nothing from threads, and on busy machines wait for them.
torch.set_num_threads(1)

SUFFIX = {"All": "", "Many": "_many", "Medium": "_medium", "Few": "_few"}
ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
DYING = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"


def pytest_addoption(parser):
    parser.addoption(
        "--without-bf16", action="store_true", help="test as where a CPU has no bf16 products"
    )


def pytest_configure(config):
    if config.getoption("--without-bf16"):
        devices.PROBE = DYING


def pytest_runtest_setup(item):
    if item.get_closest_marker("bf16") and (trouble := bf16_trouble()):
        pytest.skip(trouble)


@cache
def bf16_trouble() -> str:
    """Say what is in the way of bf16 on this machine; nothing, if it works."""
    try:
        devices.prepare_bf16()
    except InputError as error:
        return str(error)
    return ""


def pytest_collection_modifyitems(items):
    if SHARED.is_dir():
        return
    missing = pytest.mark.skip(reason=f"needs the images of {SHARED}, which are not here")
    for item in items:
        if "shared" in item.keywords:
            item.add_marker(missing)


def tiny_arrays(rows: int = 120, classes: int = 5, width: int = 12, seed: int = 0):
    """Make linear features of rare-to-common classes; the last quarter of the rows tests."""
    generator = np.random.default_rng(seed)
    share = np.linspace(0.5, 0.15, classes)
    labels = (generator.random((rows, classes)) < share).astype(np.uint8)
    labels[:classes] = np.eye(classes, dtype=np.uint8)
    labels[-classes:] = np.eye(classes, dtype=np.uint8)
    directions = generator.normal(size=(classes, width))
    features = labels @ directions + 0.3 * generator.normal(size=(rows, width))
    return {
        "features": features.astype(np.float32),
        "labels": labels,
        "classes": np.array([f"c{k}" for k in range(classes)]),
        "split": np.array(["train"] * (rows - rows // 4) + ["test"] * (rows // 4)),
    }


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Write a small features file."""
    path = tmp_path / "tiny.npz"
    np.savez(path, **tiny_arrays())
    return path


def pretend(runs: Path, plan: BenchPlan, score, selection=None) -> None:
    """Write runs as if they had ended, with the mAP that `score` gives each job and group."""
    for job in jobs(plan):
        groups = {f"mAP{suffix}": score(job, group) for group, suffix in SUFFIX.items()}
        last = {name: value for name, value in groups.items() if value is not None}
        if not last:
            continue
        best = {name: value + 1 for name, value in last.items()}
        metrics = {"last": last, "best": {"epoch": 1, **best}, "seconds_per_epoch": 0.5}
        lines = [
            {
                "epoch": e + 1,
                **(last if e else best),
                "selection": selection(job, e) if selection else {},
            }
            for e in range(8)
        ]
        folder = runs / job.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "metrics.json").write_text(json.dumps(metrics))
        (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def photos(tmp_path) -> Path:
    """Write a folder of images whose colours are their classes."""
    folder = tmp_path / "photos"
    (folder / "images").mkdir(parents=True)
    generator = np.random.default_rng(0)
    lines = ["image,labels,split"]
    for i in range(40):
        colours = generator.random(3) < 0.5
        pixels = np.where(colours, 200, 30) + generator.integers(0, 30, (24, 24, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(folder / "images" / f"{i}.png")
        labels = [n for n, there in zip(("red", "green", "blue"), colours, strict=True) if there]
        lines.append(f"{i}.png,{'|'.join(labels)},{'train' if i < 28 else 'test'}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder
