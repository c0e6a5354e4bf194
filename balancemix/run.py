"""Run: the directory of one training, and every file in it.

Each file is written whole or not at all, and `FILES` is the only place that knows its name.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from balancemix import files, processes
from balancemix.data.rows import Rows
from balancemix.errors import InputError
from balancemix.labels.table import Labels, Status
from balancemix.methods import Method
from balancemix.plan.plan import Plan, read_tree

FILES = {
    "plan": "plan.json",  # what was run
    "noise": "noise.json",  # the noise that was added, and the rates measured after it
    "pilot": "pilot.json",  # what a short training measured, if settings were left to it
    "log": "log.jsonl",  # a line for each epoch
    "metrics": "metrics.json",  # last and best scores, quality of the selection; written last
    "per_class": "per_class.json",  # given positives and last AP of each class
    "table": "label_table.npz",  # the label table, confidence, names of rows and classes
    "truth": "truth.npz",  # the labels before noise, if noise was added; only for scoring
    "model": "model.safetensors",  # the weights
    "checkpoint": "checkpoint.pt",  # all that is needed to resume
    "findings": "findings.csv",  # these three by later commands, unless --out says otherwise
    "corrected": "labels.corrected.csv",
    "report": "report.html",
}
OLD_NAMES = {"table": "labels.npz", "per_class": "classes.json"}  # read, never written

VERSION = 2  # of label table and checkpoint; the first did not say so
# The first version's codes of status: clean, re-labelled, ambiguous.
_RELABELLED, _AMBIGUOUS = 1, 2

Log = list[dict[str, Any]]


class Run:
    """The directory of one run: `create` starts one, `open` reads one.

    Properties are read from files; those of large files only once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def check(path: Path, plan: Plan, *, resume: bool = False, force: bool = False) -> None:
        """Refuse a directory in which no run can start, before anything is loaded or written."""
        if path.exists() and not path.is_dir():
            raise InputError(f"{path}: is a file; --out must name a directory")
        run = Run(path)
        if not run.has("plan") or force:
            return
        if not resume:
            raise InputError(
                f"{path}: already holds a run; pass --resume to continue it, or --force to start "
                "over"
            )
        if changes := run.plan.changes(plan):
            raise InputError(f"{path}: cannot resume with another plan: {'; '.join(changes)}")

    @classmethod
    def create(cls, path: Path, plan: Plan, *, resume: bool = False, force: bool = False) -> Run:
        """Start a run in a directory without one; or resume the one in it, or start it over."""
        cls.check(path, plan, resume=resume, force=force)
        run = cls(path)
        if run.has("plan") and resume and not force:
            return run
        path.mkdir(parents=True, exist_ok=True)
        # No file of an old run may be taken for the new one's, least of all the checkpoint.
        for name in (FILES["checkpoint"], *FILES.values(), *OLD_NAMES.values()):
            (path / name).unlink(missing_ok=True)
        run.write_json("plan", plan.tree())
        return run

    @classmethod
    def open(cls, path: Path) -> Run:
        """Open the run in a directory, finished or not."""
        run = cls(path)
        if not run.has("plan"):
            raise InputError(f"{path}: holds no run; make one with `balancemix train`")
        return run

    def path_of(self, name: str) -> Path:
        """Return the path of a file, by its short name in `FILES`."""
        return self.path / FILES[name]

    def has(self, name: str) -> bool:
        """Return whether a file exists."""
        return self._find(name).is_file()

    @cached_property
    def plan(self) -> Plan:
        """What was run."""
        return Plan.from_tree(read_tree(self.path_of("plan")))

    @property
    def log(self) -> Log:
        """The lines logged so far; a score that is not defined is NaN."""
        if not self.has("log"):
            return []
        path = self._existing("log")
        lines = path.read_text(encoding="utf-8").splitlines()
        return [files.with_nan(_parse(line, path)) for line in lines]

    @property
    def metrics(self) -> dict[str, Any]:
        """Last and best scores; one that is not defined is NaN."""
        return files.with_nan(self.read_json("metrics"))

    @cached_property
    def table(self) -> Labels:
        """The label table, N×K; tables of older runs in today's codes of status."""
        arrays = self._arrays
        if "version" not in arrays:
            old, target, weight = arrays["status"], arrays["target"], arrays["weight"]
            relabelled = np.where(target > 0.5, Status.PRESENT, Status.ABSENT)
            doubted = np.where(weight > 0, Status.AMBIGUOUS, Status.IGNORED)
            status = np.where(old == _RELABELLED, relabelled, Status.CLEAN)
            status = np.where(old == _AMBIGUOUS, doubted, status).astype(np.uint8)
            arrays = {**arrays, "status": status}
        return Labels(*(torch.from_numpy(arrays[name]) for name in Labels._fields))

    @property
    def confidence(self) -> Tensor:
        """The model's N×K confidence on the training rows."""
        return torch.from_numpy(self._arrays["confidence"])

    @property
    def names(self) -> list[str]:
        """The names of the training rows."""
        return list(self._arrays["names"].tolist())

    @property
    def classes(self) -> list[str]:
        """The names of the classes."""
        return list(self._arrays["classes"].tolist())

    @cached_property
    def truth(self) -> Tensor | None:
        """The N×K labels before noise, if they are known."""
        return torch.from_numpy(self.read_arrays("truth")["truth"]) if self.has("truth") else None

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write one of the run's JSON files."""
        files.write_json(self.path_of(name), content)

    def read_json(self, name: str) -> dict[str, Any]:
        """Read one of the run's JSON files."""
        path = self._existing(name)
        return _parse(path.read_text(encoding="utf-8"), path)

    def write_arrays(self, name: str, arrays: Mapping[str, Any]) -> None:
        """Write one of the run's .npz files."""
        files.write_arrays(self.path_of(name), arrays)

    def read_arrays(self, name: str) -> dict[str, np.ndarray[Any, Any]]:
        """Read one of the run's .npz files."""
        path = self._existing(name)
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return dict(arrays)
        except Exception as error:  # zip, zlib and NumPy's header parser each raise their own
            raise InputError(f"{path}: cannot be read; `train --resume` writes it again") from error

    def save_epoch(self, log: Log, method: Method, engine: Any) -> None:
        """Store the log and a checkpoint; a process killed meanwhile leaves the old ones."""
        text = "".join(files.to_json(line) + "\n" for line in log)
        files.write_text(self.path_of("log"), text)
        self.save_checkpoint({"method": method.state_dict(), **engine.state_dict()})

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Store the state to resume from."""
        self._write("checkpoint", lambda path: torch.save({"version": VERSION, **state}, path))

    def is_started(self) -> bool:
        """Return whether there is a checkpoint to resume from; the same in all processes."""
        exists = processes.rank() == 0 and self.has("checkpoint")
        return processes.broadcast(b"yes" if exists else None) is not None

    def restore(self, method: Method, engine: Any) -> Log:
        """Put method and engine where the run stopped, and return its log up to there."""
        state, log = self.read_checkpoint()
        if state is None:
            return []
        try:
            method.load_state_dict(state["method"])
            engine.load_state_dict(state)
        except (KeyError, TypeError) as error:
            raise self._other_version() from error
        return log[: method.epoch]

    def read_checkpoint(self) -> tuple[dict[str, Any] | None, Log]:
        """Read the state to resume from, if there is one, and the log; nothing in it is executed.

        All processes get what the first one reads: they resume from one place, or none does.
        """
        path, content = self.path_of("checkpoint"), None
        if processes.rank() == 0 and self.has("checkpoint"):
            content = path.read_bytes()
        content = processes.broadcast(content)
        if content is None:
            return None, []
        log = json.dumps(self.log if processes.rank() == 0 else []).encode()
        lines: Log = json.loads(processes.broadcast(log) or b"[]")
        try:
            state = unpack(content)
        except Exception as error:  # a damaged file fails in zip, in pickle or in torch
            raise InputError(f"{path}: cannot be read; pass --force to start over") from error
        if state.get("version") != VERSION:
            raise self._other_version()
        return state, lines

    def save_result(
        self,
        method: Method,
        model: nn.Module,
        train: Rows,
        confidence: Tensor,
        per_class: Mapping[str, Any],
        metrics: Mapping[str, Any],
    ) -> None:
        """Store a finished training; the metrics last, which say that it is finished."""
        self.save_model(model.state_dict())
        matrices = {**method.table.whole()._asdict(), "confidence": confidence}
        arrays: dict[str, Any] = {name: matrix.numpy() for name, matrix in matrices.items()}
        named = {"classes": list(train.classes), "names": list(train.names)}
        self.write_arrays("table", {"version": VERSION, **arrays, **named})
        self.write_json("per_class", per_class)
        self.write_json("metrics", metrics)

    def save_model(self, weights: Mapping[str, Tensor]) -> None:
        """Store the weights, without pickle."""
        from safetensors.torch import save_file

        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
        self._write("model", lambda path: save_file(tensors, path))

    def load_model(self) -> dict[str, Tensor]:
        """Load the weights."""
        from safetensors.torch import load_file

        weights: dict[str, Tensor] = load_file(self._existing("model"))
        return weights

    def _other_version(self) -> InputError:
        path = self.path_of("checkpoint")
        return InputError(f"{path}: is of another version of balancemix; start over with --force")

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        return self.read_arrays("table")

    def _write(self, name: str, save: Callable[[Path], object]) -> None:
        files.write_whole(self.path_of(name), save)

    def _find(self, name: str) -> Path:
        """Return the path of a file, which in an older run may have another name."""
        path, old = self.path_of(name), self.path / OLD_NAMES.get(name, FILES[name])
        return old if old.is_file() and not path.is_file() else path

    def _existing(self, name: str) -> Path:
        path = self._find(name)
        if not path.is_file():
            raise InputError(
                f"{path}: not found; is the run unfinished? `train --resume` finishes it"
            )
        return path


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise InputError(
            f"{path}: cannot be read; delete it and resume the run to write it again"
        ) from error
    return content


def unpack(content: bytes) -> dict[str, Any]:
    """Read a state that torch saved; nothing in it is executed."""
    state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    return state
