"""The readers of a run's files: each file damaged in turn, in a run that is otherwise whole.

A run says what it holds more than once, so a damaged file must give the same answer as before, or
be refused, or be told about: an answer that differs without a word is silently wrong.
"""

import contextlib
import functools
import io
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from balancemix.auditing import judged as judging
from balancemix.auditing.findings import find
from balancemix.auditing.judged import judge_confidence
from balancemix.cli import main
from balancemix.judge import opinion
from balancemix.judge.noise_model import NoiseModel, fit_noise_model
from balancemix.report.summary import Summary
from balancemix.run import Run
from balancemix.training.experiment import load_experiment
from tests.torture import names
from tests.torture.draw import Draw
from tests.torture.mutate import mutate_bytes, mutate_lines, mutate_tree, write_json
from tests.torture.outcome import READ, WRONG, Outcome, attempt, listening

ROWS, CLASSES, WIDTH = 40, 3, 4
FITTED: dict[Any, NoiseModel] = {}
MOST_FITTED = 1000


def fit_once(given: torch.Tensor, score: torch.Tensor) -> NoiseModel:
    """Fit a model of the noise, or take the one of the same labels and scores.

    Fitting takes a hundred times as long as the rest of a case, and depends on nothing else.
    """
    key = tuple((each.dtype, each.shape, each.numpy().tobytes()) for each in (given, score))
    if key not in FITTED:
        if len(FITTED) == MOST_FITTED:
            FITTED.clear()
        FITTED[key] = fit_noise_model(given, score)
    return FITTED[key]


judging.fit_noise_model = opinion.fit_noise_model = fit_once  # type: ignore[attr-defined]


def tiny_data(path: Path, seed: int = 0) -> None:
    """Write features that a linear model can learn from in no time."""
    generator = np.random.default_rng(seed)
    labels = (generator.random((ROWS, CLASSES)) < 0.4).astype(np.uint8)
    labels[:CLASSES] = labels[-CLASSES:] = np.eye(CLASSES, dtype=np.uint8)
    directions = generator.normal(size=(CLASSES, WIDTH))
    features = labels @ directions + 0.3 * generator.normal(size=(ROWS, WIDTH))
    np.savez(
        path,
        features=features.astype(np.float32),
        labels=labels,
        classes=np.array(["cat", "dog", "cup"]),
        images=np.array([f"{i:02}.png" for i in range(ROWS)]),
        split=np.array(["train"] * 30 + ["test"] * 10),
    )


ANY = (
    "--noise", "flip:0.2", "--epochs", "3", "--batch-size", "16", "--device", "cpu",
    "--workers", "0", "--set", "model.hidden=8",
)  # fmt: skip
TRAIN = (*ANY, "--set", "method.warmup=1")
JUDGED = (*ANY, "--method", "second-opinion")
CHOSEN = (*ANY, "--method", "auto")


def call(*words: str | Path) -> tuple[int, str, str]:
    """Run a command in this process: its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(word) for word in words])
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 2
    return code, out.getvalue(), err.getvalue()


def make_run(folder: Path, words: tuple[str, ...]) -> Path:
    """Train a tiny run in a folder, and audit it."""
    tiny_data(folder / "x.npz")
    run = folder / "run"
    code, _, err = call("train", folder / "x.npz", "--out", run, *words)
    assert code == 0, err
    assert call("audit", run)[0] == 0
    return run


def canonical(value: Any) -> Any:
    """Make an answer that can be compared, NaN included."""
    if isinstance(value, torch.Tensor | np.ndarray):
        array = np.asarray(value)
        return (str(array.dtype), array.shape, array.tobytes() if array.dtype != object else "?")
    if isinstance(value, dict):
        return {str(key): canonical(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(each) for each in value]
    return repr(value)


def summary(run: Run) -> Any:
    """Read all that a report says in words."""
    found = Summary(run)
    return canonical(
        [
            found.metrics, found.noise, found.log, found.names, found.classes, found.given,
            found.truth, found.ap[0], found.quality, found.changed(), found.commands(),
            list(found.findings.lines()),
        ]
    )  # fmt: skip


def findings(run: Run) -> Any:
    """Audit what a run's table holds."""
    table = run.table.given, run.confidence
    judged = judge_confidence(*table, names=run.names, classes=run.classes)
    return canonical(list(find(judged, 0.5).lines()))


def rows(run: Run) -> Any:
    """Load the rows of a run as resuming it does."""
    found = load_experiment(run.plan, run.known_rows())
    return canonical([found.train.names, found.train.given, found.test.names, found.test.given])


# A file by its short name, and what reads it.
READS: dict[str, Callable[[Run], Any]] = {
    "plan": lambda run: canonical(run.plan.tree()),
    "noise": summary,
    "log": lambda run: canonical(run.log),
    "metrics": summary,
    "per_class": summary,
    "table": findings,
    "truth": summary,
    "model": lambda run: canonical(run.load_model()),
    "checkpoint": lambda run: canonical(run.read_checkpoint()),
    "data": rows,
    "judge": lambda run: canonical(None if run.opinion is None else vars(run.opinion)),
    "auto": lambda run: canonical(None if run.choice is None else vars(run.choice)),
}
# How the run is trained that has the file, if not by `TRAIN`.
TRAINED = {"judge": JUDGED, "auto": CHOSEN}


class RunFile:
    """The reader of one file of a run."""

    group, chunk = "readers", 500

    def __init__(self, meaning: str) -> None:
        self.file, self.answers = names.file_of(meaning), READS[meaning]
        self.train = [TRAINED[meaning]] if meaning in TRAINED else []
        self.name = f"run: {self.file}"
        self.modules: tuple[str, ...] = ("balancemix.run",)

    def prepare(self, folder: Path) -> None:
        """Put a whole run into the folder."""
        shutil.copytree(whole_run(*self.train), folder, dirs_exist_ok=True)
        self.whole = (folder / self.file).read_bytes()
        with listening():
            self.before = self.answers(Run.open(folder))

    def case(self, draw: Draw, number: int, folder: Path) -> Outcome:
        """Damage the file; in every fourth case of a run from before there was a manifest."""
        path = folder / self.file
        path.write_bytes(self.damage(draw))
        hidden = names.hide_manifest(folder) if number % 4 == 0 else None
        try:
            with listening() as told:
                answer, outcome = attempt(
                    lambda: self.answers(Run.open(folder)), (folder.name, "x.npz")
                )
            if outcome.kind == READ and answer != self.before:
                # A word is a line about this file or, of an old run, that nothing can be checked.
                about = "without checksums" if hidden is not None else self.file
                if not any(about in line for line in told):
                    return Outcome(WRONG, f"{self.file}: another answer without a word")
            return outcome
        finally:
            path.write_bytes(self.whole)
            if hidden is not None:
                names.show_manifest(*hidden)

    def damage(self, draw: Draw) -> bytes:
        """Damage bytes, or what they say."""
        if draw.chance(0.4):
            return mutate_bytes(self.whole, draw)
        if self.file.endswith(".json"):
            return write_json(mutate_tree(json.loads(self.whole), draw), draw)
        if self.file.endswith(".jsonl"):
            lines = self.whole.decode().splitlines()
            if draw.chance(0.5):
                return mutate_lines("\n".join(lines), draw).encode("utf-8", "surrogatepass")
            i = draw.below(len(lines))
            lines[i] = write_json(mutate_tree(json.loads(lines[i]), draw), draw).decode(
                "utf-8", "surrogateescape"
            )
            return "\n".join(lines).encode("utf-8", "surrogateescape")
        if self.file.endswith(".npz"):
            from tests.torture.damage_data import damage_arrays

            with np.load(io.BytesIO(self.whole)) as arrays:
                return damage_arrays(dict(arrays), draw)["x.npz"]
        return mutate_bytes(mutate_bytes(self.whole, draw), draw)


@functools.cache
def whole_run(words: tuple[str, ...] = TRAIN) -> Path:
    """Train the run that all cases of this process begin with."""
    folder = Path(tempfile.mkdtemp(dir=names.scratch(), prefix="run-"))
    return make_run(folder, words)


RUN_READERS = [RunFile(meaning) for meaning in READS]
