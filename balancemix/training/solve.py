"""solve(): the sibling of `fit` for methods in closed form; one epoch, in which all is solved."""

from __future__ import annotations

import time
from typing import Any

from balancemix import processes
from balancemix.data import Rows
from balancemix.evaluation.scoring import score_classes, score_epoch, summarise
from balancemix.judge.ridge import Ridge
from balancemix.methods.closed_form import solve_targets
from balancemix.plan.plan import Plan
from balancemix.run import Run
from balancemix.training.devices import best_device, check_device
from balancemix.training.fit import (
    Trained,
    check_alike,
    loading_processes,
    started,
    true_groups,
)
from balancemix.training.models import on_rows
from balancemix.training.opinion import make_ridge
from balancemix.training.predict import predict_logits


def solve(
    train: Rows,
    valid: Rows,
    plan: Plan,
    run: Run | None = None,
    ridge: Ridge | None = None,
) -> Trained:
    """Solve the plan's method for the labels of `train`, and score it on `valid`.

    The confidence that a run stores is leave-one-out: that of each row by the others. Without a
    `run` nothing is written.
    """
    check_device(plan.train.device)
    processes.start(cpu=plan.train.device == "cpu")
    check_alike(plan, train)
    start = time.perf_counter()
    method = started(plan, train, 1)
    form = method.closed_form
    assert form is not None  # a method that is trained goes to `fit`
    ridge = ridge or form.ridge or make_ridge(plan, train)
    target, weight = method.table.rows(slice(None))
    machine, penalty, confidence = solve_targets(ridge, target, weight > 0, form.penalty)
    line: dict[str, Any] = {"epoch": 1, "penalty": penalty.best}
    if penalty.grid:
        errors = zip(penalty.grid, penalty.errors, strict=True)
        line["leave_one_out"] = {f"{value:g}": error for value, error in errors}
    line |= method.end_epoch()
    line["seconds"] = time.perf_counter() - start
    model = on_rows(machine, plan, train, pretrained=plan.model.pretrained)
    model = model.to(best_device(plan.train.device))
    workers = loading_processes(plan, train)
    logits = predict_logits(model, valid.plain, plan.train.batch_size, workers=workers)
    scores = score_epoch(method, [logits], train, valid, true_groups(train, plan), plan.train.ap)
    log = [line | scores]
    trained = Trained(model, method, summarise(log))
    if run is not None and processes.rank() == 0:
        per_class = score_classes(logits, train, valid, plan.train.ap)
        run.save_result(method, model, train, confidence, per_class, log, trained.metrics)
    processes.barrier()  # from here on every process finds the files
    return trained
