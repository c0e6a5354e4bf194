"""How tests launch real processes, joined by gloo on the CPU."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

TOGETHER = str(ROOT / "tests" / "together.py")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **more}


def launch(*command: str, cwd: Path) -> subprocess.CompletedProcess:
    done = subprocess.run(
        command, env=environment(), cwd=cwd, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done


def two(*what: str) -> list[str]:
    return [*TORCHRUN, "--nproc-per-node", "2", "--master-port", free_port(), *what]
