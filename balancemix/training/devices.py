"""What this machine can do: its devices, bf16 on its CPU, and reuse of freed memory.

A virtual machine may announce AMX, an instruction set for matrices, that its system does not allow.
oneDNN, torch's library for products, relies on the announcement: the first bf16 product ends the
process with SIGILL, or fails with "could not create a primitive". Without AMX most of these
machines still support bf16; the environment variable ONEDNN_MAX_CPU_ISA turns AMX off.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from functools import cache

import torch

from balancemix.errors import InputError, suggest

LIMIT, WITHOUT_AMX = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"
# The products of a training step: linear layers, convolutions and their gradients, attention.
# Gradients are computed without autograd, which fails in some forked processes.
PROBE = """
import contextlib, torch
from torch.nn import functional, grad

with contextlib.suppress(ImportError):
    import resource  # Unix only: no core file of a process that may crash

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
# Seconds until a probe counts as failed. A new process imports torch, maybe over a slow network.
PROBE_TIMEOUT, FORK_TIMEOUT = 300.0, 60.0
# Parameters of mallopt, from glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def check_device(device: str) -> None:
    """Refuse a device that this machine does not have; "auto" is the best one available."""
    present = ["auto", "cpu"]
    present += ["cuda"] if torch.cuda.is_available() else []
    present += ["mps"] if torch.backends.mps.is_available() else []
    if device not in present:
        known = suggest(device, present)
        raise InputError(f"--device {device} is not available on this machine; {known}")


def best_device(device: str = "auto") -> str:
    """Resolve "auto": the accelerator of this machine, if it has one."""
    if device != "auto":
        return device
    present = torch.accelerator.is_available()
    return str(torch.accelerator.current_accelerator() if present else "cpu")


def check_precision(precision: str, device: str) -> None:
    """Refuse bf16 on a CPU that does not support it."""
    on_cpu = device == "cpu" or (device == "auto" and not torch.accelerator.is_available())
    if precision == "bf16" and on_cpu:
        prepare_bf16()


def keep_freed_memory() -> bool:
    """Let this process reuse large blocks that it has freed; return whether the C library does.

    By default glibc returns freed blocks over 32 MB to the system, and the next step's tensors are
    mapped and zeroed again page by page. With freed memory kept, a step of tf_efficientnet_lite0
    (64 images of 128 pixels) took 1.9 s of a core instead of 2.3 to 3.4, for a tenth more memory.
    No number changes. Without glibc, or with an old one, nothing happens.
    """
    if sys.platform != "linux":
        return False
    most = 2**31 - 1
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        answers = [library.mallopt(name, most) for name in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD)]
        return all(answers)
    return False


def prepare_bf16() -> None:
    """Make sure that bf16 products work on this CPU, or say in one line what to do.

    Call it before the first bf16 product, and best before any use of torch: it may set
    ONEDNN_MAX_CPU_ISA, which oneDNN reads once. Only the first call takes time, about as long as
    importing torch.
    """
    if problem := _bf16_problem():
        raise InputError(problem)


@cache
def _bf16_problem() -> str:
    """Set the variable if that helps; return why bf16 does not work, or ""."""
    limits = {name: os.environ[name] for name in (LIMIT, "DNNL_MAX_CPU_ISA") if name in os.environ}
    failure = _probe_failure()
    if not failure:
        return ""
    if limits or _probe_failure(**{LIMIT: WITHOUT_AMX}):  # a limit set by the user is kept
        under = "".join(f" under {name}={value}" for name, value in limits.items())
        return (
            f"--precision bf16 is not available on this machine (a bf16 product {failure}{under}); "
            "leave --precision out, or train on a GPU"
        )
    os.environ[LIMIT] = WITHOUT_AMX
    if _works_in_fork():
        return ""
    del os.environ[LIMIT]
    return (
        f"bf16 works on this machine only with {LIMIT}={WITHOUT_AMX} set before torch is used: "
        "set it and start again, or leave --precision out"
    )


def _probe_failure(**variables: str) -> str:
    """Run the probe in a new process with these variables; return how it failed, or ""."""
    # Import the same torch as this process, whatever is in the working directory.
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
            timeout=PROBE_TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return f"took more than {PROBE_TIMEOUT:g} s"
    if done.returncode == 0:
        return ""
    if done.returncode < 0:
        return f"ended with {signal.Signals(-done.returncode).name}"
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return f"ended with {lines[-1]}"


def _works_in_fork() -> bool:
    """Run the probe in a copy of this process, in which oneDNN may already have read its variable.

    Only a copy knows what oneDNN has read, and can crash without harm. Forking a process that has
    threads is risky, as their locks stay locked in the copy; but the copy uses a single thread, has
    a time limit, and is needed on few machines.
    """
    if not hasattr(os, "fork"):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            faulthandler.disable()  # it would report the crash as ours
            exec(PROBE, {})
            code = 0
        finally:
            os._exit(code)  # without flushing or cleaning up what belongs to the parent
    end = time.monotonic() + FORK_TIMEOUT
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
