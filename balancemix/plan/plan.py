"""Plan: all that a run depends on, as nested dataclasses; each setting has its one home here.

A plan is read from TOML or JSON, changed by `--set section.key=value`, and stored as `plan.json`.
The section `method` holds the name of a method and its own hyper-parameters.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from balancemix.data.source import ReadOptions, View
from balancemix.errors import InputError, suggest
from balancemix.labels import noise
from balancemix.methods import METHODS, BalanceMix, Method
from balancemix.plan.settings import flat, read_into


@dataclass(kw_only=True)
class DataPlan:
    """Where the rows come from and how they are shown to the model.

    path: `digits`, a folder with labels.csv or of COCO, VOC or DeepFashion, or an .npz file. size:
    images are resized to size × size pixels. augment: what makes a view of an image. cache: where
    resized images are kept; auto is memory if a quarter of it will do, else disk, else off.
    feature_dropout, feature_noise: what makes a view of a feature row; where views were stored by
    `embed`, one of these is the view, and with vary_stored it is varied as well. holdout: share
    scored on where the data names no split. score: on the test rows or, to choose settings by, on
    `holdout` of the training rows, which then do not train. groups: many/medium/few by the paper's
    10,000 and 1,000 positives, or "auto", thirds of the classes. unannotated: what becomes of
    COCO's images without any annotation. difficult: what VOC's difficult objects are in evaluation;
    in training they are negative. workers: loading processes; none is a good number for the data.
    """

    path: str = "digits"
    size: int = View.size
    augment: Literal["randaugment", "uda", "none"] = View.augment
    cache: Literal["auto", "memory", "disk", "off"] = "auto"
    feature_dropout: float = View.dropout
    feature_noise: float = View.noise
    vary_stored: bool = View.vary_stored
    holdout: float = ReadOptions.holdout
    score: Literal["test", "held-out"] = "test"
    groups: Literal["auto", "paper"] = "auto"
    skip_bad: bool = ReadOptions.skip_bad
    unannotated: Literal["drop", "keep"] = ReadOptions.unannotated
    difficult: Literal["ignore", "negative"] = ReadOptions.difficult
    workers: int | None = None


@dataclass(kw_only=True)
class ModelPlan:
    """What is trained. backbone: any timm name, for images. head: none is linear for images and
    mlp for features; ml-decoder and query2label are for both. hidden: of the mlp, or the width of
    query2label. dropout: of the mlp. pretrained: ImageNet.
    """

    backbone: str = "tf_efficientnet_lite0"
    head: Literal["linear", "mlp", "ml-decoder", "query2label"] | None = None
    pretrained: bool = True
    hidden: int = 2048
    dropout: float = 0.0


@dataclass(kw_only=True)
class TrainPlan:
    """How it is trained. clip: largest gradient norm, 0 is none. accumulate: batches a step.
    ema: decay of averaged weights, which are then the ones scored and saved; 0 is none. ap: the
    convention of average precision. track: also log to tensorboard or wandb. batch_size: over all
    processes. sync_batchnorm: BatchNorm by the rows of all processes, not of each its own.
    """

    epochs: int = 30
    batch_size: int = 64
    optimizer: Literal["sgd", "adamw"] = "sgd"
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 1e-4
    schedule: Literal["cosine", "constant"] = "cosine"
    clip: float = 0.0
    accumulate: int = 1
    ema: float = 0.0
    precision: Literal["no", "fp16", "bf16"] = "no"
    device: str = "auto"
    ap: Literal["sklearn", "raw", "voc"] = "sklearn"
    track: Literal["tensorboard", "wandb"] | None = None
    sync_batchnorm: bool = False

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "accumulate"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, it is {getattr(self, name)}")
        for name in ("lr", "clip", "weight_decay", "momentum"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, it is {getattr(self, name)}")
        if not 0 <= self.ema < 1:
            raise ValueError(f"ema must be in [0, 1), it is {self.ema}")


# Settings that are gone, at the value that is now the only one: plans of old runs hold them.
RETIRED = {"relabel_weight": "one"}


@dataclass(kw_only=True)
class Plan:
    """What to run. noise: added to the training labels (`mislabel:0.4`, `flip:0.2`, …). seed: of
    everything random, the noise included.
    """

    method: Method = field(default_factory=BalanceMix)
    data: DataPlan = field(default_factory=DataPlan)
    noise: str = "none"
    model: ModelPlan = field(default_factory=ModelPlan)
    train: TrainPlan = field(default_factory=TrainPlan)
    seed: int = 0

    def __post_init__(self) -> None:
        noise.parse(self.noise)
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"seed must be between 0 and 2³¹, it is {self.seed}")

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any]) -> Self:
        """Build a plan from nested sections, refusing what is not known."""
        return read_into(cls, {**tree, "method": make_method(tree.get("method", {}))})

    def tree(self) -> dict[str, Any]:
        """Take the plan apart into nested sections, every default written out."""
        name = next((n for n, kind in METHODS.items() if kind is type(self.method)), None)
        name = name or f"{type(self.method).__module__}:{type(self.method).__qualname__}"
        sections = dataclasses.asdict(self)
        return {**sections, "method": {"name": name, **sections["method"]}}

    def changes(self, new: Plan) -> list[str]:
        """List the settings that differ in another plan."""
        old, other = flat(self.tree()), flat(new.tree())
        return [
            f"{key} was {old.get(key)!r}, is {other.get(key)!r}"
            for key in dict.fromkeys([*old, *other])
            if old.get(key) != other.get(key)
        ]


def make_method(section: Mapping[str, Any]) -> Method:
    """Build a method from its name and settings.

    >>> make_method({"name": "mixup", "alpha": 1})
    Mixup(reduction='sum', alpha=1.0)
    """
    if not isinstance(section, Mapping):
        raise InputError(f"method must be a section with a name, it is {section!r}")
    kind = find_method(str(section.get("name", "balancemix")))
    settings = {key: value for key, value in section.items() if key != "name"}
    return read_into(kind, current_settings(kind, settings), "method.")


def current_settings(kind: type[Method], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a method's settings from plans of older versions.

    BalanceMix had a switch `relabel` and a `mode` (where to re-label), which are one setting now.

    >>> current_settings(BalanceMix, {"relabel": True, "mode": "paper", "power": 10})
    {'relabel': 'paper', 'power': 10}
    """
    current = {key: value for key, value in settings.items() if (key, value) not in RETIRED.items()}
    if issubclass(kind, BalanceMix):
        place = current.pop("mode", None)
        if current.get("relabel") is False:
            current["relabel"] = "off"
        elif place is not None or current.get("relabel") is True:
            current["relabel"] = place or "epoch"
    return current


def find_method(name: str) -> type[Method]:
    """Look up a method by its name, or import a stranger's by `package.module:Class`."""
    if name in METHODS:
        return METHODS[name]
    module, colon, kind = name.partition(":")
    if not colon:
        raise InputError(f"unknown method {name!r}; {suggest(name, list(METHODS))}")
    if os.getcwd() not in sys.path:  # where people keep a module of their own
        sys.path.append(os.getcwd())
    try:
        found = getattr(importlib.import_module(module), kind)
    except (ImportError, AttributeError) as error:
        raise InputError(f"--method {name}: cannot be imported ({error})") from error
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise InputError(f"--method {name}: is no subclass of balancemix.Method")
    return found


def read_tree(path: Path) -> dict[str, Any]:
    """Read a TOML or JSON file of sections."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise InputError(f"{path}: not a valid plan ({error})") from error
    if not isinstance(tree, dict):
        raise InputError(f"{path}: a plan is a table of sections")
    return tree
