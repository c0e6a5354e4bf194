"""Method: what every method is and, as it stands, BCE (Eq. 1), with Mixup where `alpha` says."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, final

import torch
from torch import Tensor, nn

from balancemix.errors import InputError
from balancemix.judge.held_out import LabelErrors
from balancemix.judge.noise_rates import NoiseRates
from balancemix.labels.mixtures import Mixtures
from balancemix.labels.table import LabelTable, check_confidence
from balancemix.methods import losses
from balancemix.methods.mixing import draw_lambda, mix
from balancemix.methods.sampling import Batches
from balancemix.processes import Shard

Reduction = Literal["sum", "mean"]

# What a method may keep besides tensors and plain values; a checkpoint names the kind.
_KINDS = {kind.__name__: kind for kind in (Mixtures, NoiseRates)}


@dataclass(frozen=True)
class Request:
    """What a method wants in this epoch.

    Each pass is an N×K confidence at its end: 0 for that in plain rows, V for the mean over V
    augmented views.
    """

    views: int = 1  # augmented views of each row, in the epoch's batches
    passes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Batch:
    """The rows of a step that this process has."""

    views: Sequence[Tensor]  # the same rows, varied; each B×…
    index: Tensor  # their numbers
    shard: Shard  # which part of the whole batch they are

    @property
    def x(self) -> Tensor:
        """The view that is trained on."""
        return self.views[0]


@dataclass(kw_only=True)
class Method:
    """Fields are hyper-parameters; `start` adds the state: the label table, odds, epoch, λ's seed.

    `reduction` is over the classes, always followed by the mean over the batch: "sum" as in
    Eqs. 1 and 10, "mean" where K times the learning rate is too much. `alpha` is of Mixup's Beta
    distribution; 0 is none. A subclass may override all that is not final.
    """

    reduction: Reduction = "sum"
    alpha: float = 0.0

    # Attributes that a checkpoint keeps besides table, odds, epoch and generator.
    KEEPS: ClassVar[tuple[str, ...]] = ()

    def start(self, given: Tensor, epochs: int, seed: int = 0) -> Self:
        """Begin on an N×K matrix of 0/1 labels, to be trained for `epochs`."""
        if epochs < 1:
            raise ValueError(f"epochs must be at least 1, it is {epochs}")
        if type(self).loss is not Method.loss:
            name = type(self).__qualname__
            raise InputError(f"{name}.loss: is final; override batch_loss(self, model, batch)")
        self.table = LabelTable.from_given(given)
        if bool((self.table.given < 0).any()):
            raise ValueError(
                "some labels are unknown (−1), and methods learn from known ones only: give each "
                "label as 0 or 1"
            )
        self.odds: Tensor | None = None  # of each row, or None: no second half of the batch
        self.epoch, self.epochs = 0, epochs  # epochs ended, epochs in all
        self.generator = torch.Generator().manual_seed(seed)
        self.order: Batches | None = None  # the sampler made last
        return self

    def build(self, make_model: Callable[[], nn.Module]) -> nn.Module:
        """Make what is trained: one model, unless a method wants more."""
        return make_model()

    def members(self, model: nn.Module) -> list[nn.Module]:
        """List the models in what `build` made; the first is the one that is kept."""
        return [model]

    def batches(self, size: int, seed: int = 0) -> Batches:
        """Make the batch sampler; it reads odds and epoch afresh each time it is iterated.

        Where several processes train together, each gets its share of `size` rows.
        """
        self.order = Batches(self, size, seed)
        return self.order

    @property
    def undecided(self) -> bool:
        """Is a setting left to be chosen from the data?"""
        return False

    def decided_by(self, errors: LabelErrors) -> Self:
        """Make a copy with such settings chosen by the errors that unseen rows tell of."""
        return dataclasses.replace(self)

    def request(self) -> Request:
        """Say what this epoch's batches and its end want."""
        return Request()

    def criterion(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compare B×K logits with targets, label by label."""
        return losses.bce(logits, target)

    def batch_loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Compute the scalar loss of a batch; owns the forward pass.

        What is drawn is drawn for the whole batch and then taken from (`batch.shard`), so that
        `generator` moves on alike in all processes.
        """
        target, weight = self.table.rows(batch.index, batch.x.device)
        x, target = self.mixed(batch, batch.x, target)
        return self.reduce(weight * self.criterion(model(x), target))

    @final
    def loss(self, model: nn.Module, x: Tensor | Sequence[Tensor], index: Tensor) -> Tensor:
        """Compute the loss of the rows `index`; `x` is a batch, or one for each view of the rows.

        Gradients are averaged over processes, whose shares may differ by a row. Each one's mean
        counts by its rows, so that the average is the gradient of the whole batch.
        """
        views = [x] if isinstance(x, Tensor) else list(x)
        shard = None if self.order is None else self.order.part_of(index)
        if shard is None:  # alone: all of the uniform rows
            shard = Shard(len(index) if self.odds is None else (len(index) + 1) // 2)
        return self.batch_loss(model, Batch(views, index, shard)) * shard.weight

    def mixed(self, batch: Batch, *matrices: Tensor) -> tuple[Tensor, ...]:
        """Mix inputs and what is known of them with a permutation of the batch, all by one λ."""
        if not self.alpha:
            return matrices
        partner = batch.shard.permutation(self.generator)
        lam = draw_lambda(self.alpha, self.generator)
        return tuple(mix(matrix, matrix[partner], lam) for matrix in matrices)

    def reduce(self, values: Tensor) -> Tensor:
        """Reduce B×K losses to the scalar of Eq. 1."""
        rows = values.sum(1) if self.reduction == "sum" else values.mean(1)
        return rows.mean()

    def end_epoch(self, *confidence: Tensor) -> dict[str, float]:
        """Learn from the N×K confidence of each member and pass; return facts to log."""
        self.epoch += 1
        return {}

    def checked(self, confidence: tuple[Tensor, ...], count: int = 1) -> list[Tensor]:
        """Take `count` matrices of an epoch's end, on the CPU, or say what is wrong with them."""
        if len(confidence) < count:
            what = "the N×K confidence" if count == 1 else f"{count} matrices of confidence, N×K,"
            raise ValueError(f"end_epoch needs {what} on the training data")
        matrices = [matrix.detach().cpu().float() for matrix in confidence]
        for matrix in matrices:
            check_confidence(self.table.given, matrix)
        return matrices

    def state_dict(self) -> dict[str, Any]:
        """Collect the whole state as tensors and plain values."""
        return {
            "table": self.table.state_dict(),
            "odds": self.odds,
            "epoch": self.epoch,
            "epochs": self.epochs,
            "generator": self.generator.get_state(),
            **{name: _as_plain(getattr(self, name)) for name in self.KEEPS},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Go on where `state_dict` was taken."""
        self.table = LabelTable(**state["table"]).copy()
        self.odds, self.epoch, self.epochs = state["odds"], state["epoch"], state["epochs"]
        self.generator = torch.Generator()
        self.generator.set_state(state["generator"])
        for name in self.KEEPS:
            setattr(self, name, _as_kept(state[name]))
        return self


def _as_plain(value: Any) -> Any:
    """Write what is kept so that it is stored without pickled code."""
    if type(value).__name__ in _KINDS:
        return {"kind": type(value).__name__, **vars(value)}
    return value


def _as_kept(value: Any) -> Any:
    """Read what `_as_plain` wrote."""
    if isinstance(value, Mapping) and "kind" in value:
        return _KINDS[value["kind"]](**{key: value[key] for key in value if key != "kind"})
    return value


def warm_epochs(wanted: int | None, epochs: int) -> int:
    """Count the epochs of a warm-up: as many as wanted, or about a fifth, as in the paper.

    >>> warm_epochs(None, 50), warm_epochs(None, 2), warm_epochs(0, 50)
    (10, 1, 0)
    """
    return max(round(epochs / 5), 1) if wanted is None else wanted


def require(low: float, high: float, **settings: float) -> None:
    """Refuse settings out of their range, which includes both ends.

    >>> require(0, 1, share=1.5)
    Traceback (most recent call last):
    ValueError: share must be between 0 and 1, it is 1.5
    """
    wanted = f"between {low:g} and {high:g}" if high < math.inf else f"at least {low:g}"
    for name, value in settings.items():
        if not low <= value <= high:
            raise ValueError(f"{name} must be {wanted}, it is {value}")


@dataclass(kw_only=True)
class BCE(Method):
    """Binary cross-entropy on the labels as given: the paper's Default."""
