"""Options that several layers share, each with its one default; imports no torch.

`plan/sections.py` adds what only a plan has. The help of every command reads both.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from balancemix.errors import InputError, suggest

Augment = Literal["randaugment", "uda", "none"]
Meaning = Literal["absent", "unknown"]  # of what a file says nothing about, or says −1
Channels = tuple[float, float, float]

IMAGENET_MEAN: Channels = (0.485, 0.456, 0.406)
IMAGENET_STD: Channels = (0.229, 0.224, 0.225)

BACKBONE = "tf_efficientnet_lite0"
HIDDEN = 2048  # units of the mlp head
DROPOUT = 0.0  # of the mlp head
STORED_VIEWS = 5  # that `embed` makes of each image
ABOVE = 0.5  # confidence from which a class is predicted; probability from which a label is listed


@dataclass(frozen=True)
class View:
    """How a row is shown to a model.

    Images are resized to `size`×`size` pixels and normalised by `mean` and `std` of each channel,
    on a scale from 0 to 1; `augment` names the augmentation. An augmented view of features drops
    each with probability `dropout` and adds Gaussian noise of `noise` standard deviations. Where
    views are stored, it is one of them, which `vary_stored` changes as well.

    >>> View(size=128).augment
    'randaugment'
    """

    size: int = 224
    augment: Augment = "randaugment"
    mean: Channels = IMAGENET_MEAN
    std: Channels = IMAGENET_STD
    dropout: float = 0.1
    noise: float = 0.1
    vary_stored: bool = False

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InputError(f"size must be at least 1 pixel, not {self.size}")
        if self.augment not in get_args(Augment):
            options = suggest(self.augment, get_args(Augment))
            raise InputError(f"augment: unknown {self.augment!r}; {options}")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be in [0, 1), not {self.dropout}")
        if not 0 <= self.noise < float("inf"):
            raise InputError(f"noise must be 0 or more, not {self.noise}")


@dataclass(frozen=True)
class ReadOptions:
    """How the files of a data set are read.

    `skip_bad` leaves out images that cannot be read. `unannotated` images of COCO are dropped or
    kept; `difficult` objects of VOC are ignored in evaluation, or negative. `holdout` is the share
    of rows to score on where the files name no split; `seed` draws them, and the built-in digits.
    `cache` says where resized images are kept, see `ImageRows.cached`. `images` is the folder of
    the images that a table names, or that the features of an .npz were made from, if it is not
    where the file says. `labels_only` opens no image, and does not look whether it exists.
    `verified` trusts what people decided about labels, in the folder beside the data.

    `format` names the format, if it is not to be recognised. `sheet` names the sheet of a workbook;
    without it, the first that holds anything is read. In a table, `image_column` and
    `label_column` name columns, and `separator` is what joins labels in a cell; `list` is a list as
    in JSON, `whole` a cell that is one label. `unlabelled` and `minus_one` say what a label that
    is not given, and what −1, means.
    """

    skip_bad: bool = False
    unannotated: Literal["drop", "keep"] = "drop"
    difficult: Literal["ignore", "negative"] = "ignore"
    holdout: float = 0.2
    cache: Literal["auto", "memory", "disk", "off"] = "off"
    seed: int = 0
    images: Path | None = None
    labels_only: bool = False
    verified: bool = True
    format: str | None = None
    sheet: str | None = None
    image_column: str | None = None
    label_column: str | None = None
    separator: str | None = None
    unlabelled: Meaning | None = None
    minus_one: Meaning | None = None
