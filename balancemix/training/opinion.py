"""Ask the judge about the training labels, once: a run keeps the answer, all processes share it."""

from __future__ import annotations

import dataclasses
import io
import warnings
from contextlib import suppress
from typing import Any

import numpy as np

from balancemix import processes
from balancemix.data import FeatureRows, Rows
from balancemix.errors import DamagedFile
from balancemix.judge.factor import Kernel
from balancemix.judge.opinion import Opinion, judge
from balancemix.judge.ridge import Ridge
from balancemix.judge.stages import Stages
from balancemix.plan.plan import Plan
from balancemix.run import Run
from balancemix.training.devices import best_device
from balancemix.training.features import features_of


def informed(plan: Plan, train: Rows, run: Run | None = None) -> Plan:
    """Replace the plan's method by one that knows the judge's opinion, if it needs one.

    The judge sees nothing but the features and given labels of `train`. A resumed run reads the
    opinion that it stored; where that is missing, the judge is asked again.
    """
    if not plan.method.needs_opinion:
        return plan
    processes.start(cpu=plan.train.device == "cpu")
    content = _stored(run, train) if run is not None else None
    solves = isinstance(train, FeatureRows) or plan.method.closed
    stages = Stages(None) if run is None else run.stages
    ridge = make_ridge(plan, train, stages) if content is None or solves else None
    if content is None:
        assert ridge is not None
        opinion = judge(
            train.given, ridge, verified=train.verified, before=train.before, seed=plan.seed
        )
        arrays = opinion.arrays()
        if run is not None and processes.rank() == 0:
            run.write_arrays("judge", arrays)
        # As a file it is rounded: a resumed run, and every process, must learn the same targets.
        content = processes.broadcast(_packed(arrays)) or b""
    stages.remove()
    opinion = _unpacked(content)
    method = plan.method.informed_by(opinion, ridge if solves else None)
    return dataclasses.replace(plan, method=method)


def make_ridge(plan: Plan, rows: Rows, stages: Stages | None = None) -> Ridge:
    """Factor the features of rows; those of images come from the frozen backbone."""
    form = plan.method.closed_form
    kernel: Kernel = form.kernel if form else "rbf"  # the judge's, where a network is trained
    device = best_device(plan.train.device)
    features = features_of(rows, plan)
    return Ridge.of(
        features, kernel=kernel, groups=rows.groups, seed=plan.seed, device=device, stages=stages
    )


def _stored(run: Run, train: Rows) -> bytes | None:
    """Read the opinion that a run stored of these rows, and send it to all processes."""
    opinion = None
    if processes.rank() == 0:
        with suppress(DamagedFile):
            opinion = run.opinion
        if opinion is not None and opinion.score.shape != train.given.shape:
            opinion = None
        if opinion is None and run.has("judge"):
            path = run.path_of("judge")
            warnings.warn(f"{path}: is damaged; the judge is asked again", stacklevel=3)
    return processes.broadcast(None if opinion is None else _packed(opinion.arrays()))


def _packed(arrays: dict[str, Any]) -> bytes:
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    return packed.getvalue()


def _unpacked(content: bytes) -> Opinion:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return Opinion.from_arrays(dict(arrays))
