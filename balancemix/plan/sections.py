"""The sections data, model and train of a plan: each setting with its default; imports no torch."""

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from balancemix.options import BACKBONE, DROPOUT, HIDDEN, Augment, Meaning, ReadOptions, View

METHOD = "balancemix"
NOISE = "none"
SEED = 0


@dataclass(kw_only=True)
class DataPlan:
    """Where the rows come from and how they are shown to the model.

    path         `digits`, a folder (labels.csv, COCO, VOC, DeepFashion), a table or an .npz file
    images       the folder of the images that a table names; none: that of the table
    format       of the data; none: recognised
    sheet        of a workbook; none: the first that holds anything
    *_column     of a table, which has the images and the labels; none: recognised
    separator    what joins the labels of a cell; none: recognised
    unlabelled   what a label that is not given means; none: what it usually does
    minus_one    what −1 means
    size         images are resized to size × size pixels
    augment      the augmentation that makes a view of an image
    cache        where resized images are kept; auto: in memory if a quarter of it is enough, else
                 on disk, else off
    feature_*    dropout and noise that make a view of a feature row
    vary_stored  apply them also to views stored by `embed`, which are otherwise shown as they are
    holdout      share of rows to score on if the data names no split
    score        test rows or, to choose settings, `holdout` of the training rows
    groups       many/medium/few by the paper's 10,000 and 1,000 positives, or by thirds (auto)
    skip_bad     leave out images that cannot be read
    verified     trust what people decided about labels, in the folder beside the data
    unannotated  COCO's images without any annotation
    difficult    VOC's difficult objects in evaluation; in training they are negative
    workers      loading processes; none: a number that suits data and machine
    """

    path: str = "digits"
    images: str | None = None
    format: str | None = None
    sheet: str | None = None
    image_column: str | None = None
    label_column: str | None = None
    separator: str | None = None
    unlabelled: Meaning | None = None
    minus_one: Meaning | None = None
    size: int = View.size
    augment: Augment = View.augment
    cache: Literal["auto", "memory", "disk", "off"] = "auto"
    feature_dropout: float = View.dropout
    feature_noise: float = View.noise
    vary_stored: bool = View.vary_stored
    holdout: float = ReadOptions.holdout
    score: Literal["test", "held-out"] = "test"
    groups: Literal["auto", "paper"] = "auto"
    skip_bad: bool = ReadOptions.skip_bad
    verified: bool = ReadOptions.verified
    unannotated: Literal["drop", "keep"] = ReadOptions.unannotated
    difficult: Literal["ignore", "negative"] = ReadOptions.difficult
    workers: int | None = None

    def __post_init__(self) -> None:
        _check_names(self, "path")
        _check_least(self, 1, "size")
        _check_least(self, 0, "feature_noise")
        _check_shares(self, "feature_dropout")
        if not 0 < self.holdout < 1:
            raise ValueError(f"holdout must be between 0 and 1, it is {self.holdout}")
        if self.workers is not None:
            _check_least(self, 0, "workers")

    def reading(self) -> ReadOptions:
        """Return how the files are read."""
        # Only training keeps resized images (`cache`); a plan has the folder of images as text.
        shared = {each.name for each in fields(self)} & {each.name for each in fields(ReadOptions)}
        given = {name: getattr(self, name) for name in shared - {"cache", "images"}}
        images = None if self.images is None else Path(self.images)
        return ReadOptions(**given, images=images)


@dataclass(kw_only=True)
class ModelPlan:
    """The model to train.

    backbone    any timm name, for images
    head        none: linear for images, mlp for features; ml-decoder and query2label suit both
    pretrained  start with the backbone's ImageNet weights
    hidden      units of the mlp, or width of query2label
    dropout     of the mlp
    """

    backbone: str = BACKBONE
    head: Literal["linear", "mlp", "ml-decoder", "query2label"] | None = None
    pretrained: bool = True
    hidden: int = HIDDEN
    dropout: float = DROPOUT

    def __post_init__(self) -> None:
        _check_names(self, "backbone")
        _check_least(self, 1, "hidden")
        _check_shares(self, "dropout")


@dataclass(kw_only=True)
class TrainPlan:
    """How to train it.

    batch_size      rows of a batch, over all processes
    clip            largest gradient norm; 0: no limit
    accumulate      batches per step
    ema             decay of averaged weights, which are then scored and saved; 0: none
    ap              convention of average precision
    track           also log to tensorboard or wandb
    sync_batchnorm  BatchNorm over the rows of all processes
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
        _check_names(self, "device")
        _check_least(self, 1, "epochs", "batch_size", "accumulate")
        _check_least(self, 0, "lr", "clip", "weight_decay", "momentum")
        _check_shares(self, "ema")


SECTIONS: dict[str, Any] = {"data": DataPlan, "model": ModelPlan, "train": TrainPlan}


def type_of(setting: str) -> Any:
    """Return the type of a setting's value, as `section.key`.

    >>> type_of("train.lr"), type_of("data.workers"), type_of("model.head")
    (<class 'float'>, <class 'int'>, <class 'str'>)
    """
    hint = _hint(setting)
    return next((kind for kind in (hint, *get_args(hint)) if kind in (int, float)), str)


def help_of(setting: str, what: str = "") -> str:
    """Describe a setting by its choices, if it has some, and its default.

    >>> help_of("train.optimizer"), help_of("train.lr", "learning rate")
    ('sgd (default) or adamw', 'learning rate (default 0.01)')
    """
    section, _, key = setting.partition(".")
    default, hint = SECTIONS[section].__dataclass_fields__[key].default, _hint(setting)
    kinds = [kind for kind in (hint, *get_args(hint)) if get_origin(kind) is Literal]
    if kinds:
        words = [f"{word} (default)" if word == default else word for word in get_args(kinds[0])]
        choices = f"{', '.join(words[:-1])} or {words[-1]}"
        return f"{what}: {choices}" if what else choices
    if default is None:
        return what
    default = f"{default:g}" if isinstance(default, float) else default
    return f"{what} (default {default})" if what else f"default {default}"


def _hint(setting: str) -> Any:
    section, _, key = setting.partition(".")
    return get_type_hints(SECTIONS[section])[key]


def _check_least(section: object, least: int, *names: str) -> None:
    for name in names:
        if not least <= getattr(section, name) < math.inf:
            raise ValueError(f"{name} must be at least {least}, it is {getattr(section, name)}")


def _check_shares(section: object, *names: str) -> None:
    for name in names:
        if not 0 <= getattr(section, name) < 1:
            raise ValueError(f"{name} must be in [0, 1), it is {getattr(section, name)}")


def _check_names(section: object, *names: str) -> None:
    for name in names:
        if not getattr(section, name).strip():
            raise ValueError(f"{name} must not be empty")
