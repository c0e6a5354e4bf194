"""fit(): the one training loop, for every method.

    method.start(labels)
    for each epoch:
        for x, index in batches (B uniform rows, and B by method.odds if it has any):
            method.loss(model, x, index).backward(); optimiser and schedule step
        method.end_epoch(predict(train, plain), predict(train, views))   # where it asks for them
        score(predict(valid)); log a line; save a checkpoint
    save weights, label table and metrics

With several processes (see docs/distributed.md) all run this, each on its share of every batch.
Every epoch draws from seeds of its own (order of rows, views, dropout), so an epoch repeated after
an interruption ends with the same bits, and no random state has to be stored but the method's.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from balancemix import processes
from balancemix.data.loading import Loader
from balancemix.data.rows import ImageRows, Rows
from balancemix.errors import InputError
from balancemix.evaluation.metrics import average_precision, evaluate
from balancemix.evaluation.selection import table_quality
from balancemix.labels.classes import Groups, class_counts, class_groups
from balancemix.labels.table import Labels, LabelTable
from balancemix.methods import Method
from balancemix.methods.sampling import epoch_seed, upsampling
from balancemix.plan.plan import Plan
from balancemix.progress import Progress, Silent
from balancemix.run import VERSION, Run, pack, refusal, unpack
from balancemix.training import pilot
from balancemix.training.engine import Engine
from balancemix.training.predict import predict, predict_logits

Metrics = dict[str, Any]


def fit(
    make_model: Callable[[], nn.Module],
    train: Rows,
    valid: Rows,
    plan: Plan | None = None,
    run: Run | None = None,
    progress: Progress | None = None,
) -> tuple[nn.Module, Metrics]:
    """Train the plan's method on `train`, scoring each epoch on `valid`; go on where `run` stopped.

    Returns the model (with averaged weights, if the plan asks for them) and what `metrics.json`
    holds. Without a `run` nothing is written.
    """
    plan, show = plan or Plan(), progress or Silent()
    processes.start(cpu=plan.train.device == "cpu")
    _compare(plan, train)
    epochs, size, workers = plan.train.epochs, plan.train.batch_size, loading_processes(plan, train)
    method = plan.method.start(train.labels, epochs, plan.seed)
    state, lines = run.stored() if run is not None else (None, [])
    if state is not None:
        show.advance(pilot.steps(train, plan))
    elif method.unsettled:
        method.settle(pilot.explore(make_model, train, plan, show))
    torch.manual_seed(plan.seed)
    engine = Engine(method.build(make_model), plan, run)
    truth = train.labels if train.truth is None else train.truth
    groups = class_groups(class_counts(truth), plan.data.groups)
    batches = method.batches(size, plan.seed)
    engine.schedule(epochs, len(batches))
    if state is not None:
        try:
            method.load_state_dict(state["method"])
            engine.load_state_dict(state)
        except (KeyError, TypeError) as error:
            raise refusal(run) from error
        lines = lines[: method.epoch]
        show.advance(method.epoch * len(batches))

    confidence: Tensor | None = None
    logits: Tensor | None = None
    while method.epoch < epochs:
        epoch, begin = method.epoch, time.perf_counter()
        seed = epoch_seed(plan.seed, epoch)
        torch.manual_seed(seed)
        order = Loader(train.with_views(method.views, seed), batches, workers)
        loss = _learn(engine, method, order, show, _shown(lines))
        engine.level()
        line: dict[str, Any] = {"epoch": epoch + 1, "loss": loss, "lr": engine.rate}

        scored = engine.averaged
        said = seen = None
        if epoch + 1 == epochs:
            said = confidence = predict(method.witness(scored), train.plain, size, workers=workers)
        if method.needs_confidence and (said is None or method.confidence_views):
            shown = train.with_views(method.confidence_views, seed)
            said = predict(method.witness(scored), shown, size, workers=workers)
        if method.needs_views:
            seen = predict(scored, train.with_views(2, seed), size, workers=workers)
        line |= method.end_epoch(said, seen)
        del said, seen  # N×K floats that nothing needs while a checkpoint is written
        _level(method)
        line |= _upsampling(method.odds, train.labels, groups)
        line["seconds"] = time.perf_counter() - begin
        logits = predict_logits(method.witness(scored), valid.plain, size, workers=workers)
        line |= _scores(logits, valid, groups, plan)
        line |= _selection(method.table, train.truth, groups)
        lines.append(line)
        engine.track(line)
        if run is not None and processes.rank() == 0:
            run.write_log(lines)
            run.save_checkpoint({"method": method.state_dict(), **engine.state_dict()})

    metrics = summarise(lines)
    if confidence is None or logits is None:  # resumed after the last epoch: only files are missing
        witness = method.witness(engine.averaged)  # as in an epoch: to the last bit
        confidence = predict(witness, train.plain, size, workers=workers)
        logits = predict_logits(witness, valid.plain, size, workers=workers)
    if run is not None and processes.rank() == 0:
        run.save_model(method.deliver(engine.weights()))
        run.write_arrays("labels.npz", _record(method.table.whole(), confidence, train))
        run.write_json("classes.json", _by_class(logits, train, valid, plan))
        run.write_json("metrics.json", metrics)
    engine.end()
    processes.wait_for_all()  # the files are there, whoever looks
    return engine.averaged, metrics


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
    of_all = processes.sum_over_processes(torch.tensor(total, dtype=torch.float64))
    return float(of_all) / processes.world() / steps


def summarise(lines: list[dict[str, Any]]) -> Metrics:
    """Reduce a log to last and best scores, quality of the selection, and time."""
    scores = [key for key in lines[-1] if key.startswith(("mAP", "C", "O"))]
    best = max(lines, key=lambda line: line["mAP"])
    seconds = sorted(line["seconds"] for line in lines)
    return {
        "last": {key: lines[-1][key] for key in scores},
        "best": {"epoch": best["epoch"], **{key: best[key] for key in scores if key in best}},
        "selection": lines[-1].get("selection", {}),
        "epochs": len(lines),
        "seconds_per_epoch": seconds[len(seconds) // 2],
    }


def _scores(said: Tensor, valid: Rows, groups: Groups, plan: Plan) -> dict[str, float]:
    """Score the model's own K columns and, where a method trains several models, their mean."""
    truth = valid.labels if valid.truth is None else valid.truth
    each = said.view(len(said), -1, len(valid.classes)).unbind(1)

    def score(logits: Tensor) -> dict[str, float]:
        return evaluate(logits, truth, groups, convention=plan.train.ap, classes=valid.classes)

    if len(each) == 1:
        return score(said)
    together = torch.stack(each).double().sigmoid().mean(0)
    return {**score(each[0]), "mAP_ensemble": score(together.logit())["mAP"]}


def _by_class(said: Tensor, train: Rows, valid: Rows, plan: Plan) -> dict[str, Any]:
    """Score each class: its name, given positives in training, and AP in percent, if it has one."""
    truth = valid.labels if valid.truth is None else valid.truth
    each = average_precision(said[:, : len(valid.classes)], truth, plan.train.ap)
    facts = zip(valid.classes, class_counts(train.labels).tolist(), each.tolist(), strict=True)
    keys = ("name", "positives", "AP")
    scored = [(name, count, None if math.isnan(ap) else 100 * ap) for name, count, ap in facts]
    return {"classes": [dict(zip(keys, fact, strict=True)) for fact in scored]}


def _selection(
    table: LabelTable, truth: Tensor | None, groups: Groups
) -> dict[str, dict[str, float]]:
    """Score the label table against the truth, which no method ever sees."""
    return {} if truth is None else {"selection": table_quality(table, truth, groups)}


def _upsampling(odds: Tensor | None, labels: Tensor, groups: Groups) -> dict[str, float]:
    """Say how many times as often as at random the minority sampler draws each class group."""
    if odds is None:
        return {}
    factor = upsampling(labels, odds)
    means = {name: factor[index].nanmean() for name, index in groups.items() if len(index)}
    return {f"upsampling_{name}": float(mean) for name, mean in means.items()}


def _record(labels: Labels, confidence: Tensor, train: Rows) -> dict[str, Any]:
    """Collect what labels.npz holds; of several witnesses' confidence, the model's own."""
    arrays: dict[str, Any] = {name: tensor.numpy() for name, tensor in labels._asdict().items()}
    return {
        "version": VERSION,
        **arrays,
        "confidence": confidence[:, : len(train.classes)].numpy(),
        "classes": list(train.classes),
        "names": list(train.names),
    }


def _compare(plan: Plan, train: Rows) -> None:
    """Refuse to train where the processes, maybe on other machines, were given other things."""
    if processes.world() == 1:
        return
    if not processes.agreed(repr(plan.tree()).encode(), train.labels):
        raise InputError("the processes differ in their settings or labels: give all the same")


def _level(method: Method) -> None:
    """Make the method's state the first process's, should processors have rounded differently."""
    if processes.world() > 1:
        state = method.state_dict()
        if not processes.agreed(*_contents(state)):
            method.load_state_dict(unpack(processes.from_first(pack(state)) or b""))


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
    """Count the loading processes: images are worth some, features none."""
    if plan.data.workers is not None:
        return plan.data.workers
    if not isinstance(rows, ImageRows):
        return 0
    cores = (os.cpu_count() or 2) // processes.neighbours()
    on_cpu = plan.train.device == "cpu" or not torch.accelerator.is_available()
    if on_cpu and rows.store.keeps:
        # To vary a kept image takes 0.5 ms of a core, to train the smallest backbone on it 30 to 40
        # (128 pixels), and a loading process its start and its batches copied besides. So one
        # should pay from about eight cores on: an estimate from those times, not tried there.
        return min(cores // 8, 8)
    return min(max(cores - 1, 1), 8)
