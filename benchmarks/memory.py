"""Compute and measure BalanceMix's bytes for each label: `python benchmarks/memory.py`.

`kept` between epochs are the label table, four bytes a label (one of them belongs to the data), and
the odds; `peak` adds the N×K confidence of an epoch's end, four more. (The copy for a checkpoint
takes three, after the confidence is freed.) The last case is measured: a training with checkpoints,
in a process of its own, until its last epoch starts. (label_table.npz, written once at the end,
holds floats: 16 bytes a label more.)
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from scale import peak
from torch import Tensor, nn

from balancemix.data import FeatureRows
from balancemix.labels.table import LabelTable
from balancemix.plan.plan import Plan
from balancemix.progress import Silent
from balancemix.run import Run
from balancemix.training.fit import fit

CASES = {
    "COCO 118287x80": (118_287, 80),
    "OpenImages 9000000x600": (9_000_000, 600),
    "100000000x1000": (100_000_000, 1_000),
}
MEASURED = (500_000, 200)
BATCH, EPOCHS = 4_096, 3
SLACK = 50e6  # bytes, for batches and what the allocator keeps: half a byte a label


def size(tensors: list[Tensor]) -> int:
    """Add up the bytes of tensors."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def table_bytes() -> int:
    """Count the bytes of one label in the table."""
    stored = LabelTable.from_given(torch.zeros(1, 1)).state_dict().values()
    return size([tensor for tensor in stored if tensor is not None])


def kept_bytes(rows: int, classes: int) -> int:
    """Count the bytes of the table and the odds."""
    odds = rows * torch.tensor(0, dtype=torch.float64).element_size()
    return table_bytes() * rows * classes + odds


def peak_bytes(rows: int, classes: int) -> int:
    """Add the confidence of an epoch's end, the new odds, and their cumulative sum."""
    confidence = rows * classes * torch.tensor(0.0).element_size()
    return kept_bytes(rows, classes) + confidence + 2 * rows * 8


class UntilTheLastEpoch(Silent):
    """Stop a training when its last epoch has started."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def advance(self, count: int = 1) -> None:
        """Count a step."""
        self.left -= count
        if self.left <= 0:
            raise StopIteration


def measure(rows: int, classes: int) -> dict[str, float]:
    """Train a small model on many rows; return measured and computed bytes."""
    generator = torch.Generator().manual_seed(0)
    labels = (torch.rand(BATCH, classes, generator=generator) < 0.03).to(torch.uint8)
    given = labels.repeat(rows // BATCH + 1, 1)[:rows].contiguous()
    names = [f"class {k}" for k in range(classes)]
    data = FeatureRows(torch.randn(rows, 4, generator=generator), given, names)
    few = data.subset(torch.arange(BATCH))
    method = {"name": "balancemix", "warmup": 1, "trust_positives": False}
    settings = {"epochs": EPOCHS, "batch_size": BATCH, "device": "cpu", "lr": 1e-4}
    plan = Plan.from_tree({"method": method, "train": settings})

    def train(data: FeatureRows, steps: int) -> int:
        with TemporaryDirectory() as name:
            run = Run.create(Path(name) / "run", plan)
            before = peak()
            try:
                fit(lambda: nn.Linear(4, classes), data, few, plan, run, UntilTheLastEpoch(steps))
            except StopIteration:
                return peak() - before
        raise RuntimeError("the training ended before it was measured")

    train(few, EPOCHS)  # imports what is imported late
    steps = (EPOCHS - 1) * -(-rows // BATCH) + 1
    return {"bytes": train(data, steps), "computed_bytes": peak_bytes(rows, classes)}


def show(case: str, met: bool, requirement: str, **facts: float) -> None:
    """Print one line."""
    line = {"benchmark": "memory", "case": case, **facts, "requirement": requirement, "met": met}
    print(json.dumps(line), flush=True)


def main() -> None:
    """Print one line for each case, or measure the last one."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(*MEASURED)))
        return
    for case, (rows, classes) in CASES.items():
        labels, kept = rows * classes, kept_bytes(rows, classes)
        show(
            case,
            table_bytes() <= 4,
            "at most 4 bytes a label are kept",
            table_per_label=table_bytes(),
            kept_per_label=round(kept / labels, 4),
            kept_bytes=kept,
            peak_bytes=peak_bytes(rows, classes),
            labels_bytes=labels,
        )
    command = [sys.executable, __file__, "measure"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    facts: dict[str, float] = json.loads(done.stdout)
    met = facts["bytes"] <= facts["computed_bytes"] + SLACK
    requirement = f"at most {SLACK:.2g} bytes more than computed"
    show("measured {}x{}".format(*MEASURED), met, requirement, **facts)


if __name__ == "__main__":
    main()
