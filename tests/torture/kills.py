"""Runs that are killed, interrupted, or out of disk, then continued: the same to the last bit."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.torture import children, names
from tests.torture.draw import Draw
from tests.torture.outcome import (
    LOST,
    READ,
    REFUSED,
    TRACEBACK,
    UNTIDY,
    WRONG,
    Outcome,
    difference,
)
from tests.torture.readers import LABEL_READERS, put
from tests.torture.run_files import CHOSEN, TRAIN, call, canonical, tiny_data
from tests.torture.same import arrays_of, bench_content, run_content

EMBED = (
    "--no-pretrained", "--backbone", "test_resnet", "--image-size", "32", "--views", "1",
    "--batch-size", "1", "--device", "cpu", "--workers", "0",
)  # fmt: skip
BENCH = b"""data = ["../x.npz"]
seeds = [0, 1]
[settings.train]
epochs = 2
[settings.model]
hidden = 4
[[methods]]
name = "bce"
"""
CSV = b"image,labels,split\na.png,cat,train\nb.png,dog,train\nc.png,cat|dog,test\nd.png,dog,train\n"


@dataclass(frozen=True)
class Job:
    """A command that can be continued, and what it comes to."""

    name: str
    words: tuple[str, ...]
    again: tuple[str, ...]  # the command that continues it
    content: Callable[[Path], Any]

    @property
    def trains(self) -> bool:
        """Whether it is a training, which is resumed only if it has begun."""
        return self.words[0] == "train"


JOBS = [
    Job(
        "train",
        ("train", "../x.npz", "--out", "run", *TRAIN),
        ("train", "../x.npz", "--out", "run", "--resume", *TRAIN),
        lambda folder: run_content(folder / "run"),
    ),
    Job(
        "train auto",
        ("train", "../x.npz", "--out", "run", *CHOSEN),
        ("train", "../x.npz", "--out", "run", "--resume", *CHOSEN),
        lambda folder: run_content(folder / "run"),
    ),
    Job(
        "embed",
        ("embed", "../photos", "--out", "e.npz", *EMBED),
        ("embed", "../photos", "--out", "e.npz", *EMBED),
        lambda folder: canonical(arrays_of(folder / "e.npz")),
    ),
    Job(
        "bench",
        ("bench", "../bench.toml", "--out", "bench", "--jobs", "1"),
        ("bench", "../bench.toml", "--out", "bench", "--jobs", "1"),
        lambda folder: bench_content(folder / "bench"),
    ),
]
BENCH_SHARE = 0.04  # it starts processes anew, which takes seconds


class Hurt:
    """What kills, signals and full disks have in common: a command, hurt, then continued."""

    chunk = 5

    def __init__(self, name: str, hurt: Callable[["Hurt", Job, Draw, Path], Outcome]) -> None:
        self.name = self.group = name
        self.hurt = hurt

    def prepare(self, folder: Path) -> None:
        """Run each command whole, once, to know what it comes to and how many changes it makes."""
        tiny_data(folder / "x.npz")
        put(folder / "photos", LABEL_READERS[0].fixed | {"labels.csv": CSV})
        put(folder, {"bench.toml": BENCH})
        self.expected: dict[str, Any] = {}
        self.changes: dict[str, int] = {}
        self.root = folder
        for job in JOBS[:-1]:  # children begin with what is imported here
            warm = folder / f"warm-{job.name}"
            warm.mkdir()
            with contextlib.chdir(warm):
                code, _, err = call(*job.words)
                assert code == 0, err

    def know(self, job: Job) -> None:
        """Run a command whole, once in a process."""
        if job.name in self.expected:
            return
        whole = self.root / f"whole-{job.name}"
        ended = children.run(list(job.words), whole)
        assert ended.code == 0, ended.err
        self.expected[job.name] = job.content(whole)
        self.changes[job.name] = ended.changes

    def case(self, draw: Draw, number: int, folder: Path) -> Outcome:
        """Hurt one command and continue it."""
        job = JOBS[-1] if draw.chance(BENCH_SHARE) else draw.pick(JOBS[:-1])
        self.know(job)
        place = Path(tempfile.mkdtemp(dir=folder))
        try:
            return self.hurt(self, job, draw, place)
        finally:
            if not os.environ.get("TORTURE_KEEP"):
                shutil.rmtree(place, ignore_errors=True)

    def continued(self, job: Job, place: Path) -> Outcome:
        """Continue a command and compare what it comes to."""
        begun = (place / "run" / names.file_of("plan")).exists()
        words = job.again if begun or not job.trains else job.words
        ended = children.run(list(words), place)
        if ended.code != 0:
            kind = TRACEBACK if ended.code != 2 else LOST
            return Outcome(kind, f"{job.name}: cannot be continued: {_last(ended.err)}")
        content = job.content(place)
        if content != self.expected[job.name]:
            return Outcome(
                WRONG, f"{job.name}: continued, {difference(content, self.expected[job.name])}"
            )
        return Outcome(READ)


def kill(hurt: Hurt, job: Job, draw: Draw, place: Path) -> Outcome:
    """Kill it, once or twice, at a change of the file system or at any time; then continue."""
    words = job.words
    for _ in range(1 + draw.below(2)):
        if draw.chance(0.8):
            children.run(list(words), place, at=draw.below(hurt.changes[job.name]))
        else:
            children.run(list(words), place, after=draw.below(300) / 1000)
        begun = (place / "run" / names.file_of("plan")).exists()
        words = job.again if begun or not job.trains else job.words
        if job.name == "embed" and (place / "e.npz").exists():
            break
    if job.name == "embed" and (place / "e.npz").exists():
        same = job.content(place) == hurt.expected[job.name]
        return Outcome(READ) if same else Outcome(WRONG, "embed: half a file")
    return hurt.continued(job, place)


def interrupt(hurt: Hurt, job: Job, draw: Draw, place: Path) -> Outcome:
    """Send Ctrl-C or SIGTERM: the exit code says so, one line says what is saved."""
    number = draw.pick([signal.SIGINT, signal.SIGTERM])
    at = draw.below(hurt.changes[job.name])
    ended = children.run(list(job.words), place, at=at, number=number)
    if ended.code != 128 + number:
        return Outcome(
            TRACEBACK,
            f"{job.name}: exit code {ended.code} after signal {number}: {_last(ended.err)}",
        )
    said = [line for line in ended.err.splitlines() if line.startswith("balancemix: ")]
    if len(said) != 1 or "Traceback" in ended.err:
        return Outcome(UNTIDY, f"{job.name}: says {len(said)} lines after signal {number}")
    if job.name == "embed" and (place / "e.npz").exists():
        return Outcome(READ)
    return hurt.continued(job, place)


def fill(hurt: Hurt, job: Job, draw: Draw, place: Path) -> Outcome:
    """Let the disk fill up: one line, no draft; with room again it continues."""
    with small_disk(place, draw) as (disk, limit, enlarge):
        ended = children.run(list(job.words), disk / place.name, file_size=limit)
        inner = disk / place.name
        if ended.code not in (0, 1 if job.name == "bench" else 0, 2):
            return Outcome(TRACEBACK, f"{job.name}: full disk: {_last(ended.err)}")
        if ended.code == 2 and not re.search(r"balancemix: .*(space|large|full)", ended.err):
            return Outcome(UNTIDY, f"{job.name}: full disk: {_last(ended.err)}")
        drafts = list(inner.rglob("*.draft"))
        if drafts:
            return Outcome(UNTIDY, f"{job.name}: full disk leaves {drafts[0].name}")
        if ended.code == 0:
            return Outcome(READ)
        enlarge()
        outcome = hurt.continued(job, inner)
        return Outcome(REFUSED) if outcome.kind == READ else outcome


@contextlib.contextmanager
def small_disk(place: Path, draw: Draw) -> Iterator[tuple[Path, int | None, Callable[[], None]]]:
    """Mount a small tmpfs, or limit the size of files where that is not allowed."""
    size = 4 * (1 + draw.below(40))  # kilobytes
    mounted = _mount(place, f"size={size}k")
    put(place, {})
    for name in ("x.npz", "bench.toml"):
        (place / name).symlink_to(place.parent / name)
    (place / "photos").symlink_to(place.parent / "photos")
    try:
        yield place, None if mounted else size * 1024, lambda: _enlarge(place, mounted)
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(place)], capture_output=True)


def _mount(place: Path, options: str) -> bool:
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    try:
        return subprocess.run(words, capture_output=True).returncode == 0
    except OSError:
        return False


def _enlarge(place: Path, mounted: bool) -> None:
    if mounted:
        _mount(place, "remount,size=64m")


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    found = re.search(r"bug in balancemix.*?: (.*?)( \(trace|$)", text)
    return re.sub(r"/\S+/", "", found[1] if found else lines[-1] if lines else "nothing")[:160]


HURT = [Hurt("kills", kill), Hurt("signals", interrupt), Hurt("full disks", fill)]
