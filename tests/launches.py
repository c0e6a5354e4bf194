"""Launch two processes that train on images, again and again, and count those that hang.

    python tests/launches.py                   # loading processes as the package starts them
    python tests/launches.py --loading fork    # as it did: forked from a process with threads

A launch that is not done after --patience seconds hangs; a usual one takes a few. With more
--epochs each launch starts more loading processes: two an epoch in each process.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
ROWS = 45


def main() -> int:
    """Launch, and print a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument(
        "--loading", help="spawn, forkserver or fork (default: as the package does)"
    )
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--patience", type=float, default=120)
    parser.add_argument("--train", metavar="OUT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train(Path(options.train), options.loading, options.epochs)
        return 0
    hung, failed, seconds = 0, 0, []
    for _ in range(options.times):
        begin = time.monotonic()
        code = launch(options.loading, options.epochs, options.patience)
        seconds.append(time.monotonic() - begin)
        hung, failed = hung + (code is None), failed + (code not in (None, 0))
    start = options.loading or "as the package starts them"
    middle = sorted(seconds)[len(seconds) // 2]
    print(f"{start}: {options.times} launches, {hung} hung, {failed} failed; median {middle:.1f} s")
    return hung + failed > 0


def launch(start: str | None, epochs: int, patience: float) -> int | None:
    """Train in two processes; their exit code, or None if they had to be killed."""
    with TemporaryDirectory() as out:
        call = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        call += ["--nproc-per-node", "2", __file__, "--train", out, "--epochs", str(epochs)]
        call += ["--loading", start] if start else []
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            call, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            for line in subprocess.run(
                ["pgrep", "-f", out], capture_output=True, text=True
            ).stdout.split():
                os.kill(int(line), signal.SIGKILL)
            process.wait()
            return None


def train(out: Path, start: str | None, epochs: int) -> None:
    """Train a little on images, which each process loads with one of its own."""
    import torch

    from balancemix import distributed
    from balancemix.data import loading
    from balancemix.plan import Plan
    from balancemix.train import fit
    from tests import together

    if start is not None:
        loading.START_METHOD = start
    torch.set_num_threads(1)
    distributed.start(cpu=True)
    folder = out / str(distributed.rank())
    folder.mkdir()
    rows, valid = together.make_photos(folder, ROWS), together.make_photos(folder, 20, seed=1)
    settings = {"epochs": epochs, "batch_size": 16, "device": "cpu"}
    tree = {"method": {"name": "mixup"}, "train": settings, "data": {"workers": 1}}
    fit(lambda: together.make_model("images"), rows, valid, Plan.from_tree(tree))


if __name__ == "__main__":
    sys.exit(main())
