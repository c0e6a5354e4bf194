"""Try many cases in several processes, in any order, and go on after an interruption."""

import functools
import json
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.torture import names
from tests.torture.draw import Draw
from tests.torture.outcome import FAILURES, TRACEBACK

KEPT = 5  # failures of one cause that are kept of a chunk


@dataclass(frozen=True)
class Chunk:
    """Cases `start` to `stop` − 1 of a part."""

    part: str
    seed: int
    start: int
    stop: int


@dataclass
class Result:
    """What became of the cases of a chunk; failures by cause, with the numbers of the first."""

    part: str
    seed: int
    start: int
    stop: int
    seconds: float = 0.0
    outcomes: dict[str, int] = field(default_factory=dict)
    failures: dict[str, dict[str, list[int]]] = field(default_factory=dict)


def all_parts() -> dict[str, Any]:
    """Name all that can be tried."""
    from tests.torture.table import PARTS

    return PARTS


@functools.cache
def prepared(part: str) -> Path:
    """Make the folder of a part, once in a process."""
    folder = Path(tempfile.mkdtemp(dir=names.scratch(), prefix="case-"))
    all_parts()[part].prepare(folder)
    return folder


def try_chunk(chunk: Chunk) -> Result:
    """Try the cases of a chunk."""
    warnings.simplefilter("ignore")
    part, folder = all_parts()[chunk.part], prepared(chunk.part)
    result = Result(**asdict(chunk))
    outcomes: Counter[str] = Counter()
    begin = time.perf_counter()
    for number in range(chunk.start, chunk.stop):
        try:
            outcome = part.case(Draw(chunk.part, chunk.seed, number), number, folder)
        except Exception as error:
            raise RuntimeError(f"the torture itself fails in {chunk.part} {number}") from error
        outcomes[outcome.kind] += 1
        if outcome.kind in FAILURES:
            numbers = result.failures.setdefault(outcome.kind, {}).setdefault(outcome.detail, [])
            if len(numbers) < KEPT:
                numbers.append(number)
    result.outcomes = dict(outcomes)
    result.seconds = time.perf_counter() - begin
    return result


class Notebook:
    """Results that survive an interruption: a line of JSON each."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.results: list[Result] = []
        if path is not None and path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            self.results = [Result(**json.loads(line)) for line in lines if line.endswith("}")]

    def add(self, result: Result) -> None:
        """Keep a result."""
        self.results.append(result)
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as out:
                out.write(json.dumps(asdict(result)) + "\n")

    def lacks(self, chunk: Chunk) -> bool:
        """Whether a chunk is still to be tried."""
        done = {(r.part, r.seed, r.start, r.stop) for r in self.results}
        return (chunk.part, chunk.seed, chunk.start, chunk.stop) not in done


def chunks(counts: dict[str, int], seed: int) -> list[Chunk]:
    """Cut the cases of all parts into chunks, mixed so that the time left is a good guess."""
    found = []
    for part, count in counts.items():
        size = all_parts()[part].chunk
        found += [Chunk(part, seed, i, min(i + size, count)) for i in range(0, count, size)]
    return Draw("order", seed, 0).shuffled(found)


def run(left: Iterable[Chunk], processes: int) -> Iterator[Result]:
    """Try chunks in several processes; one that dies of a case is counted and replaced."""
    waiting = list(left)
    if processes == 1:
        yield from map(try_chunk, waiting)
        return
    context = multiprocessing.get_context("forkserver")
    while waiting:
        with ProcessPoolExecutor(processes, context) as pool:
            futures = {pool.submit(try_chunk, chunk): chunk for chunk in waiting}
            try:
                for future in as_completed(futures):
                    result = future.result()
                    waiting.remove(futures[future])
                    yield result
            except BrokenProcessPool:
                yield from _one_by_one(waiting[:processes])
                del waiting[:processes]


def _one_by_one(suspects: list[Chunk]) -> Iterator[Result]:
    """Find the case that ends a process."""
    context = multiprocessing.get_context("forkserver")
    for chunk in suspects:
        with ProcessPoolExecutor(1, context) as pool:
            try:
                yield pool.submit(try_chunk, chunk).result()
            except BrokenProcessPool:
                failures = {TRACEBACK: {"the process died": [chunk.start]}}
                yield Result(**asdict(chunk), outcomes={TRACEBACK: 1}, failures=failures)


class Progress:
    """Lines on standard error: how far it is, and how long it will take."""

    def __init__(self, chunks: int) -> None:
        self.chunks, self.done, self.cases, self.failed = chunks, 0, 0, 0
        self.begin = self.last = time.monotonic()

    def advance(self, result: Result) -> None:
        """Count a chunk."""
        self.done += 1
        self.cases += result.stop - result.start
        self.failed += sum(result.outcomes.get(kind, 0) for kind in FAILURES)
        now = time.monotonic()
        if now - self.last > 10 or self.done == self.chunks:
            self.last = now
            rest = (now - self.begin) * (self.chunks - self.done) / self.done
            sys.stderr.write(
                f"{self.done / self.chunks:.0%}: {self.cases:,} cases, {self.failed:,} failures, "
                f"{rest / 60:.1f} minutes left\n"
            )
