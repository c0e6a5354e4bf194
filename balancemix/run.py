"""Run: one training and what it leaves in its directory, to be read or resumed."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from balancemix import files
from balancemix.checkpoints import VERSION, Checkpoints, Log
from balancemix.data.fingerprint import check_fingerprint
from balancemix.data.rows import Rows
from balancemix.errors import InputError, listing
from balancemix.evaluation.recorded import check_log, check_metrics, check_rates, class_scores
from balancemix.judge.opinion import Opinion
from balancemix.judge.stages import Stages
from balancemix.labels.stored import Stored, read_labels, read_stored
from balancemix.labels.table import Labels
from balancemix.methods import Method
from balancemix.methods.auto import Choice
from balancemix.plan.plan import Plan, read_tree


class Run(Checkpoints):
    """The directory of one run: `create` starts one, `open` reads one.

    Properties are read from files; those of large files only once.
    """

    @staticmethod
    def check(path: Path, plan: Plan, *, resume: bool = False, force: bool = False) -> None:
        """Refuse a directory in which no run can start, before anything is loaded or written."""
        if path.exists() and not path.is_dir():
            raise InputError(f"{path}: is a file; --out must name a directory")
        run = Run(path)
        if not run.has("plan") and (foreign := run.foreign_files()):
            raise InputError(
                f"{path}: holds other files ({listing(foreign, 3)}); a run needs a new or empty "
                "directory"
            )
        if force:
            run.check_removable(plan.data.path)
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
        # No file of an old run may be taken for the new one's, least of all a checkpoint.
        for name in run.written_files():
            (path / name).unlink(missing_ok=True)
        run.stages.remove()
        run.write_json("plan", plan.tree())
        return run

    @classmethod
    def open(cls, path: Path) -> Run:
        """Open the run in a directory, finished or not."""
        run = cls(path)
        if not run.has("plan"):
            raise InputError(f"{path}: holds no run; make one with `balancemix train`")
        if not run.manifest.exists:
            warnings.warn(
                f"{path}: was written by an older version, without checksums", stacklevel=2
            )
        return run

    @cached_property
    def plan(self) -> Plan:
        """What was run; a method that is not part of balancemix is not imported."""
        tree = self.plan_tree
        try:
            return Plan.from_tree(tree, imports=False)
        except InputError as error:
            raise InputError(f"{self.path_of('plan')}: {error}") from error

    @property
    def plan_tree(self) -> dict[str, Any]:
        """The sections of the plan."""
        return read_tree(self._existing("plan"))

    @property
    def log(self) -> Log:
        """The lines logged so far; a score that is not defined is NaN."""
        lines = self.read_lines("log") if self.has("log") else []
        log = [files.with_nan(line) for line in lines]
        with self._checking("log"):
            check_log(log)
        return log

    @property
    def metrics(self) -> dict[str, Any]:
        """Last and best scores; one that is not defined is NaN."""
        metrics = files.with_nan(self.read_json("metrics"))
        with self._checking("metrics"):
            check_metrics(metrics)
        return metrics

    @property
    def noise(self) -> dict[str, Any]:
        """The noise that was added and its measured rates; empty if there was none."""
        facts = self.read_json("noise") if self.has("noise") else {}
        with self._checking("noise"):
            check_rates(facts)
        return facts

    @property
    def class_ap(self) -> list[float] | None:
        """The last AP of each class in percent, NaN where it has none; None in older runs."""
        if not self.has("per_class"):
            return None
        facts = self.read_json("per_class")
        with self._checking("per_class"):
            return class_scores(facts, len(self.classes))

    @property
    def table(self) -> Labels:
        """The label table, N×K."""
        return self._stored.labels

    @property
    def confidence(self) -> Tensor:
        """The model's N×K confidence on the training rows."""
        return self._stored.confidence

    @property
    def names(self) -> list[str]:
        """The names of the training rows."""
        return self._stored.names

    @property
    def classes(self) -> list[str]:
        """The names of the classes."""
        return self._stored.classes

    @cached_property
    def truth(self) -> Tensor | None:
        """The N×K labels before noise, if they are known."""
        if not self.has("truth"):
            return None
        arrays, shape = self.read_arrays("truth"), tuple(self.table.given.shape)
        with self._checking("truth"):
            return read_labels(arrays, "truth", shape)

    @property
    def opinion(self) -> Opinion | None:
        """What the judge said of the training labels, if the method asked."""
        if not self.has("judge"):
            return None
        arrays = self.read_arrays("judge")
        with self._checking("judge"):
            return Opinion.from_arrays(arrays)

    @property
    def stages(self) -> Stages:
        """The finished parts of a long judgement, until the opinion is stored."""
        return Stages(self.path / ".judge")

    @property
    def choice(self) -> Choice | None:
        """The choice of the method, if it was left to the labels."""
        if not self.has("auto"):
            return None
        facts = self.read_json("auto")
        with self._checking("auto"):
            return Choice.of(facts)

    @cached_property
    def _stored(self) -> Stored:
        arrays = self.read_arrays("table")
        with self._checking("table"):
            return read_stored(arrays)

    def known_rows(self) -> bytes | None:
        """Read the file with the fingerprint of the rows that the run was started with."""
        if not self.has("data"):
            return None
        arrays = self.read_arrays("data")
        with self._checking("data"):
            check_fingerprint(arrays)
        return self._existing("data").read_bytes()

    def held(self) -> AbstractContextManager[None]:
        """Keep other processes from training in this directory, which is made if it is missing."""
        self.path.mkdir(parents=True, exist_ok=True)
        return files.locked(self.path, "training in it")

    def save_epoch(self, log: Log, method: Method, engine: Any) -> None:
        """Store the log and a checkpoint; a process killed meanwhile leaves the old ones."""
        self.save_log(log)
        state = {"method": method.state_dict(), **engine.state_dict()}
        self.save_checkpoint({**state, "log": json.dumps(log)})

    def save_result(
        self,
        method: Method,
        model: nn.Module,
        train: Rows,
        confidence: Tensor,
        per_class: Mapping[str, Any],
        log: Log,
        metrics: Mapping[str, Any],
    ) -> None:
        """Store a finished training; the metrics last, which say that it is finished."""
        self.save_model(model.state_dict())
        matrices = {**method.table.whole()._asdict(), "confidence": confidence}
        arrays: dict[str, Any] = {name: matrix.numpy() for name, matrix in matrices.items()}
        named = {"classes": list(train.classes), "names": list(train.names)}
        self.write_arrays("table", {"version": VERSION, **arrays, **named})
        self.write_json("per_class", per_class)
        self.save_log(log)  # again, in case somebody deleted it or it was damaged
        self.write_json("metrics", metrics)

    def save_model(self, weights: Mapping[str, Tensor]) -> None:
        """Store the weights, without pickle."""
        from safetensors.torch import save

        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
        self._write("model", lambda path: path.write_bytes(save(tensors)))

    def load_model(self) -> dict[str, Tensor]:
        """Load the weights."""
        from safetensors.torch import load

        path = self._existing("model")
        try:
            # Of bytes, since safetensors opens no path that is not UTF-8.
            weights: dict[str, Tensor] = load(path.read_bytes())
        except Exception as error:  # safetensors has its own, and torch's for unknown types
            raise self.damaged("model", "cannot be read") from error
        return weights
