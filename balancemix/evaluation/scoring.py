"""The scores of an epoch, and a run's metrics."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from balancemix.data.rows import Rows
from balancemix.evaluation.metrics import Convention, average_precision, evaluate
from balancemix.evaluation.selection import table_quality
from balancemix.labels.classes import NAMES, Groups, class_counts
from balancemix.methods import Method
from balancemix.methods.sampling import upsampling

Metrics = dict[str, Any]
SCORES = ("mAP", "CF1", "CP", "CR", "OF1", "OP", "OR")  # and each by group or kind: "mAP_few"


def score_epoch(
    method: Method,
    logits: Sequence[Tensor],
    train: Rows,
    valid: Rows,
    groups: Groups,
    convention: Convention,
) -> dict[str, Any]:
    """Score the first member's logits on `valid`, the mean of all members, and the label table."""
    truth = valid.given if valid.truth is None else valid.truth

    def score(each: Tensor) -> dict[str, float]:
        return evaluate(truth, each, groups, convention=convention, classes=valid.classes)

    line: dict[str, Any] = score(logits[0])
    if len(logits) > 1:
        mean = torch.stack(list(logits)).double().sigmoid().mean(0)
        line["mAP_ensemble"] = score(mean.logit())["mAP"]
    if train.truth is not None:  # which no method ever sees
        line["selection"] = table_quality(method.table, train.truth, groups)
    return line


def score_sampling(method: Method, groups: Groups) -> dict[str, float]:
    """Compute how many times more often than at random each class group is drawn."""
    if method.odds is None:
        return {}
    factor = upsampling(method.table.given, method.odds)
    means = {name: factor[index].nanmean() for name, index in groups.items() if len(index)}
    return {f"upsampling_{name}": float(mean) for name, mean in means.items()}


def score_classes(
    logits: Tensor, train: Rows, valid: Rows, convention: Convention
) -> dict[str, Any]:
    """Score each class: its name, given positives in training, and AP in percent, if it has one."""
    truth = valid.given if valid.truth is None else valid.truth
    each = average_precision(truth, logits, convention)
    facts = zip(valid.classes, class_counts(train.given).tolist(), each.tolist(), strict=True)
    keys = ("name", "positives", "AP")
    scored = [(name, count, None if math.isnan(ap) else 100 * ap) for name, count, ap in facts]
    return {"classes": [dict(zip(keys, fact, strict=True)) for fact in scored]}


def summarise(lines: Sequence[dict[str, Any]]) -> Metrics:
    """Reduce a log to last and best scores, quality of the selection, and time.

    >>> log = [{"epoch": 1, "mAP": 60.0, "seconds": 1.0}, {"epoch": 2, "mAP": 50.0, "seconds": 1.0}]
    >>> summarise(log)["best"], summarise(log)["last"]
    ({'epoch': 1, 'mAP': 60.0}, {'mAP': 50.0})
    """
    scores = [key for key in lines[-1] if key.partition("_")[0] in SCORES]
    best = max(lines, key=lambda line: line["mAP"])
    seconds = sorted(line["seconds"] for line in lines)
    return {
        "last": {key: lines[-1][key] for key in scores},
        "best": {"epoch": best["epoch"], **{key: best[key] for key in scores if key in best}},
        "selection": lines[-1].get("selection", {}),
        "epochs": len(lines),
        "seconds_per_epoch": seconds[len(seconds) // 2],
    }


def headline(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    """Pick the scores that tables show: last and best mAP, and the last one of each class group.

    >>> headline({"last": {"mAP": 50.0, "mAP_few": 40.0}, "best": {"mAP": 60.0}})
    {'last mAP': 50.0, 'best': 60.0, 'many': None, 'medium': None, 'few': 40.0}
    """
    last = metrics["last"]
    groups = {name: last.get(f"mAP_{name}") for name in NAMES}
    return {"last mAP": last["mAP"], "best": metrics["best"]["mAP"], **groups}
