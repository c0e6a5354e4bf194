"""Two processes against one, on the CPU with a thread each: how much faster, and how much the same.

`python benchmarks/ddp.py [--rows N] [--epochs E] [--batch-size B] [--hidden H]` trains BalanceMix
with an MLP on random features, once alone and once under torchrun, and prints a line of JSON:
seconds per epoch of each, the second's share of the first, the largest difference of a weight, and
in how many labels the two differ about target or status.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from balancemix import processes
from balancemix.data import FeatureRows
from balancemix.labels.table import LabelTable
from balancemix.models.classifier import build_model
from balancemix.plan.plan import Plan
from balancemix.training.fit import fit

CLASSES, WIDTH = 20, 256


def make_rows(count: int, seed: int) -> FeatureRows:
    """Make features in which every class has a direction, and labels of which a tenth is wrong."""
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(CLASSES, WIDTH, generator=torch.Generator().manual_seed(0))
    truth = (torch.rand(count, CLASSES, generator=generator) < 0.15).to(torch.uint8)
    wrong = torch.rand(truth.shape, generator=generator) < 0.1
    noise = torch.randn(count, WIDTH, generator=generator)
    given = torch.where(wrong, 1 - truth, truth)
    return FeatureRows(truth.float() @ directions + noise, given, list(map(str, range(CLASSES))))


def train(options: argparse.Namespace, out: Path) -> None:
    """Train, and store what the comparison needs."""
    torch.set_num_threads(1)
    settings = {"epochs": options.epochs, "batch_size": options.batch_size, "device": "cpu"}
    plan = Plan.from_tree({"train": settings, "method": {"warmup": 1, "epsilon": 0.8}})
    rows, valid = make_rows(options.rows, 1), make_rows(200, 2)

    def make_model() -> torch.nn.Module:
        # Without dropout, whose masks one process would draw for the whole batch.
        return build_model(classes=CLASSES, features=WIDTH, hidden=options.hidden, dropout=0.0)

    model, method, metrics = fit(make_model, rows, valid, plan)
    if processes.rank() == 0:
        table = method.table.state_dict()
        kept = {"weights": dict(model.state_dict()), "table": table}
        torch.save({**kept, "seconds": metrics["seconds_per_epoch"]}, out)


def compare(options: argparse.Namespace) -> dict[str, float | str]:
    """Train both ways and measure."""
    results = []
    given = sys.argv[1:]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    with tempfile.TemporaryDirectory() as folder:
        for launcher in ([sys.executable], [*torchrun, "--nproc-per-node", "2"]):
            out = Path(folder) / "end.pt"
            call = [*launcher, __file__, *given, "--worker", str(out)]
            subprocess.run(call, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
            results.append(torch.load(out))
    one, two = results
    weights = one["weights"].items()
    tables = [LabelTable(**end["table"]) for end in (one, two)]
    differing = tables[0].status != tables[1].status
    return {
        "benchmark": "ddp",
        "case": "epoch of two processes against one, features",
        "rows": options.rows,
        "batch_size": options.batch_size,
        "hidden": options.hidden,
        "seconds_per_epoch_1": round(one["seconds"], 4),
        "seconds_per_epoch_2": round(two["seconds"], 4),
        "ratio": round(two["seconds"] / one["seconds"], 3),
        "largest_difference_of_a_weight": max(
            float((two["weights"][name].double() - weight.double()).abs().max())
            for name, weight in weights
        ),
        "labels_decided_differently": int(differing.sum()),
        "labels": differing.numel(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8001)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        train(chosen, chosen.worker)
    else:
        print(json.dumps(compare(chosen)))
