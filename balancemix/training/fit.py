"""fit(): the one training loop, for every method.

    method.start(given labels)
    for each epoch:
        for x, index in batches (B uniform rows, and B by method.odds if it has any):
            method.loss(model, x, index).backward(); optimiser and schedule step
        method.end_epoch(predict(train), …)                    # the passes that it asks for
        score(predict(valid)); log a line; save a checkpoint
    save weights, label table and metrics

With several processes (see docs/distributed.md) all run this, each on its share of every batch.
Every epoch draws from seeds of its own (order of rows, views, dropout), so an epoch repeated after
an interruption ends with the same bits, and no random state has to be stored but the method's.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from balancemix import processes
from balancemix.data.loading import Loader, workers_for
from balancemix.data.rows import Rows
from balancemix.errors import InputError
from balancemix.evaluation.scoring import (
    Metrics,
    score_classes,
    score_epoch,
    score_sampling,
    summarise,
)
from balancemix.labels.classes import class_counts, class_groups
from balancemix.labels.table import Labels
from balancemix.methods import Method
from balancemix.methods.sampling import epoch_seed
from balancemix.plan.plan import Plan
from balancemix.progress import Progress, Silent
from balancemix.run import VERSION, Run, pack, refusal, unpack
from balancemix.training.engine import Engine
from balancemix.training.predict import predict, predict_logits


class Trained(NamedTuple):
    """What a training ends with: the model, the method with its label table, and the scores."""

    model: nn.Module
    method: Method
    metrics: Metrics


def fit(
    make_model: Callable[[], nn.Module],
    train: Rows,
    valid: Rows,
    plan: Plan | None = None,
    run: Run | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train the plan's method on `train`, scoring each epoch on `valid`; go on where `run` stopped.

    The model has averaged weights, if the plan asks for them; metrics are what `metrics.json`
    holds. The plan's own method stays as it is: a copy of it is trained and returned. Settings left
    at "auto" are their defaults here (ε 0.975, given positives not trusted); it is
    `Experiment.fit` that looks at the labels first. Without a `run` nothing is written.
    """
    plan, show = plan or Plan(), progress or Silent()
    processes.start(cpu=plan.train.device == "cpu")
    _compare(plan, train)
    epochs, workers = plan.train.epochs, loading_processes(plan, train)
    method = copy.copy(plan.method).start(train.given, epochs, plan.seed)
    torch.manual_seed(plan.seed)
    engine = Engine(method.build(make_model), plan, run)
    truth = train.given if train.truth is None else train.truth
    groups = class_groups(class_counts(truth), plan.data.groups)
    batches = method.batches(plan.train.batch_size, plan.seed)
    engine.schedule(epochs, len(batches))
    log = _resume(run, method, engine)
    show.advance(method.epoch * len(batches))
    how: dict[str, Any] = {"batch_size": plan.train.batch_size, "workers": workers}

    plain: Tensor | None = None
    logits: list[Tensor] = []
    while method.epoch < epochs:
        begin, request = time.perf_counter(), method.request()
        seed = epoch_seed(plan.seed, method.epoch)
        torch.manual_seed(seed)
        order = Loader(train.with_views(request.views, seed), batches, workers)
        loss = _learn(engine, method, order, show, _shown(log))
        engine.level()
        line: dict[str, Any] = {"epoch": method.epoch + 1, "loss": loss, "lr": engine.rate}

        members = method.members(engine.averaged)
        views = [train.with_views(count, seed) for count in request.passes]
        passes = [predict(member, rows, **how) for member in members for rows in views]
        line |= method.end_epoch(*passes)
        plain = passes[0] if method.epoch == epochs and request.passes[:1] == (0,) else None
        del passes  # N×K floats that nothing needs while a checkpoint is written
        _level(method)
        line |= score_sampling(method, groups)
        line["seconds"] = time.perf_counter() - begin
        logits = [predict_logits(member, valid.plain, **how) for member in members]
        line |= score_epoch(method, logits, train, valid, groups, plan.train.ap)
        log.append(line)
        engine.track(line)
        if run is not None and processes.rank() == 0:
            run.write_log(log)
            run.save_checkpoint({"method": method.state_dict(), **engine.state_dict()})

    metrics, kept = summarise(log), method.members(engine.averaged)[0]
    if run is not None:
        plain = predict(kept, train.plain, **how) if plain is None else plain
        # There are none where a run is resumed after its last epoch, and only files are missing.
        last = logits[0] if logits else predict_logits(kept, valid.plain, **how)
        if processes.rank() == 0:
            run.save_model(kept.state_dict())
            run.write_arrays("labels.npz", _record(method.table.whole(), plain, train))
            run.write_json("classes.json", score_classes(last, train, valid, plan.train.ap))
            run.write_json("metrics.json", metrics)
    engine.end()
    processes.barrier()  # the files are there, whoever looks
    return Trained(engine.averaged, method, metrics)


def _resume(run: Run | None, method: Method, engine: Engine) -> list[dict[str, Any]]:
    """Put method and engine where the run stopped, and return its log up to there."""
    state, log = run.stored() if run is not None else (None, [])
    if state is None:
        return []
    try:
        method.load_state_dict(state["method"])
        engine.load_state_dict(state)
    except (KeyError, TypeError) as error:
        raise refusal(run) from error
    return log[: method.epoch]


def _learn(
    engine: Engine,
    method: Method,
    order: Loader,
    show: Progress,
    shown: dict[str, float],
) -> float:
    """Train for an epoch and return its mean loss."""
    total, steps = 0.0, len(order)
    engine.model.train()
    for step, (x, index) in enumerate(order, 1):
        loss = method.loss(engine.model, engine.place(x), index)
        total += engine.step(loss, last=step == steps)
        if not math.isfinite(total):
            raise InputError(
                f"the loss of epoch {method.epoch + 1} is not finite: lower --lr or set --clip"
            )
        show.advance()
        show.say(loss=total / step, **shown)
    of_all = processes.all_reduce(torch.tensor(total, dtype=torch.float64))
    return float(of_all) / processes.world_size() / steps


def _record(labels: Labels, confidence: Tensor, train: Rows) -> dict[str, Any]:
    """Collect what labels.npz holds."""
    arrays: dict[str, Any] = {name: tensor.numpy() for name, tensor in labels._asdict().items()}
    return {
        "version": VERSION,
        **arrays,
        "confidence": confidence.numpy(),
        "classes": list(train.classes),
        "names": list(train.names),
    }


def _compare(plan: Plan, train: Rows) -> None:
    """Refuse to train where the processes, maybe on other machines, were given other things."""
    if processes.world_size() == 1:
        return
    if not processes.all_equal(repr(plan.tree()).encode(), train.given):
        raise InputError("the processes differ in their settings or labels: give all the same")


def _level(method: Method) -> None:
    """Make the method's state the first process's, should processors have rounded differently."""
    if processes.world_size() > 1:
        state = method.state_dict()
        if not processes.all_equal(*_contents(state)):
            method.load_state_dict(unpack(processes.broadcast(pack(state)) or b""))


def _contents(state: Any) -> Iterator[bytes | Tensor]:
    """List all that is in a state, piece by piece: packed, it would be as large again."""
    if isinstance(state, Mapping):
        for key, value in state.items():
            yield repr(key).encode()
            yield from _contents(value)
    else:
        yield state if isinstance(state, Tensor) else repr(state).encode()


def _shown(lines: list[dict[str, Any]]) -> dict[str, float]:
    return {"epoch": len(lines), "mAP": lines[-1]["mAP"]} if lines else {}


def loading_processes(plan: Plan, rows: Rows) -> int:
    """Count the loading processes that the plan asks for, or that suit the rows and the machine."""
    on_cpu = plan.train.device == "cpu" or not torch.accelerator.is_available()
    local = processes.local_world_size()
    return workers_for(rows, plan.data.workers, on_cpu=on_cpu, processes=local)
