"""Launch two processes that train on images, again and again, and count those that hang.

    python tests/launches.py                   # loading processes as the package starts them
    python tests/launches.py --loading fork    # as it did: forked from a process with threads

A launch that is not done after --patience seconds hangs; a usual one takes ten or twenty. With
more --trainings each launch starts more loading processes: some twenty a training.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CASE = "images, shared BatchNorm"


def main() -> int:
    """Launch, and print a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument(
        "--loading", help="spawn, forkserver or fork (default: as the package does)"
    )
    parser.add_argument("--trainings", type=int, default=1)
    parser.add_argument("--patience", type=float, default=120)
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train(options.loading, options.trainings)
        return 0
    hung, failed, seconds = 0, 0, []
    for _ in range(options.times):
        begin = time.monotonic()
        code = launch(options.loading, options.trainings, options.patience)
        seconds.append(time.monotonic() - begin)
        hung, failed = hung + (code is None), failed + (code not in (None, 0))
    start = options.loading or "as the package starts them"
    middle = sorted(seconds)[len(seconds) // 2]
    print(f"{start}: {options.times} launches, {hung} hung, {failed} failed; median {middle:.1f} s")
    return hung + failed > 0


def launch(start: str | None, trainings: int, patience: float) -> int | None:
    """Train in two processes; their exit code, or None if they had to be killed."""
    call = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    call += [__file__, "--train", "--trainings", str(trainings)]
    call += ["--loading", start] if start else []
    process = subprocess.Popen(
        call,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return process.wait(patience)
    except subprocess.TimeoutExpired:
        process.terminate()  # torchrun then ends the processes that it started
        process.wait()
        return None


def train(start: str | None, trainings: int) -> None:
    """Train on images, which each process loads with another one."""
    import torch

    from balancemix import distributed
    from balancemix.data import loading
    from tests import together

    if start is not None:
        loading.START_METHOD = start
    torch.set_num_threads(1)
    distributed.start(cpu=True)
    for _ in range(trainings):
        together.train(CASE)


if __name__ == "__main__":
    sys.exit(main())
