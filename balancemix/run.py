"""Run: one directory with all that a training leaves behind, written so that nothing is half there.

plan.json           what was run
noise.json          what noise was added, and the rates that it came to
log.jsonl           a line an epoch
metrics.json        last and best scores, quality of the selection
classes.json        each class's given positives and last AP
labels.npz          the label table, the model's confidence, names of rows and classes
truth.npz           the labels before noise, where noise was added; for scoring only
model.safetensors   the weights
checkpoint.pt       all that is needed to go on: weights, optimiser, method

Written beside them by later commands, unless they are told another place:
findings.csv, labels.corrected.csv, report.html
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from balancemix import files, processes
from balancemix.errors import InputError
from balancemix.labels.table import Status
from balancemix.plan.plan import Plan, read_tree

FILES = (
    "plan.json",
    "noise.json",
    "log.jsonl",
    "metrics.json",
    "classes.json",
    "labels.npz",
    "truth.npz",
    "model.safetensors",
    "checkpoint.pt",
    "findings.csv",
    "labels.corrected.csv",
    "report.html",
)

VERSION = 2  # of label table and checkpoint; the first did not say so
# The first version's codes of status: clean, re-labelled, ambiguous.
_RELABELLED, _AMBIGUOUS = 1, 2


class Run:
    """The directory of one run; `open` finds one, `create` begins one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def check(path: Path, plan: Plan, *, resume: bool = False, force: bool = False) -> None:
        """Refuse a directory that cannot be begun in, before anything is loaded or written."""
        if path.exists() and not path.is_dir():
            raise InputError(f"{path}: is a file; --out must name a directory")
        if not (path / "plan.json").exists() or force:
            return
        if not resume:
            raise InputError(
                f"{path}: already holds a run; pass --resume to go on, or --force to begin anew"
            )
        # Both written out whole: a setting that is newer than the run had its default then.
        differing = _differences(Run(path).plan.tree(), plan.tree())
        if differing:
            raise InputError(f"{path}: cannot resume with another plan: {differing}")

    @classmethod
    def create(cls, path: Path, plan: Plan, *, resume: bool = False, force: bool = False) -> Run:
        """Begin in a directory without a run; or go on with the one there, or begin it anew."""
        cls.check(path, plan, resume=resume, force=force)
        run = cls(path)
        if (path / "plan.json").exists() and resume and not force:
            return run
        path.mkdir(parents=True, exist_ok=True)
        # What is left of a run must never be taken for the new one's, the checkpoint least of all.
        for name in ("checkpoint.pt", *FILES):
            (path / name).unlink(missing_ok=True)
        run.write_json("plan.json", plan.tree())
        return run

    @classmethod
    def open(cls, path: Path) -> Run:
        """Find a run that was begun."""
        if not (path / "plan.json").is_file():
            raise InputError(f"{path}: holds no run; make one with `balancemix train`")
        return cls(path)

    def exists(self) -> bool:
        """Is a run in the directory, be it unfinished?"""
        return (self.path / "plan.json").is_file()

    @property
    def plan(self) -> Plan:
        """What was run."""
        return Plan.from_tree(read_tree(self.path / "plan.json"))

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write one of the run's JSON files."""
        files.write_json(self.path / name, content)

    def write_arrays(self, name: str, arrays: Mapping[str, Any]) -> None:
        """Write one of the run's .npz files."""
        files.write_arrays(self.path / name, arrays)

    def read_json(self, name: str) -> dict[str, Any]:
        """Read one of the run's JSON files."""
        path = self._existing(name)
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content

    def read_arrays(self, name: str) -> dict[str, np.ndarray[Any, Any]]:
        """Read one of the run's .npz files."""
        path = self._existing(name)
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return dict(arrays)
        except Exception as error:  # zip, zlib and NumPy's header parser each raise their own
            raise InputError(f"{path}: cannot be read; `train --resume` writes it anew") from error

    def truth(self) -> Tensor | None:
        """Read the labels before noise, if noise was added."""
        if not (self.path / "truth.npz").exists():
            return None
        return torch.from_numpy(self.read_arrays("truth.npz")["truth"])

    def confidence(self) -> Tensor:
        """Read the model's N×K confidence on the training rows."""
        return torch.from_numpy(self.read_arrays("labels.npz")["confidence"])

    def labels(self) -> dict[str, np.ndarray[Any, Any]]:
        """Read the label table and what stands beside it, in today's codes of status."""
        arrays = self.read_arrays("labels.npz")
        if "version" not in arrays:
            old, target, weight = arrays["status"], arrays["target"], arrays["weight"]
            relabelled = np.where(target > 0.5, Status.PRESENT, Status.ABSENT)
            doubted = np.where(weight > 0, Status.AMBIGUOUS, Status.IGNORED)
            status = np.where(old == _RELABELLED, relabelled, Status.CLEAN)
            arrays["status"] = np.where(old == _AMBIGUOUS, doubted, status).astype(np.uint8)
        return arrays

    def log(self) -> list[dict[str, Any]]:
        """Read the lines logged so far."""
        path = self.path / "log.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def write_log(self, lines: list[dict[str, Any]]) -> None:
        """Write all lines of the log anew: a killed run leaves no half line."""
        text = "".join(json.dumps(line) + "\n" for line in lines)
        files.write_text(self.path / "log.jsonl", text)

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Store the state to go on from."""
        state = {"version": VERSION, **state}
        files.write_whole(self.path / "checkpoint.pt", lambda path: torch.save(state, path))

    def begun(self) -> bool:
        """Tell, alike in all processes, whether there is a state to go on from."""
        exists = processes.rank() == 0 and (self.path / "checkpoint.pt").exists()
        return processes.broadcast(b"yes" if exists else None) is not None

    def stored(self) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """Load the state to go on from, if there is one, and the log; nothing in it is executed.

        All processes get what the first one finds: they go on from one place, or none does.
        """
        path, content = self.path / "checkpoint.pt", None
        if processes.rank() == 0 and path.exists():
            content = path.read_bytes()
        content = processes.broadcast(content)
        if content is None:
            return None, []
        log = json.dumps(self.log() if processes.rank() == 0 else []).encode()
        lines = json.loads(processes.broadcast(log) or b"[]")
        try:
            state = unpack(content)
        except Exception as error:  # a damaged file fails in zip, in pickle or in torch
            raise InputError(f"{path}: cannot be read; --force begins anew") from error
        if state.get("version") != VERSION:
            raise refusal(self)
        return state, lines

    def save_model(self, weights: Mapping[str, Tensor]) -> None:
        """Store weights without pickle."""
        from safetensors.torch import save_file

        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
        files.write_whole(self.path / "model.safetensors", lambda path: save_file(tensors, path))

    def load_model(self) -> dict[str, Tensor]:
        """Load the weights."""
        from safetensors.torch import load_file

        weights: dict[str, Tensor] = load_file(self._existing("model.safetensors"))
        return weights

    def _existing(self, name: str) -> Path:
        path = self.path / name
        if not path.exists():
            raise InputError(f"{path}: not there; has the run ended? `--resume` finishes it")
        return path


def refusal(run: Run | None) -> InputError:
    """Say that a checkpoint does not fit what is to be resumed."""
    where = "the checkpoint" if run is None else run.path / "checkpoint.pt"
    return InputError(f"{where}: is of another version of balancemix; start over with --force")


def pack(state: Mapping[str, Any]) -> bytes:
    """Write a state of tensors and numbers as bytes."""
    out = io.BytesIO()
    torch.save(dict(state), out)
    return out.getvalue()


def unpack(content: bytes) -> dict[str, Any]:
    """Read what `pack` wrote, or a checkpoint; nothing in it is executed."""
    state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    return state


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], where: str = "") -> str:
    """Name the settings in which two plans differ."""
    found = []
    for key in dict.fromkeys([*old, *new]):
        one, other = old.get(key), new.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            found.append(_differences(one, other, f"{where}{key}."))
        elif one != other:
            found.append(f"{where}{key} was {one!r}, is {other!r}")
    return "; ".join(part for part in found if part)
