"""Launch two processes that train on images, again and again, and count those that hang.

    python tests/launches.py                   # loading processes as the package starts them
    python tests/launches.py --loading fork    # as it did: forked from a process with threads

A launch that is not done after --patience seconds hangs; a usual one takes ten or twenty. With
more --trainings each launch starts more loading processes: some twenty a training.

How often a forked process hangs depends on what the threads of its parent do in the moment of the
fork, and so on the machine: from one launch in ten to none in many. With --held a thread holds a
lock that loading takes, for half of the time, as threads of libraries do for less. A forked process
inherits the lock, but not the thread that would release it.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch
from PIL.Image import Image

from balancemix import processes
from balancemix.data import loading
from balancemix.data.images import ImageRows
from tests import together
from tests.together import make_photos

ROOT = Path(__file__).resolve().parents[1]
CASE = "images, shared BatchNorm"
LOCK = threading.Lock()


class LockedRows(ImageRows):
    """Images that one thread at a time decodes."""

    def image(self, i: int) -> Image:
        """Return row i."""
        with LOCK:
            return super().image(i)


def hold() -> None:
    """Hold the lock for half of the time."""
    while True:
        with LOCK:
            time.sleep(0.02)
        time.sleep(0.02)


def make_locked(folder: Path, count: int, seed: int = 0) -> ImageRows:
    """Make images of which each takes the lock."""
    rows = make_photos(folder, count, seed)
    rows.__class__ = LockedRows
    return rows


def main() -> int:
    """Launch, and print a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument(
        "--loading", help="spawn, forkserver or fork (default: as the package does)"
    )
    parser.add_argument("--trainings", type=int, default=1)
    parser.add_argument("--held", action="store_true", help="with a lock held by a thread")
    parser.add_argument("--patience", type=float, default=120)
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train(options)
        return 0
    hung, failed, seconds = 0, 0, []
    for _ in range(options.times):
        begin = time.monotonic()
        code = launch(options)
        seconds.append(time.monotonic() - begin)
        hung, failed = hung + (code is None), failed + (code not in (None, 0))
    start = (options.loading or "as the package starts them") + ", held" * options.held
    middle = sorted(seconds)[len(seconds) // 2]
    print(f"{start}: {options.times} launches, {hung} hung, {failed} failed; median {middle:.1f} s")
    return hung + failed > 0


def launch(options: argparse.Namespace) -> int | None:
    """Train in two processes; their exit code, or None if they had to be killed."""
    call = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    call += [__file__, "--train", "--trainings", str(options.trainings)]
    call += ["--loading", options.loading] if options.loading else []
    call += ["--held"] if options.held else []
    process = subprocess.Popen(
        call,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return process.wait(options.patience)
    except subprocess.TimeoutExpired:
        process.terminate()  # torchrun then ends the processes that it started
        process.wait()
        return None


def train(options: argparse.Namespace) -> None:
    """Train on images, which each process loads with another one."""
    if options.loading is not None:
        loading.START_METHOD = options.loading
    if options.held:
        together.make_photos = make_locked
        threading.Thread(target=hold, daemon=True).start()
    torch.set_num_threads(1)
    processes.start(cpu=True)
    for _ in range(options.trainings):
        together.train(CASE)


if __name__ == "__main__":
    sys.exit(main())
