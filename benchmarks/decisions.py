"""What the store of decisions takes: findings saved, tables read, answers trusted.

    python benchmarks/decisions.py [--findings 100000] [--decisions 1000000]

Everything is made in a temporary directory. Prints the seconds of each step, the milliseconds of
one saved answer, and the peak memory.
"""

import argparse
import csv
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from balancemix.data.decisions import decide
from balancemix.data.decisions.answers import Decision
from balancemix.data.decisions.filled import read_filled
from balancemix.data.decisions.snapshots import Suspicion
from balancemix.data.decisions.store import Store
from balancemix.data.source import Source

CLASSES = [f"class{k:02}" for k in range(80)]
EACH = 10  # decisions of an image
SINGLE = 200  # answers saved one by one


@contextmanager
def timed(what: str, times: int = 1) -> Iterator[None]:
    """Print how long a step takes."""
    start = time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    shown = f"{seconds:.1f} s" if times == 1 else f"{1000 * seconds / times:.1f} ms"
    print(f"{what:<48} {shown:>10}")


def write_table(file: Path, decisions: int) -> None:
    """Write a filled-in table."""
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["image", "class", "verdict"])
        for i in range(decisions):
            verdict = ("present", "absent")[i % 3 == 0]
            writer.writerow([f"{i // EACH:07}.jpg", CLASSES[i % EACH], verdict])


def main() -> None:
    """Time every step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--findings", type=int, default=100_000)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    arguments = parser.parse_args()
    names = [f"{i:07}.jpg" for i in range(arguments.decisions // EACH)]
    given = torch.zeros(len(names), len(CLASSES), dtype=torch.int8)
    with tempfile.TemporaryDirectory() as place:
        source = Source(Path(place) / "photos", CLASSES, names, given)
        folder = Path(place) / "photos.balancemix"
        findings = [
            Suspicion(names[i % len(names)], CLASSES[i // len(names)], "wrong", 1, 0, 0.5)
            for i in range(arguments.findings)
        ]
        with Store.open(folder, create=True) as store:
            with timed(f"save {arguments.findings:,} findings"):
                store.add_snapshot(
                    source="photos", fingerprint="", judge="", seed=0, expected=(None, None),
                    findings=findings,
                )  # fmt: skip
            with timed(f"save an answer, of {SINGLE}", SINGLE):
                for i in range(SINGLE):
                    store.record([Decision(names[i], CLASSES[-1], "present", "Ana")])
            for count in (arguments.decisions // 10, arguments.decisions):
                table = Path(place) / f"{count}.csv"
                write_table(table, count)
                with timed(f"read a table of {count:,} answers"):
                    filled = read_filled(table, source.path, set(names), CLASSES)
                    store.take(filled, table, CLASSES, "Ana")
                with timed(f"trust {count:,} answers on reading the data"):
                    decided = decide(source)
                assert decided.decided is not None
                assert int(decided.decided.sum()) == count + SINGLE
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{'peak memory':<48} {peak:>7.1f} GB")


if __name__ == "__main__":
    main()
