"""What `balancemix stats` takes for a large table: a million rows and 500 classes.

    python benchmarks/tables.py [--rows 1000000] [--classes 500]

Both layouts are written to a temporary directory: labels joined in a cell, and a column a class,
which is 1 GB. Prints the size of each file, the seconds and the peak memory.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

AT_ONCE = 4096


def write_columns(file: Path, rows: int, classes: int) -> None:
    """Write a table with a column a class; 1 % of the labels are present."""
    rng = np.random.default_rng(0)
    with file.open("wb") as out:
        out.write(("image," + ",".join(names(classes)) + "\n").encode())
        for start in range(0, rows, AT_ONCE):
            count = min(AT_ONCE, rows - start)
            text = np.full((count, 2 * classes), ord(","), np.uint8)
            text[:, ::2] = (rng.random((count, classes)) < 0.01) + np.uint8(ord("0"))
            text[:, -1] = ord("\n")
            for i, line in enumerate(text, start):
                out.write(b"photos/%08d.jpg," % i + line.tobytes())


def write_joined(file: Path, rows: int, classes: int) -> None:
    """Write a table with a cell of joined labels; up to five a row."""
    rng, named = np.random.default_rng(0), names(classes)
    with file.open("w") as out:
        out.write("image,labels\n")
        for start in range(0, rows, AT_ONCE):
            drawn = rng.integers(0, classes, (min(AT_ONCE, rows - start), 5)).tolist()
            for i, row in enumerate(drawn, start):
                out.write(f"photos/{i:08}.jpg,{'|'.join(named[k] for k in row)}\n")


def names(classes: int) -> list[str]:
    """Name the classes."""
    return [f"class{k:03}" for k in range(classes)]


def main() -> None:
    """Write both files, count their labels and print what it takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=500)
    arguments = parser.parse_args()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        for write in (write_joined, write_columns):  # the smaller first: a peak is that of all
            file = Path(folder) / f"{write.__name__.removeprefix('write_')}.csv"
            write(file, arguments.rows, arguments.classes)
            start = time.perf_counter()
            call = [sys.executable, "-m", "balancemix", "stats", str(file), "--json"]
            subprocess.run(call, check=True, stdout=subprocess.DEVNULL)
            seconds = time.perf_counter() - start
            before, used = used, resource.getrusage(resource.RUSAGE_CHILDREN)
            busy = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
            size, most = file.stat().st_size / 1e9, used.ru_maxrss / 1e6
            print(
                f"{file.stem}: {size:.2f} GB, {seconds:.0f} s ({busy:.0f} s of processor time), "
                f"at most {most:.2f} GB"
            )
            file.unlink()


if __name__ == "__main__":
    main()
