"""Finished and unfinished runs that are damaged, then read.

The commands that read a run must answer as before, refuse, or say that something changed.
"""

import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.torture import children, names
from tests.torture.draw import Draw
from tests.torture.mutate import flip_byte
from tests.torture.outcome import READ, REFUSED, TRACEBACK, UNTIDY, WRONG, Outcome, attempt
from tests.torture.run_files import TRAIN, call, tiny_data
from tests.torture.same import run_content

# How a run is read. The last command also completes an unfinished one.
COMMANDS = {
    "audit": ("audit", "run", "--json", "--out", "out.csv"),
    "evaluate": ("evaluate", "run", "--json", "--per-class"),
    "predict": ("predict", "run", "x.npz", "--out", "out.csv"),
    "export": ("export", "run", "--out", "out.csv"),
    "report": ("report", "run", "--out", "out.html"),
    "resume": ("train", "--out", "run", "--resume", "--json"),
}
SLOW = {"report": 0.1}


class Damaged:
    """What flipped bytes and changed data have in common: a run, hurt, then read."""

    train: tuple[str, ...] = ("train", "x.npz", "--out", "run", *TRAIN)

    def write_data(self, place: Path) -> None:
        """Write what the run is trained on."""
        tiny_data(place / "x.npz")

    def __init__(self, name: str, group: str, chunk: int) -> None:
        self.name, self.group, self.chunk = name, group, chunk

    def prepare(self, folder: Path) -> None:
        """Make a finished run and an unfinished one, and know what each command answers."""
        self.folders = {state: folder / state for state in ("finished", "unfinished")}
        for place in self.folders.values():
            place.mkdir(parents=True)
            self.write_data(place)
        with contextlib.chdir(self.folders["finished"]):
            code, _, err = call(*self.train)
            assert code == 0, err
        kill_midway(self.folders["unfinished"], self.train)
        self.answers: dict[tuple[str, str], Any] = {}

    def before(self, state: str, command: str, folder: Path) -> Any:
        """Say what a command answers of the whole run, once in a process."""
        if (state, command) not in self.answers:
            self.answers[state, command] = self.ask(state, command, folder, lambda place: None)
        return self.answers[state, command]

    def ask(self, state: str, command: str, folder: Path, hurt: Callable[[Path], None]) -> Any:
        """Copy a run, hurt it, and ask a command: outcome, answer, what was said beside it."""
        place = Path(tempfile.mkdtemp(dir=folder)) / "work"
        shutil.copytree(self.folders[state], place)
        here = os.getcwd()
        os.chdir(place)
        try:
            hurt(place)
            answer, outcome = attempt(lambda: call(*COMMANDS[command]))
            if outcome.kind != READ:
                return Outcome(TRACEBACK, f"{command}: {outcome.detail}"), None, []
            code, out, err = answer
            told = [line for line in err.splitlines() if line.strip()]
            if code == 70:
                return (
                    Outcome(TRACEBACK, f"{command}: {told[-1].partition(' (traceback')[0][:160]}"),
                    None,
                    told,
                )
            if code != 0:
                return refusal(command, code, told), None, told
            return Outcome(READ), self.content(command, place, out), told
        finally:
            os.chdir(here)
            if os.environ.get("TORTURE_KEEP"):
                sys.stdout.write(f"in {place}: balancemix {' '.join(COMMANDS[command])}\n")
            else:
                shutil.rmtree(place.parent, ignore_errors=True)

    def content(self, command: str, place: Path, out: str) -> Any:
        """Collect what a command answered."""
        if command == "resume":
            return run_content(place / "run")
        outputs = (place / "out.csv", place / "out.html")
        return out, [path.read_bytes() for path in outputs if path.exists()]

    def words(self, what: str) -> tuple[str, ...]:
        """Say which words, one of them, a line about a change must hold: the name of the file."""
        return (what,)

    def verdict(self, state: str, command: str, folder: Path, what: str, asked: Any) -> Outcome:
        """Compare with the answer of the whole run."""
        outcome, answer, told = asked
        before, expected, usual = self.before(state, command, folder)
        if outcome.kind != READ:
            return outcome
        if before.kind == READ and answer == expected:
            return outcome
        said = [line for line in told if line not in usual]
        if any(word in line for line in said for word in self.words(what)):
            return outcome
        return Outcome(WRONG, f"{state} run, {what}: {command} answers otherwise without a word")


def refusal(command: str, code: int, told: list[str]) -> Outcome:
    """Judge a command that refused: exit code 2, and a line of its own at the end."""
    if code == 2 and told and told[-1].startswith("balancemix"):
        return Outcome(REFUSED)
    return Outcome(UNTIDY, f"{command}: exit code {code}: {told[-1][:80] if told else 'nothing'}")


def kill_midway(folder: Path, words: tuple[str, ...]) -> None:
    """Kill a training between its first checkpoint and its end."""
    at = children.run(list(words), folder).changes // 2
    shutil.rmtree(folder / "run")
    while not (folder / "run" / names.file_of("checkpoint")).exists():
        shutil.rmtree(folder / "run", ignore_errors=True)
        ended = children.run(list(words), folder, at=at, number=signal.SIGKILL)
        assert ended.code == -signal.SIGKILL, ended.err
        at += 1


class Flips(Damaged):
    """One byte of any file of a run, flipped; the run is trained with these words."""

    def __init__(self, name: str, group: str, chunk: int, words: tuple[str, ...] = TRAIN) -> None:
        super().__init__(name, group, chunk)
        self.train = ("train", "x.npz", "--out", "run", *words)

    def case(self, draw: Draw, number: int, folder: Path) -> Outcome:
        """Flip a byte, then ask one of the commands."""
        state = draw.pick(sorted(self.folders))
        command = choose(state, draw)
        files = sorted(path.name for path in (self.folders[state] / "run").iterdir())
        name = draw.pick(files)

        def hurt(place: Path) -> None:
            path = place / "run" / name
            content = path.read_bytes()
            if content:
                path.write_bytes(flip_byte(content, draw.below(len(content)), draw))

        asked = self.ask(state, command, folder, hurt)
        return self.verdict(state, command, folder, name, asked)


def choose(state: str, draw: Draw) -> str:
    """Choose a command, a slow one rarely; an unfinished run is mostly resumed."""
    if state == "unfinished" and draw.chance(0.7):
        return "resume"
    command = draw.pick(sorted(COMMANDS))
    while not draw.chance(SLOW.get(command, 1.0)):
        command = draw.pick(sorted(COMMANDS))
    return command
