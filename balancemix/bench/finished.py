"""Finished: which jobs of a bench the ledger knows, and entries for the runs that it does not.

A job is known by its settings and by the content of its data, wherever its file is. Settings are
compared with every default written out: a changed default is another run, a new setting takes its
default in older entries. Methods that are not part of balancemix are left out, since their code can
change unnoticed. Who changes what one of ours computes deletes its lines.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import balancemix
from balancemix.bench.ledger import Entry, Ledger
from balancemix.bench.plan import Job, data_slug
from balancemix.bench.pool import advise
from balancemix.data import BUILT_IN
from balancemix.data.fingerprint import fingerprint
from balancemix.errors import InputError
from balancemix.labels.stored import stored_labels
from balancemix.plan.plan import Plan
from balancemix.run import Run
from balancemix.training.experiment import load_rows

# Settings that change no score: where the data is, and how it is read and shown.
IDLE = {"data": ("path", "workers", "cache"), "train": ("track",)}
SCORES = ("mAP", "CF1_mean", "OF1")  # and the mAP of each class group


class Content(NamedTuple):
    """What the rows of a job are, by arrays as `fingerprint` makes them, and a digest of these."""

    arrays: dict[str, Any]
    digest: str


class Finished:
    """The jobs that a ledger knows; `bench` is the name of the plan they belong to."""

    def __init__(self, ledger: Ledger, bench: str) -> None:
        self.ledger, self.bench = ledger, bench
        self._contents: dict[str, Content | None] = {}
        self._entries: dict[str, list[Entry]] = {}
        for entry in ledger.entries:
            self._index(entry)

    def find(self, job: Job) -> Entry | None:
        """Find the entry of a job; where its data is missing, by the data's name."""
        entries = self._entries.get(_key(job.sections), [])
        if not entries or not _is_ours(job):
            return None
        content = self._content(job)
        if content is None:
            named = (entry for entry in entries if entry.data == data_slug(job.data))
            return next(named, None)
        return next((entry for entry in entries if entry.fingerprint == content.digest), None)

    def enter(
        self, job: Job, run: Run, *, trained: bool = False, seconds: float | None = None
    ) -> None:
        """Add the entry of a finished run, unless there is one or the data to compare is missing.

        `trained` says that it ended just now, with the versions that are installed; `seconds` is
        how long it took, if it was trained in one go.
        """
        if not _is_ours(job) or self.find(job) is not None:
            return
        content = self._content(job)
        if content is None:
            return
        try:
            _check_run(job, run, content)
            metrics, class_ap, log = run.metrics, run.class_ap or [], run.log
            choice = run.choice
        except InputError as error:
            raise InputError(advise(error, run.path)) from error
        times = {
            "total": seconds,
            "epochs": sum(line.get("seconds", 0.0) for line in log),
            "epoch": metrics.get("seconds_per_epoch"),
        }
        entry = Entry(
            bench=self.bench,
            label=job.variant.label,
            data=data_slug(job.data),
            fingerprint=content.digest,
            plan=_effective(run.plan.tree()),
            versions=_versions() if trained else {},
            chosen=choice.chosen if choice else "",
            candidates={k: round(v, 4) for k, v in choice.scores.items()} if choice else {},
            last=_scores(metrics["last"]),
            best=_scores(metrics["best"]),
            class_ap=[round(value, 2) for value in class_ap],
            seconds={k: float("nan") if v is None else round(v, 2) for k, v in times.items()},
        )
        self.ledger.append(entry)
        self._index(entry)

    def _index(self, entry: Entry) -> None:
        try:
            plan = Plan.from_tree(entry.plan, imports=False).tree()
        except InputError:  # of another version, with settings or methods that are gone
            return
        self._entries.setdefault(_key(plan), []).append(entry)

    def _content(self, job: Job) -> Content | None:
        """Read the data of a job, which may depend on its seed; None if it is missing."""
        key = json.dumps([job.sections["data"], job.seed], sort_keys=True)
        if key not in self._contents:
            exists = job.data in BUILT_IN or Path(job.data).expanduser().exists()
            self._contents[key] = _read_content(job.plan) if exists else None
        return self._contents[key]


def _is_ours(job: Job) -> bool:
    return ":" not in job.variant.name


def _effective(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the settings that change no score."""
    return {
        name: {key: value for key, value in section.items() if key not in IDLE.get(name, ())}
        if isinstance(section, Mapping)
        else section
        for name, section in sections.items()
    }


def _key(sections: Mapping[str, Any]) -> str:
    return json.dumps(_effective(sections), sort_keys=True)


def _read_content(plan: Plan) -> Content:
    """Read the rows of a plan before noise, with truth and groups, on which scores depend too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # training will give them
        splits = load_rows(plan, plan.data.path)
    arrays: dict[str, Any] = {}
    for split, rows in (("train", splits.train), ("test", splits.test)):
        facts = {name: array for name, array in fingerprint(rows).items() if name != "dates"}
        if rows.truth is not None:
            facts["truth"] = stored_labels(rows.truth)
        if rows.groups is not None:
            facts["groups"] = rows.groups.numpy()
        arrays |= {f"{split}_{name}": array for name, array in facts.items()}
    digest = hashlib.sha256()
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return Content(arrays, digest.hexdigest())


def _check_run(job: Job, run: Run, content: Content) -> None:
    """Refuse a run of other settings or data than its job's."""
    if _key(run.plan.tree()) != _key(job.sections):
        idle = tuple(f"{section}.{key} " for section, keys in IDLE.items() for key in keys)
        changes = [text for text in run.plan.changes(job.plan) if not text.startswith(idle)]
        raise InputError(f"{run.path}: was trained with another plan ({'; '.join(changes)})")
    known = run.known_rows()
    if known is None:
        raise InputError(f"{run.path}: does not say which data it was trained on")
    with np.load(io.BytesIO(known), allow_pickle=False) as kept:
        verified = {"train_verified", "test_verified"}  # neither file has them if there are none
        changed = verified & set(kept) != verified & set(content.arrays)
        for name, array in kept.items():
            changed |= name in content.arrays and not np.array_equal(content.arrays[name], array)
    if changed:
        raise InputError(f"{run.path}: was trained on other data than {job.data} is now")


def _scores(scores: Mapping[str, float]) -> dict[str, float]:
    kept = (key for key in scores if key in ("epoch", *SCORES) or key.startswith("mAP_"))
    return {key: round(scores[key], 4) for key in kept}


def _versions() -> dict[str, str]:
    return {
        "balancemix": balancemix.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
