"""What this machine can do: its devices, and bf16 on its CPU.

A virtual machine may announce AMX, an instruction set for matrices, that its system does not grant.
oneDNN, which multiplies for torch, believes the announcement, and the first bf16 product ends the
process with SIGILL, or fails with "could not create a primitive". Without AMX most of these
machines still have bf16: the environment variable ONEDNN_MAX_CPU_ISA keeps oneDNN to less.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import time
import warnings
from functools import cache

import torch

from balancemix.errors import InputError, suggest

LIMIT, WITHOUT_AMX = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"
# The products of a training step: linear layers, convolutions and their gradients, attention.
# Gradients without autograd, which refuses to work in some forked processes.
PROBE = """
import contextlib, torch
from torch.nn import functional, grad

with contextlib.suppress(ImportError):
    import resource  # Unix only: no core file of a process that is expected to die

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
torch.set_num_threads(1)
x = torch.ones(64, 64, dtype=torch.bfloat16)
x @ x
image, kernel = x.view(1, 16, 16, 16), x[:36].view(16, 16, 3, 3)
y = functional.conv2d(image, kernel, padding=1)
grad.conv2d_input(image.shape, kernel, y, padding=1)
grad.conv2d_weight(image, kernel.shape, y, padding=1)
sequence = x.view(1, 2, 32, 64)
functional.scaled_dot_product_attention(sequence, sequence, sequence)
"""
# Seconds until a probe counts as dead. A new process imports torch, maybe over a busy network.
PATIENCE, PATIENCE_HERE = 300.0, 60.0


def check_device(device: str) -> None:
    """Refuse a device that is not here; "auto" is the best there is."""
    here = ["auto", "cpu"]
    here += ["cuda"] if torch.cuda.is_available() else []
    here += ["mps"] if torch.backends.mps.is_available() else []
    if device not in here:
        raise InputError(f"--device {device} is not to be had here; {suggest(device, here)}")


def check_precision(precision: str, device: str) -> None:
    """Refuse bf16 where a CPU is to train that does not have it."""
    on_cpu = device == "cpu" or (device == "auto" and not torch.accelerator.is_available())
    if precision == "bf16" and on_cpu:
        prepare_bf16()


def prepare_bf16() -> None:
    """Make sure that bf16 products work on this CPU, or say in one line what to do.

    Call it before the first of them, and best before any use of torch: it may set
    ONEDNN_MAX_CPU_ISA, which oneDNN reads once. Only the first call takes time, about as long as
    it takes to import torch.
    """
    if trouble := _trouble():
        raise InputError(trouble)


@cache
def _trouble() -> str:
    """Set what has to be set; return what is in the way of bf16, or nothing."""
    given = {name: os.environ[name] for name in (LIMIT, "DNNL_MAX_CPU_ISA") if name in os.environ}
    death = _death()
    if not death:
        return ""
    if given or _death(**{LIMIT: WITHOUT_AMX}):  # what somebody has set may be a tighter limit
        under = "".join(f" under {name}={value}" for name, value in given.items())
        return (
            f"--precision bf16 is not available on this machine (a bf16 product {death}{under}); "
            "leave --precision out, or train on a GPU"
        )
    os.environ[LIMIT] = WITHOUT_AMX
    if _lives_here():
        return ""
    del os.environ[LIMIT]
    return (
        f"bf16 works on this machine only with {LIMIT}={WITHOUT_AMX} set before torch is used: "
        "set it and start again, or leave --precision out"
    )


def _death(**variables: str) -> str:
    """Say how the probe dies in a new process with these variables set; nothing if it lives."""
    # The same torch as here, whatever lies in the working directory.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    call = [sys.executable, "-P", "-c", PROBE]
    try:
        done = subprocess.run(
            call,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return f"took more than {PATIENCE:g} s"
    if done.returncode == 0:
        return ""
    if done.returncode < 0:
        return f"ended with {signal.Signals(-done.returncode).name}"
    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return f"ended with {said[-1]}"


def _lives_here() -> bool:
    """Try the probe in a copy of this process, in which oneDNN may have read its variable before.

    Only a copy knows what oneDNN has read, and only a copy can die of it instead of us. To fork a
    process that has threads is risky, as what they hold stays locked in the copy; but this one
    works on a single thread, is not waited for without end, and is needed on few machines.
    """
    if not hasattr(os, "fork"):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            faulthandler.disable()  # it would report the death as ours
            exec(PROBE, {})
            code = 0
        finally:
            os._exit(code)  # nothing of ours is to be flushed or cleaned up twice
    end = time.monotonic() + PATIENCE_HERE
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
