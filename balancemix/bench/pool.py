"""Train many runs at once: worker processes that take one run after another, each on one thread.

A worker keeps torch loaded between runs, which saves seconds for each run. An error in a run, or
the death of its worker, affects no other run. Workers report their progress through a pipe and stop
when it is closed; a run that was started can be resumed from its last epoch.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import time
import traceback
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TextIO

from balancemix.bench.progress import BenchProgress
from balancemix.errors import InputError
from balancemix.progress import hidden

EVERY = 0.2  # seconds between two messages about the progress of a run


@dataclass(frozen=True)
class Task:
    """One run to train: its name, the tree of its plan, and its directory."""

    name: str
    plan: dict[str, Any]
    out: Path


class Worker:
    """A process that trains the runs that it is assigned, and its current run."""

    def __init__(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.pipe, remote = spawn.Pipe()
        self.task: Task | None = None
        self.process = spawn.Process(target=work, args=(remote,), name="balancemix bench")
        with one_thread():
            self.process.start()
        remote.close()

    def assign(self, task: Task) -> None:
        """Send it a run."""
        self.task = task
        try:
            self.pipe.send(task)
        except OSError:  # it died between two runs; `receive` will notice
            return

    def receive(self, progress: BenchProgress) -> bool:
        """Pass on its next message; return False if it has died."""
        try:
            # What it sent before it died counts.
            kind, *message = self.pipe.recv() if self.pipe.poll() else ("nothing",)
        except (EOFError, OSError):
            kind, message = "died", []
        alive = kind != "died" and (kind != "nothing" or self.process.is_alive())
        if self.task is None:
            return alive
        if not alive:
            self.process.join()
            line = f"its process ended with exit code {self.process.exitcode}"
            progress.failed(self.task.name, line, line)
            self.task = None
        elif kind != "nothing":
            getattr(progress, kind)(self.task.name, *message)
            if kind in ("ended", "failed"):
                self.task = None
        return alive

    def stop(self) -> None:
        """End it, even in the middle of a run: files are written whole or not at all."""
        self.pipe.close()
        if self.task is not None:
            self.process.terminate()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def train_all(tasks: Sequence[Task], at_once: int, progress: BenchProgress) -> None:
    """Train every run, `at_once` at a time; one that fails does not stop the others."""
    waiting, workers = deque(tasks), list[Worker]()
    try:
        while waiting or any(worker.task for worker in workers):
            for worker in workers:
                if worker.task is None and waiting:
                    worker.assign(waiting.popleft())
            while waiting and len(workers) < at_once:
                workers.append(Worker())
                workers[-1].assign(waiting.popleft())
            busy = [worker for worker in workers if worker.task is not None]
            wait([each for w in busy for each in (w.pipe, w.process.sentinel)])
            for worker in busy:
                if not worker.receive(progress):
                    worker.stop()
                    workers.remove(worker)
    finally:
        for worker in workers:
            worker.stop()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit processes started in this block to one thread each: torch reads this on import."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


class Reporter:
    """Sends the progress of a run through a pipe from time to time."""

    def __init__(self, pipe: Connection[Any, Any], total: int) -> None:
        self.pipe, self.total, self.done, self.reported = pipe, max(total, 1), 0, 0.0

    def advance(self, steps: int = 1) -> None:
        """Count steps, and report if the last report was EVERY seconds ago."""
        self.done += steps
        now = time.monotonic()
        if now - self.reported > EVERY:
            self.reported = now
            self.pipe.send(("at", self.done / self.total))

    def say(self, **facts: float) -> None:
        """Show nothing: many runs would print at the same time."""

    def line(self, text: str) -> None:
        """Show nothing."""


def work(pipe: Connection[Any, Any]) -> None:
    """Train what comes through the pipe, until it is closed."""
    # Ctrl-C reaches every process of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while True:
            train_one(pipe, pipe.recv())
    except (EOFError, OSError):  # the first process has ended
        return


def advise(error: InputError, run: Path) -> str:
    """Word an error about the files of a run with a remedy that a bench has; it has no --force."""
    message = str(error)
    if not message.startswith(str(run)):
        return message
    problem = re.sub(r"; [^;]*(--force|resume)[^;]*$", "", message)
    return f"{problem}; delete {run} and repeat the bench to train it again"


def train_one(pipe: Connection[Any, Any], task: Task) -> None:
    """Train a run as `balancemix train --resume` does, and report how it ended."""
    from balancemix.plan.plan import Plan
    from balancemix.training.experiment import train_plan

    @contextmanager
    def bar(what: str, total: int) -> Iterator[Reporter]:
        yield Reporter(pipe, total)

    def warn(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if category is UserWarning:
            pipe.send(("warned", str(message)))

    with warnings.catch_warnings(), hidden():
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = warn
        try:
            plan = Plan.from_tree(task.plan)
            resumed, start = task.out.exists(), time.monotonic()
            _, _, metrics = train_plan(plan, task.out, bar, resume=True)
        except BrokenPipeError:
            raise
        except Exception as error:
            line = traceback.format_exception_only(error)[-1].strip()
            message = advise(error, task.out) if isinstance(error, InputError) else line
            pipe.send(("failed", message, traceback.format_exc()))
        else:
            if not resumed:
                pipe.send(("took", time.monotonic() - start))
            pipe.send(("ended", metrics))
