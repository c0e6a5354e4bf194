"""Measure an epoch's label work, time and memory, by N and K: `python benchmarks/scale.py`.

Label work is everything but loading and the model: batches are drawn, their labels looked up, and
at the end `BalanceMix.end_epoch` renews odds, mixtures and the table from an N×K confidence, which
repeats a pool of random rows. Each case runs in a process of its own, to have its peak memory. An
epoch's end takes eight bytes a label: four of confidence, four of given, status and P(clean). The
one of given belongs to the data and is not counted. That makes 3.2 GB for 2,000,000 × 200.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterable

import torch
from torch import Tensor

from balancemix.methods import BalanceMix
from balancemix.progress import progress

GRID = [(50_000, 100), (100_000, 100), (200_000, 100), (100_000, 50), (100_000, 200)]
LARGE = (2_000_000, 200)
SECONDS, BYTES = 60, 3.4e9  # eight a label, the data's own included, and what is temporary
PER_LABEL, CONSTANT = 7, 200e6  # bytes: three are kept, four the confidence; the rest temporary
STEP = 2
POOL, SIZE = 1 << 20, 64
Facts = dict[str, float]


def measure(rows: int, classes: int, epochs: int) -> Facts:
    """Run some epochs of rows × classes; return the least time and the most memory."""
    generator = torch.Generator().manual_seed(0)
    pool = POOL // classes
    frequency = (0.5 / torch.arange(1, classes + 1)).clamp(min=0.002)
    labels = (torch.rand(pool, classes, generator=generator) < frequency).to(torch.uint8)
    logits = torch.randn(pool, classes, generator=generator).mul_(2)
    confidence = logits.add_(labels * 6.0).sub_(3).sigmoid_()
    given = torch.empty(rows, classes, dtype=torch.uint8)
    for batch in torch.split(given, pool):
        batch.copy_(labels[: len(batch)])

    def predicted() -> Tensor:
        every = torch.empty(rows, classes)
        for batch in torch.split(every, pool):
            batch.copy_(confidence[: len(batch)])
        return every

    before = peak()
    method = BalanceMix(warmup=0).start(given, epochs + 1)
    best: Facts = {}
    for _ in range(epochs):
        start = time.process_time()
        for batch in method.batches(SIZE):
            method.table.rows(torch.tensor(batch))
        looked_up = time.process_time()
        every = predicted()
        predicted_at, wall = time.process_time(), time.perf_counter()
        method.end_epoch(every)
        del every
        facts = {
            "epoch_end_seconds": time.perf_counter() - wall,
            "batches_us_per_row": 1e6 * (looked_up - start) / rows,
            "epoch_end_ns_per_label": 1e9 * (time.process_time() - predicted_at) / (rows * classes),
        }
        best = {name: min(value, best.get(name, value)) for name, value in facts.items()}
    rounded = {name: round(value, 3) for name, value in best.items()}
    return rounded | {"bytes": peak() - before, "bytes_of_process": peak()}


def peak() -> int:
    """Read the most memory this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def in_process(*case: int) -> Facts:
    """Measure a case in a process of its own."""
    command = [sys.executable, __file__, *map(str, case)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: Facts = json.loads(done.stdout)
    return result


def of_classes(classes: int, cases: dict[tuple[int, int], Facts]) -> list[Facts]:
    """Take the cases with that many classes."""
    return [facts for (_, columns), facts in cases.items() if columns == classes]


def against_least(name: str, facts: Facts, cases: Iterable[Facts]) -> float:
    """Divide a case's time by the least of some cases."""
    return facts[name] / min(case[name] for case in cases)


def main() -> None:
    """Print one line for each case, or measure the case given by the arguments."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(*map(int, sys.argv[1:]))))
        return
    cases = {}
    with progress("scale", len(GRID) + 1) as bar:
        for rows, classes in [*GRID, LARGE]:
            cases[rows, classes] = in_process(rows, classes, 2 if (rows, classes) == LARGE else 4)
            bar.advance()
    for (rows, classes), facts in cases.items():
        ratio = max(
            against_least("epoch_end_ns_per_label", facts, cases.values()),
            # Looking up a row takes longer the more classes it has.
            against_least("batches_us_per_row", facts, of_classes(classes, cases)),
        )
        most = PER_LABEL * rows * classes + CONSTANT
        requirement = (
            f"processor time a label, and a row of as many classes, at most {STEP} times the "
            f"least of all cases; {PER_LABEL} bytes a label and {CONSTANT:.2g} at most"
        )
        met = ratio <= STEP and facts["bytes"] <= most
        if (rows, classes) == LARGE:
            requirement += f"; {SECONDS} s and {BYTES:.2g} bytes with the data's labels"
            with_given = facts["bytes"] + rows * classes
            met &= facts["epoch_end_seconds"] <= SECONDS and with_given <= BYTES
        line = {"benchmark": "scale", "case": f"{rows}x{classes}", "ratio": round(ratio, 2)}
        print(json.dumps({**line, **facts, "requirement": requirement, "met": met}), flush=True)


if __name__ == "__main__":
    main()
