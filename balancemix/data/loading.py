"""Loader: the batches of a data set in a given order, made in this process or in others."""

import multiprocessing
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from balancemix import interrupts
from balancemix.errors import InputError

# A process forked from one with threads (of gloo, CUDA, OpenMP) inherits their locks but not the
# threads that would release them, and may wait forever. The fork server has no threads.
START_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
PRELOADED = ["balancemix.data.images", "torchvision.transforms.v2"]  # imported once for all
TIMEOUT = 600  # seconds; even the slowest disk delivers a batch sooner
LOOK = 5  # seconds between checks that a silent process is still alive


class Loader:
    """Iterate over the batches of `data` that `batches` lists, in `workers` loading processes.

    With `workers`, the data set must be picklable, and a script must do its work under
    `if __name__ == "__main__":`, since loading processes import it.
    """

    def __init__(
        self,
        data: Dataset[Any],
        batches: Iterable[Sequence[int]],
        workers: int = 0,
        *,
        pinned: bool | None = None,
    ) -> None:
        # Features are looked up faster than another process could send them.
        workers = workers if getattr(data, "decodes", True) else 0
        started: dict[str, Any] = {}
        if workers:
            context = multiprocessing.get_context(START_METHOD)
            if START_METHOD == "forkserver":
                context.set_forkserver_preload(PRELOADED)
            started = {
                "multiprocessing_context": context,
                "timeout": LOOK,
                "worker_init_fn": ignore_interrupts,
            }
            data = data.for_workers() if hasattr(data, "for_workers") else data
        self.batches = DataLoader(
            data,
            batch_sampler=batches,  # type: ignore[arg-type]  # any iterable works
            num_workers=workers,
            collate_fn=getattr(data, "collate", None),
            # A pinned batch is copied to the GPU while the previous one is still computed there.
            pin_memory=torch.cuda.is_available() if pinned is None else pinned,
            **started,
        )

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Any]:
        try:
            with warnings.catch_warnings():
                # It says the same as the error below, and advises to fork.
                warnings.filterwarnings("ignore", "Got pickle error", UserWarning)
                batches = iter(self.batches)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputError(
                f"the data set cannot be sent to loading processes ({error}); pass --workers 0"
            ) from error
        try:
            while True:
                batch = _next(batches)
                interrupts.check()
                yield batch
        except StopIteration:
            return
        except InputError as error:
            # A loading process adds its traceback; only the last line is for the user.
            *_, last = str(error).strip().splitlines()
            raise InputError(last.partition("InputError: ")[2] or last) from error


def workers_for(
    data: Dataset[Any], workers: int | None, *, on_cpu: bool, processes: int = 1
) -> int:
    """Choose how many loading processes to start if `workers` is None.

    Images are worth some, features none. `processes` train on this machine and share its cores;
    `on_cpu` they also compute on them.
    """
    if workers is not None:
        return workers
    if not getattr(data, "decodes", False):
        return 0
    cores = (os.cpu_count() or 2) // processes
    if on_cpu and getattr(data, "kept", False):
        # Augmenting a kept image takes 0.5 ms of a core, training the smallest backbone on it 30 to
        # 40 ms (128 pixels); a loading process also has to start and to copy its batches. So one
        # should pay off from about eight cores: an estimate from these times, not measured.
        return min(cores // 8, 8)
    return min(max(cores - 1, 1), 8)


def ignore_interrupts(worker: int) -> None:
    """Leave Ctrl-C, which reaches every process of a terminal, to the one that trains."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _next(batches: Iterator[Any]) -> Any:
    """Wait for a batch while its process is alive, at most `TIMEOUT` seconds."""
    silent = 0.0
    while True:
        try:
            return next(batches)
        except RuntimeError as error:
            interrupts.check()  # it may have ended the process
            reason = str(error).partition("\n")[0]
            if "exited unexpectedly" in reason:
                raise InputError(
                    f"{reason}: out of memory, or for the reason printed above; "
                    "pass fewer --workers, or 0"
                ) from error
            if "timed out after" not in reason:
                raise
            silent += LOOK
            if silent >= TIMEOUT:
                raise InputError(
                    f"a loading process has not answered for {TIMEOUT} seconds: is the disk "
                    "still connected? Resume, or pass --workers 0"
                ) from error
