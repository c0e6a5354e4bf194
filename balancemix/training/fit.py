"""fit(): the one training loop, for every method; Algorithm 1 plus evaluation, log and checkpoint.

With several processes (see docs/distributed.md) each runs this loop on its share of every batch.
Every epoch draws from seeds of its own (order of rows, views, dropout), so an epoch repeated after
an interruption ends with the same bits, and only the method's random state has to be stored.
"""

from __future__ import annotations

import copy
import io
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from balancemix import processes
from balancemix.checkpoints import Log, unpack
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
from balancemix.labels.classes import Groups, class_counts, class_groups
from balancemix.methods import Method
from balancemix.methods.sampling import epoch_seed
from balancemix.plan.plan import Plan
from balancemix.progress import Progress, Silent
from balancemix.run import Run
from balancemix.training.engine import Engine
from balancemix.training.predict import predict, predict_logits


class Trained(NamedTuple):
    """The result of a training: the model, the method with its label table, and the scores."""

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
    """Train the plan's method on `train`, scoring each epoch on `valid`; resume an unfinished run.

    The model has averaged weights, if the plan asks for them. The plan's method stays as it is: a
    copy of it is trained and returned. Settings left at "auto" take their defaults (ε 0.975, given
    positives not trusted); `Experiment.fit` looks at the labels first. Without a `run` nothing is
    written.
    """
    plan, show = plan or Plan(), progress or Silent()
    processes.start(cpu=plan.train.device == "cpu")
    check_alike(plan, train)
    epochs, groups = plan.train.epochs, true_groups(train, plan)
    method = started(plan, train, epochs)  # Alg. 1, line 1
    torch.manual_seed(plan.seed)
    engine = Engine(method.build(make_model), plan, run)
    batches = method.batches(plan.train.batch_size, plan.seed)
    engine.schedule(epochs, len(batches))
    log = run.restore(method, engine) if run is not None else []
    show.advance(method.epoch * len(batches))
    how: dict[str, Any] = {
        "batch_size": plan.train.batch_size,
        "workers": loading_processes(plan, train),
    }
    plain: Tensor | None = None
    logits: list[Tensor] = []
    while method.epoch < epochs:  # line 2
        start, request = time.perf_counter(), method.request()
        seed = epoch_seed(plan.seed, method.epoch)
        torch.manual_seed(seed)
        loader = Loader(train.with_views(request.views, seed), batches, how["workers"])
        loss = _train_epoch(engine, method, loader, log, show)  # lines 3 to 15
        engine.synchronise()
        line: dict[str, Any] = {"epoch": method.epoch + 1, "loss": loss, "lr": engine.rate}
        members = method.members(engine.averaged)
        views = [train.with_views(count, seed) for count in request.passes]
        passes = [predict(member, rows, **how) for member in members for rows in views]
        line |= method.end_epoch(*passes)  # lines 17 and 18
        plain = passes[0] if method.epoch == epochs and request.passes[:1] == (0,) else None
        del passes  # N×K floats that nothing needs while a checkpoint is written
        _synchronise(method)
        line |= score_sampling(method, groups)
        line["seconds"] = time.perf_counter() - start
        logits = [predict_logits(member, valid.plain, **how) for member in members]
        log.append(line | score_epoch(method, logits, train, valid, groups, plan.train.ap))
        engine.track(log[-1])
        if run is not None and processes.rank() == 0:
            run.save_epoch(log, method, engine)
    members = method.members(engine.averaged)
    model = members[0]
    whole = model if len(members) == 1 else engine.averaged
    trained = Trained(whole, method, summarise(log))
    if run is not None:
        # A run resumed after its last epoch, for its missing files, has no predictions yet.
        plain = predict(model, train.plain, **how) if plain is None else plain
        logits = logits or [predict_logits(model, valid.plain, **how)]
        per_class = score_classes(logits[0], train, valid, plan.train.ap)
        if processes.rank() == 0:
            run.save_result(method, model, train, plain, per_class, log, trained.metrics)
    engine.end()
    processes.barrier()  # from here on every process finds the files
    return trained


def started(plan: Plan, train: Rows, epochs: int) -> Method:
    """Start a copy of the plan's method on rows; it is told of verified labels if there are any."""
    method = copy.copy(plan.method)
    if train.verified is None:  # so that a method of somebody's own need not know of them
        return method.start(train.given, epochs, plan.seed)
    return method.start(train.given, epochs, plan.seed, train.verified)


def true_groups(train: Rows, plan: Plan) -> Groups:
    """Group the classes by their true positives in training, where these are known."""
    truth = train.given if train.truth is None else train.truth
    return class_groups(class_counts(truth), plan.data.groups)


def _train_epoch(engine: Engine, method: Method, loader: Loader, log: Log, show: Progress) -> float:
    """Train for an epoch and return its mean loss."""
    total, steps = 0.0, len(loader)
    facts = {"epoch": len(log), "mAP": log[-1]["mAP"]} if log else {}
    engine.model.train()
    for step, (x, index) in enumerate(loader, 1):
        loss = method.loss(engine.model, engine.place(x), index)
        total += engine.step(loss, last=step == steps)
        if not math.isfinite(total):
            raise InputError(
                f"the loss of epoch {method.epoch + 1} is not finite: lower --lr or set --clip"
            )
        show.advance()
        show.say(loss=total / step, **facts)
    total = float(processes.all_reduce(torch.tensor(total, dtype=torch.float64)))
    return total / processes.world_size() / steps


def check_alike(plan: Plan, train: Rows) -> None:
    """Refuse to train if processes, maybe on other machines, have other settings or labels."""
    verified = b"" if train.verified is None else train.verified
    if processes.world_size() > 1 and not processes.all_equal(
        repr(plan.tree()).encode(), train.given, verified
    ):
        raise InputError("the processes differ in their settings or labels: give all the same")


def _synchronise(method: Method) -> None:
    """Give all processes the first one's state, in case their processors rounded differently."""
    if processes.world_size() > 1:
        state = method.state_dict()
        if not processes.all_equal(*_contents(state)):
            packed = io.BytesIO()
            torch.save(state, packed)
            method.load_state_dict(unpack(processes.broadcast(packed.getvalue()) or b""))


def _contents(state: Any) -> Iterator[bytes | Tensor]:
    """List the contents of a state piece by piece: packed, they would take their size again."""
    if isinstance(state, Mapping):
        for key, value in state.items():
            yield repr(key).encode()
            yield from _contents(value)
    else:
        yield state if isinstance(state, Tensor) else repr(state).encode()


def loading_processes(plan: Plan, rows: Rows) -> int:
    """Count the loading processes that the plan asks for, or that suit the rows and the machine."""
    on_cpu = plan.train.device == "cpu" or not torch.accelerator.is_available()
    local = processes.local_world_size()
    return workers_for(rows, plan.data.workers, on_cpu=on_cpu, processes=local)
