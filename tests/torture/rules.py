"""Which values each setting may have, written down by hand from `balancemix train --help`."""

import math
from collections.abc import Callable
from typing import Any

from tests.torture.outcome import RefusedError

Rule = Callable[[Any], bool]
MOST = 2**31  # whole numbers are less


def whole(least: int) -> Rule:
    """Allow whole numbers from `least`."""
    return lambda value: type(value) is int and least <= value < MOST


def number(least: float, below: float = math.inf) -> Rule:
    """Allow numbers from `least`, and less than `below`."""
    kinds = (int, float)
    return lambda value: (
        type(value) in kinds and least <= value < below and (type(value) is float or value < MOST)
    )


def words(*known: Any) -> Rule:
    """Allow some words."""
    return lambda value: any(value is each or value == each for each in known if each is not True)


def either(*rules: Rule) -> Rule:
    """Allow what one of the rules does."""
    return lambda value: any(rule(value) for rule in rules)


def truth(value: Any) -> bool:
    """Allow true and false."""
    return isinstance(value, bool)


def text(value: Any) -> bool:
    """Allow text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def above_zero(value: Any) -> bool:
    """Allow shares between 0 and 1, both excluded."""
    return number(0, 1)(value) and value > 0


nothing = words(None, "none")
RULES: dict[str, Rule] = {
    "seed": whole(0),
    "data.path": text,
    "data.size": whole(1),
    "data.augment": words("randaugment", "uda", "none"),
    "data.cache": words("auto", "memory", "disk", "off"),
    "data.feature_dropout": number(0, 1),
    "data.feature_noise": number(0),
    "data.vary_stored": truth,
    "data.holdout": above_zero,
    "data.score": words("test", "held-out"),
    "data.groups": words("auto", "paper"),
    "data.skip_bad": truth,
    "data.unannotated": words("drop", "keep"),
    "data.difficult": words("ignore", "negative"),
    "data.workers": either(nothing, whole(0)),
    "model.backbone": text,
    "model.head": either(nothing, words("linear", "mlp", "ml-decoder", "query2label")),
    "model.pretrained": truth,
    "model.hidden": whole(1),
    "model.dropout": number(0, 1),
    "train.epochs": whole(1),
    "train.batch_size": whole(1),
    "train.optimizer": words("sgd", "adamw"),
    "train.lr": number(0),
    "train.momentum": number(0),
    "train.weight_decay": number(0),
    "train.schedule": words("cosine", "constant"),
    "train.clip": number(0),
    "train.accumulate": whole(1),
    "train.ema": number(0, 1),
    "train.precision": words("no", "fp16", "bf16"),
    "train.device": text,
    "train.ap": words("sklearn", "raw", "voc"),
    "train.track": either(nothing, words("tensorboard", "wandb")),
    "train.sync_batchnorm": truth,
    "method.reduction": words("sum", "mean"),
    "method.alpha": number(0),
    "method.warmup": either(nothing, whole(0)),
    "method.min_labels": whole(0),
    "method.epsilon": either(words("auto", 1, 1.0), number(0.5, 1)),
    "method.relabel": words("epoch", "online", "paper", "off"),
    "method.trust_positives": either(truth, words("auto")),
}


def check(key: str, value: Any) -> None:
    """Refuse a value that a setting cannot have; of other settings nothing is known."""
    if key in RULES and not RULES[key](value):
        raise RefusedError(f"{key} cannot be {str(value)[:30]!r}")
