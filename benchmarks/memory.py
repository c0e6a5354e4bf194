"""Bytes that training keeps for each label, from the types it keeps them in: `python memory.py`.

`table` is the label table; `epoch_end` is what odds and mixtures need besides: the statistics of
all classes and a number a row. The last case is measured, in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys

import torch
from scale import peak
from torch import Tensor

from balancemix.labels import LabelTable
from balancemix.methods import BalanceMix
from balancemix.statistics import Statistics

CASES = {
    "COCO 118287x80": (118_287, 80),
    "OpenImages 9000000x600": (9_000_000, 600),
    "100000000x1000": (100_000_000, 1_000),
}
MEASURED = (500_000, 100)
BATCH, SLACK = 4_096, 100e6  # bytes: for batches, and what the allocator keeps


def size(tensors: list[Tensor]) -> int:
    """Add up the bytes of tensors."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def table_bytes() -> int:
    """Count the bytes of one label in the table."""
    stored = LabelTable.trusting(torch.zeros(1, 1)).state_dict().values()
    return size([tensor for tensor in stored if tensor is not None])


def epoch_end_bytes(rows: int, classes: int) -> int:
    """Count the bytes of statistics and odds."""
    odds = rows * torch.tensor(0, dtype=torch.float64).element_size()
    return odds + classes * size(Statistics.empty(1).tensors())


def measure(rows: int, classes: int) -> dict[str, float]:
    """Start BalanceMix and end its warm-up by batches; compare memory with what is computed."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.rand(BATCH, classes, generator=generator) < 0.03
    confidence = torch.rand(BATCH, classes, generator=generator)
    Statistics.empty(classes).update(confidence, labels).mixtures()  # load what is loaded late
    given = torch.zeros(rows, classes, dtype=torch.uint8)  # the data's own
    for batch in torch.split(given, BATCH):
        batch.copy_(labels[: len(batch)])
    before = peak()
    method = BalanceMix(warmup=0).start(given, 2)
    index = torch.split(torch.arange(rows), BATCH)
    method.end_epoch((batch, confidence[: len(batch)]) for batch in index)
    computed = table_bytes() * rows * classes + epoch_end_bytes(rows, classes)
    return {"bytes": peak() - before, "computed_bytes": computed}


def show(case: str, met: bool, requirement: str, **facts: float) -> None:
    """Print one line."""
    line = {"benchmark": "memory", "case": case, **facts, "requirement": requirement, "met": met}
    print(json.dumps(line), flush=True)


def main() -> None:
    """Print one line a case, or be the process of the measured one."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(*MEASURED)))
        return
    for case, (rows, classes) in CASES.items():
        labels, more = rows * classes, epoch_end_bytes(rows, classes)
        show(
            case,
            table_bytes() <= 2 and more <= labels,
            "at most 2 bytes a label are kept, and 1 more at an epoch's end",
            bytes=table_bytes() * labels + more,
            table_per_label=table_bytes(),
            epoch_end_per_label=round(more / labels, 4),
        )
    command = [sys.executable, __file__, "measure"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    facts: dict[str, float] = json.loads(done.stdout)
    met = facts["bytes"] <= facts["computed_bytes"] + SLACK
    requirement = f"at most {SLACK:.0e} bytes more than computed"
    show("measured {}x{}".format(*MEASURED), met, requirement, **facts)


if __name__ == "__main__":
    main()
