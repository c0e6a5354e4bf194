"""Time and memory of an epoch's end, streamed, against N and K: `python scale.py`.

Every case runs in a process of its own, so its peak memory is its own. Confidences come from a
pool of random ones; the given labels of all rows are kept, one byte each.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import torch

from balancemix.progress import progress
from balancemix.sampling import odds_of_rows
from balancemix.statistics import Statistics

GRID = [(50_000, 100), (100_000, 100), (200_000, 100), (100_000, 50), (100_000, 200)]
LARGE = (2_000_000, 200)
SECONDS, BYTES = 60, 2e9
BATCH, POOL = 4_096, 16_384


def measure(rows: int, classes: int, repeats: int) -> dict[str, float]:
    """Stream rows × classes through the statistics; then odds and mixtures. The best of some."""
    generator = torch.Generator().manual_seed(0)
    frequency = (0.5 / torch.arange(1, classes + 1)).clamp(min=0.002)
    labels = (torch.rand(POOL, classes, generator=generator) < frequency).to(torch.uint8)
    logits = torch.randn(POOL, classes, generator=generator).mul_(2)
    confidence = logits.add_(labels * 6.0).sub_(3).sigmoid_()
    given = torch.empty(rows, classes, dtype=torch.uint8)

    def stream() -> Statistics:
        statistics = Statistics.empty(classes)
        for first in range(0, rows, BATCH):
            size = min(BATCH, rows - first)
            place = int(torch.randint(POOL - size + 1, (1,), generator=generator))
            given[first : first + size] = labels[place : place + size]
            statistics.update(confidence[place : place + size], given[first : first + size])
        return statistics

    best: dict[str, float] = {}
    for _ in range(repeats):
        start, busy = time.perf_counter(), time.process_time()
        statistics = stream()
        odds_of_rows(statistics, given)
        busy = time.process_time() - busy
        drawn = time.perf_counter()
        statistics.mixtures()
        facts = {
            "seconds": time.perf_counter() - start,
            "mixtures_seconds": time.perf_counter() - drawn,
            "cpu_ns_per_label": 1e9 * busy / (rows * classes),
        }
        best = {name: min(value, best.get(name, value)) for name, value in facts.items()}
    return {name: round(value, 3) for name, value in best.items()} | {"bytes": peak()}


def peak() -> int:
    """Read the most memory this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def apart(*case: int) -> dict[str, float]:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, *map(str, case)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def show(case: str, met: bool, requirement: str, **facts: float) -> None:
    """Print one line."""
    line = {"benchmark": "scale", "case": case, **facts, "requirement": requirement, "met": met}
    print(json.dumps(line), flush=True)


def main() -> None:
    """Print one line a case, or be the process of one."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(*map(int, sys.argv[1:]))))
        return
    with progress("scale", len(GRID) + 1) as shown:
        found = {}
        for rows, classes in GRID:
            found[rows, classes] = apart(rows, classes, 3)
            shown.advance()
        least = min(facts["cpu_ns_per_label"] for facts in found.values())
        for (rows, classes), facts in found.items():
            ratio = round(facts["cpu_ns_per_label"] / least, 2)
            requirement = "processor time per label at most 2 times the least of the grid"
            show(f"{rows}x{classes}", ratio <= 2, requirement, ratio=ratio, **facts)
        facts = apart(*LARGE, 1)
        shown.advance()
    met = facts["seconds"] <= SECONDS and facts["bytes"] <= BYTES
    show("{}x{}".format(*LARGE), met, f"{SECONDS} s and {BYTES:.0e} bytes at most", **facts)


if __name__ == "__main__":
    main()
