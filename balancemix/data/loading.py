"""Loader: the batches of a data set in a given order, made here or by loading processes."""

from __future__ import annotations

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

# A process that is forked from one with threads (gloo's, CUDA's, OpenMP's) inherits their locks
# but not the threads that would release them, and may wait for ever. The fork server has none.
START_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
PRELOADED = ["balancemix.data.images", "torchvision.transforms.v2"]  # once, for all processes
TIMEOUT = 600  # seconds; the slowest disk delivers a batch sooner
LOOK = 5  # seconds between two looks at whether a silent process is still alive


class Loader:
    """Iterate over the batches of `data` that `batches` lists, in `workers` loading processes.

    With `workers` the data set must be one that can be pickled, and a script must do its work under
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
        # Features are looked up faster than another process could hand them over.
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
            batch_sampler=batches,  # type: ignore[arg-type]  # any iterable will do
            num_workers=workers,
            collate_fn=getattr(data, "collate", None),
            # Pinned, a batch is copied to the GPU while the one before is still at work there.
            pin_memory=torch.cuda.is_available() if pinned is None else pinned,
            **started,
        )

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Any]:
        try:
            with warnings.catch_warnings():
                # It says what we say below, and advises to fork.
                warnings.filterwarnings("ignore", "Got pickle error", UserWarning)
                batches = iter(self.batches)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputError(
                f"the data set cannot be handed to loading processes ({error}); pass --workers 0"
            ) from error
        try:
            while True:
                batch = _next(batches)
                interrupts.check()
                yield batch
        except StopIteration:
            return
        except InputError as error:
            # Of what a loading process reports, with its traceback, the sentence is for the user.
            *_, last = str(error).strip().splitlines()
            raise InputError(last.partition("InputError: ")[2] or last) from error


def workers_for(
    data: Dataset[Any], workers: int | None, *, on_cpu: bool, processes: int = 1
) -> int:
    """Choose how many loading processes to start, where `workers` does not say.

    Images are worth some, features none. `processes` train on this machine and share its cores;
    `on_cpu` they also compute on them.
    """
    if workers is not None:
        return workers
    if not getattr(data, "decodes", False):
        return 0
    cores = (os.cpu_count() or 2) // processes
    if on_cpu and getattr(data, "kept", False):
        # To augment a kept image takes 0.5 ms of a core, to train the smallest backbone on it 30 to
        # 40 (128 pixels), and a loading process its start and its batches copied besides. So one
        # should pay from about eight cores on: an estimate from those times, not tried there.
        return min(cores // 8, 8)
    return min(max(cores - 1, 1), 8)


def ignore_interrupts(worker: int) -> None:
    """Leave Ctrl-C, which reaches every process of a terminal, to the one that trains."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _next(batches: Iterator[Any]) -> Any:
    """Wait for a batch as long as its process lives and the wait is not absurd."""
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
                    f"a loading process has not answered for {TIMEOUT} seconds: is the disk still "
                    "there? Resume, or pass --workers 0"
                ) from error
