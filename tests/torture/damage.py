"""Finished and unfinished runs with a flipped byte, or with other data under them.

The commands that read a run must answer as before, refuse, or say that something changed.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.torture import children, names
from tests.torture.draw import Draw
from tests.torture.mutate import flip_byte
from tests.torture.outcome import READ, REFUSED, TRACEBACK, WRONG, Outcome, attempt
from tests.torture.run_files import TRAIN, call, make_run
from tests.torture.same import arrays_of, run_content

# How a run is read; {out} is a new file. The last goes on with an unfinished run.
COMMANDS = {
    "audit": ("audit", "run", "--json", "--out", "out.csv"),
    "evaluate": ("evaluate", "run", "--json", "--per-class"),
    "predict": ("predict", "run", "x.npz", "--out", "out.csv"),
    "export": ("export", "run", "--out", "out.csv"),
    "report": ("report", "run", "--out", "out.html"),
    "resume": ("train", "x.npz", "--out", "run", "--resume", "--json", *TRAIN),
}
SLOW = {"report": 0.1}


class Damaged:
    """What flipped bytes and changed data have in common: a run, hurt, then read."""

    def __init__(self, name: str, chunk: int) -> None:
        self.name = self.group = name
        self.chunk = chunk

    def prepare(self, folder: Path) -> None:
        """Make a finished run and an unfinished one, and know what each command answers."""
        self.folders = {state: folder / state for state in ("finished", "unfinished")}
        for place in self.folders.values():
            place.mkdir(parents=True)
        make_run(self.folders["finished"])
        unfinished(self.folders["unfinished"])
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
                return Outcome(REFUSED), None, told
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

    def verdict(self, state: str, command: str, folder: Path, what: str, asked: Any) -> Outcome:
        """Compare with the answer of the whole run."""
        outcome, answer, told = asked
        before, expected, usual = self.before(state, command, folder)
        if outcome.kind != READ:
            return outcome
        if before.kind == READ and answer == expected:
            return outcome
        if [line for line in told if line not in usual]:
            return outcome
        return Outcome(WRONG, f"{state} run, {what}: {command} answers otherwise without a word")


def unfinished(folder: Path) -> None:
    """Kill a training after its first checkpoint."""
    make_run(folder)
    shutil.rmtree(folder / "run")
    words = ["train", "x.npz", "--out", "run", *TRAIN]
    at = 6
    while not (folder / "run" / names.file_of("checkpoint")).exists():
        shutil.rmtree(folder / "run", ignore_errors=True)
        ended = children.run(list(words), folder, at=at, number=signal.SIGKILL)
        assert ended.code == -signal.SIGKILL, ended.err
        at += 1


class Flips(Damaged):
    """One byte of any file of a run, flipped."""

    def case(self, draw: Draw, number: int, folder: Path) -> Outcome:
        """Flip a byte, then ask one of the commands."""
        state = draw.pick(sorted(self.folders))
        command = choose(state, draw)
        files = sorted(path.name for path in (self.folders[state] / "run").iterdir())
        name = draw.pick([file for file in files if not file.startswith(".")])

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


def shuffled(arrays: dict[str, Any], draw: Draw) -> dict[str, Any]:
    """Give the rows another order."""
    order = draw.rng.permutation(len(arrays["labels"]))
    return {key: value if key == "classes" else value[order] for key, value in arrays.items()}


def by_name(arrays: dict[str, Any], draw: Draw) -> dict[str, Any]:
    """Sort the rows, last name first."""
    order = np.argsort(arrays["images"])[::-1]
    return {key: value if key == "classes" else value[order] for key, value in arrays.items()}


def other_columns(arrays: dict[str, Any], draw: Draw) -> dict[str, Any]:
    """Give the classes another order."""
    order = np.roll(np.arange(len(arrays["classes"])), 1 + draw.below(2))
    changed = {"classes": arrays["classes"][order], "labels": arrays["labels"][:, order]}
    return arrays | changed


def edited(arrays: dict[str, Any], draw: Draw) -> dict[str, Any]:
    """Correct one label."""
    labels = arrays["labels"].copy()
    labels[draw.below(30), draw.below(3)] ^= 1
    return arrays | {"labels": labels}


def dropped(arrays: dict[str, Any], draw: Draw) -> dict[str, Any]:
    """Leave out a row."""
    gone = draw.below(30)
    return {k: v if k == "classes" else np.delete(v, gone, axis=0) for k, v in arrays.items()}


def renamed(arrays: dict[str, Any], draw: Draw) -> dict[str, Any]:
    """Rename a class, or swap the names of two."""
    names_ = arrays["classes"].tolist()
    k = draw.below(3)
    names_[k], names_[k - 1] = (
        (names_[k - 1], names_[k]) if draw.chance(0.5) else ("new", names_[0])
    )
    return arrays | {"classes": np.array(names_)}


def other_inputs(arrays: dict[str, Any], draw: Draw) -> dict[str, Any]:
    """Replace what one row looks like."""
    features = arrays["features"].copy()
    features[draw.below(30)] += 1
    return arrays | {"features": features}


CHANGES: dict[str, Callable[[dict[str, Any], Draw], dict[str, Any]]] = {
    "shuffled": shuffled,
    "sorted": by_name,
    "classes reordered": other_columns,
    "a label edited": edited,
    "a row dropped": dropped,
    "a class renamed": renamed,
    "a row's features replaced": other_inputs,
}
# Each with the commands whose answer depends on it; `export` writes the new file's own order.
ASKED = {"unfinished": ("resume",), "finished": ("export", "audit", "resume")}


class ChangedData(Damaged):
    """The data of a run, changed after the run began."""

    def case(self, draw: Draw, number: int, folder: Path) -> Outcome:
        """Change the data, then resume or export."""
        state = draw.pick(sorted(self.folders))
        command = draw.pick(ASKED[state])
        change = draw.pick(sorted(CHANGES))

        def hurt(place: Path) -> None:
            np.savez(place / "x.npz", **CHANGES[change](arrays_of(place / "x.npz"), draw))

        outcome, answer, told = self.ask(state, command, folder, hurt)
        if command == "export" and outcome.kind == READ:
            answer = by_image(answer, change)
            _, expected, usual = self.before(state, command, folder)
            same = answer == by_image(expected, change)
            new = [line for line in told if line not in usual]
            silent = same or new or change == "a row's features replaced"
            return outcome if silent else Outcome(WRONG, f"{change}: export without a word")
        return self.verdict(state, command, folder, change, (outcome, answer, told))


def by_image(answer: Any, change: str) -> Any:
    """Sort the lines of an exported file, and the labels in each."""
    _, (content,) = answer
    lines = content.decode().splitlines()
    return sorted("|".join(sorted(line.replace(",", "|").split("|"))) for line in lines)


DAMAGED = [Flips("flips", 50), ChangedData("changed data", 20)]
