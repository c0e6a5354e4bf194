"""judge_data() and judge_run(): judge every label of a data set, the rows to score on too."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from balancemix.auditing.judged import Factors, Judged, judge_features, judge_nothing
from balancemix.data import read, rows_of
from balancemix.data.beside import folder_beside
from balancemix.data.fingerprint import other_inputs
from balancemix.data.source import ReadOptions, Source
from balancemix.errors import InputError, listing
from balancemix.judge.factor import FEWEST
from balancemix.judge.stages import Stages
from balancemix.labels.table import Status
from balancemix.plan.plan import Plan
from balancemix.run import Run
from balancemix.training.devices import best_device
from balancemix.training.experiment import load_rows, view_of
from balancemix.training.features import features_of


class SpareStages(Stages):
    """Stages beside a data set, which a judgement does without where they cannot be kept."""

    @classmethod
    def beside(cls, data: Path) -> SpareStages:
        """Keep them where the features of images are kept; of a built-in set, keep none."""
        folder = folder_beside(data.expanduser()) if data.expanduser().exists() else None
        return cls(folder and folder / "judge")

    def save(self, name: str, key: bytes, tensors: Mapping[str, Tensor]) -> None:
        """Store a stage, or warn."""
        try:
            super().save(name, key, tensors)
        except OSError as error:
            reason = error.strerror or str(error)
            warnings.warn(f"{self.folder}: cannot be kept ({reason})", stacklevel=2)
            self.folder = None

    def remove(self) -> None:
        """Delete the stages, and the folders that are then empty."""
        super().remove()
        if self.folder is not None:
            with suppress(OSError):
                self.folder.parent.rmdir()


def judge_data(
    data: str,
    options: ReadOptions = ReadOptions(),
    plan: Plan | None = None,
    *,
    factors: Factors | None = None,
) -> Judged:
    """Judge the labels of a data set, read as `options` say; nothing is trained.

    Images are embedded by the backbone of the plan, and their features kept beside the data.
    `factors` are kept for another judgement of the same rows.
    """
    source, plan = read(data, options), plan or Plan()
    plan = replace(plan, data=replace(plan.data, path=data))
    return _judge(source, _labels_of(source), plan, factors)


def judge_run(run: Run, *, verified: bool = True, factors: Factors | None = None) -> Judged:
    """Judge the labels of a run's data as they are now, by the features of its backbone.

    If the run added noise, its training rows have the labels with noise, and their truth. A label
    that a person has verified since stays as it was verified; unless `verified` is false, which
    leaves out what people decided beside the data.
    """
    source, labels = labels_of_run(run, verified=verified)
    _say_changes(run, source)
    plan = run.plan  # it may have been trained on another machine
    return _judge(source, labels, replace(plan, train=replace(plan.train, device="auto")), factors)


def _say_changes(run: Run, source: Source) -> None:
    """Warn if features or files of images are not those that the run was trained or scored on."""
    path, content = run.plan.data.path, run.known_rows()
    if content is None:
        return
    rows = rows_of(source, view_of(run.plan, path))
    changed = [repr(name) for name in other_inputs(rows, content)]
    if changed:
        warnings.warn(
            f"{path}: inputs are not what they were for {run.path}: {listing(changed, 3)}; they "
            "are judged as they are now",
            stacklevel=3,
        )


class DataLabels(NamedTuple):
    """N×K labels to be judged; `before` people decided about some, see `judge`."""

    given: Tensor
    verified: Tensor | None
    before: Tensor | None
    truth: Tensor | None


def labels_of_run(run: Run, *, verified: bool = True) -> tuple[Source, DataLabels]:
    """Read the data of a run, and its labels with the noise that the run added, if any."""
    plan = run.plan
    options = replace(plan.data.reading(), verified=verified)
    source = load_rows(plan, plan.data.path, options=options).source
    if source is None or source.classes != run.classes:
        raise InputError(f"{plan.data.path}: its classes are no longer those of the run")
    if plan.noise != "none":
        return source, _with_noise_of(source, run)
    return source, _labels_of(source)


def _labels_of(source: Source) -> DataLabels:
    return DataLabels(source.given, source.verified, source.before, source.truth)


def places(source: Source, names: list[str]) -> Tensor:
    """Find the rows that a run was trained on among those of its data, by name."""
    place = {name: i for i, name in enumerate(source.names)}
    missing = next((name for name in names if name not in place), None)
    if missing is not None:
        raise InputError(
            f"{source.path}: row {missing!r}, which the run was trained on, is not found"
        )
    if len(place) == len(source):
        return torch.tensor([place[name] for name in names], dtype=torch.long)
    rows = source.rows_in("train")
    if [source.names[i] for i in rows] != names:
        raise InputError(f"{source.path}: its rows are not those of the run, and some share a name")
    return torch.tensor(rows, dtype=torch.long)


def _with_noise_of(source: Source, run: Run) -> DataLabels:
    """Give the training rows of a source the labels, with noise, that a run was trained on."""
    rows, table = places(source, run.names), run.table
    given, decided = source.given.clone(), source.verified
    given[rows] = table.given.to(given.dtype)
    truth = torch.full_like(given, -1)
    if source.truth is not None:
        truth.copy_(source.truth)
    if run.truth is not None:
        truth[rows] = run.truth.to(truth.dtype)
    verified = torch.zeros(given.shape, dtype=torch.bool)
    verified[rows] = table.status == Status.VERIFIED
    before = source.before
    if before is not None:
        before[rows] = table.given.to(before.dtype).masked_fill(verified[rows], -1)
    if decided is not None:
        given = torch.where(decided, source.given, given)
        verified |= decided
    return DataLabels(given, verified, before, truth)


def _judge(source: Source, labels: DataLabels, plan: Plan, factors: Factors | None) -> Judged:
    facts: dict[str, Any] = {
        "names": source.names,
        "classes": source.classes,
        "split": source.split,
        "source": source,
        "truth": labels.truth,
    }
    if len(source) < FEWEST:
        return judge_nothing(labels.given, labels.verified, **facts)
    features = features_of(rows_of(source, view_of(plan, plan.data.path)), plan)
    device = best_device(plan.train.device)
    facts |= {"groups": source.group_numbers, "device": device, "factors": factors}
    facts["stages"] = SpareStages.beside(Path(plan.data.path))
    facts |= {"verified": labels.verified, "before": labels.before}
    return judge_features(labels.given, features, **facts)
