"""Jobs that are timed against each other in turns, since the machine changes its speed.

Short calls simply alternate. Long jobs have turns of a second; each is a process with a clock of
its own, which stands still while the others have their turn. It counts no seconds but units: what
one of the jobs, the yardstick, needs for a piece of its work, as it was measured a few turns
before. A slow minute of the machine is no slower on such a clock.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from typing import TypeVar

from balancemix.progress import Progress

SLICE = 1.0
Result = TypeVar("Result")


class Enough(Exception):  # noqa: N818 - as StopIteration, it is not an error
    """Ends a job from within: all have been measured."""


class Turns:
    """What the jobs share: whose turn it is, the rounds that each has made, and should make."""

    def __init__(self, count: int, rounds: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.permits = [context.Semaphore(int(place == 0)) for place in range(count)]
        self.made, self.rounds, self.over = context.Array("l", count), rounds, context.Event()
        self.unit = context.Value("d", 1.0)  # in seconds


class Turn:
    """One job's turn, and the clock that runs only in it."""

    def __init__(self, turns: Turns, place: int) -> None:
        self.turns, self.place, self.spent = turns, place, 0.0
        self.pieces: list[float] = []
        self._wait()

    def clock(self) -> float:
        """Units that this job has been at work."""
        return self.spent + (time.perf_counter() - self.since) / self.unit

    def measure(self, units: float) -> None:
        """Say, being the yardstick, what a piece of work took: the next turns' unit is the mean."""
        self.pieces.append(units * self.unit)

    def offer(self) -> None:
        """Let the next one work, if this job has had its turn; return when it is back."""
        if time.perf_counter() - self.since >= SLICE:
            self.spent = self.clock()
            if self.pieces:
                self.turns.unit.value = sum(self.pieces) / len(self.pieces)
                self.pieces = []
            self.turns.permits[(self.place + 1) % len(self.turns.permits)].release()
            self._wait()

    def count(self) -> None:
        """Note that a round was made; after the last one's last, it is enough for all."""
        made = self.turns.made
        made[self.place] += 1
        if min(made[:]) >= self.turns.rounds:
            raise Enough

    def _wait(self) -> None:
        self.turns.permits[self.place].acquire()
        self.since, self.unit = time.perf_counter(), float(self.turns.unit.value)
        if self.turns.over.is_set():
            raise Enough


def fastest(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Make short calls in turn, in this process; the seconds of each one's fastest."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - begin)
    return {name: min(found) for name, found in seconds.items()}


def in_turns(
    job: Callable[[str, Turn], Result], names: Sequence[str], rounds: int, show: Progress
) -> dict[str, Result]:
    """Call `job(name, turn)` for each name until all have counted so many rounds; what they return.

    A job should return when `Enough` is raised from within it.
    """
    turns = Turns(len(names), rounds)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(names), context, _share, (turns,)) as pool:
        futures = [pool.submit(_work, job, name, place) for place, name in enumerate(names)]
        shown = 0
        while wait(futures, timeout=1).not_done:
            made = sum(min(one, rounds) for one in turns.made[:])
            show.advance(made - shown)
            shown = made
    for future in futures:
        if not isinstance(failure := future.exception(), Enough | None):
            raise failure
    return {name: future.result() for name, future in zip(names, futures, strict=True)}


_turns: Turns  # of this process, if it is a job's


def _share(turns: Turns) -> None:
    global _turns
    _turns = turns


def _work(job: Callable[[str, Turn], Result], name: str, place: int) -> Result:
    try:
        return job(name, Turn(_turns, place))
    finally:  # whether it is enough or a failure
        _turns.over.set()
        for permit in _turns.permits:
            permit.release()
