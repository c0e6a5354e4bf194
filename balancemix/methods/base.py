"""Method: the base of every method; as it stands BCE (Eq. 1), with Mixup where `alpha` is not 0."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final

import torch
from torch import Tensor, nn

from balancemix.errors import InputError
from balancemix.judge.held_out import LabelErrors
from balancemix.judge.opinion import Opinion
from balancemix.judge.ridge import Ridge
from balancemix.labels.table import LabelMatrix, LabelTable, check_confidence
from balancemix.methods import losses
from balancemix.methods.checks import check_batch, check_choices, require
from balancemix.methods.mixing import Weighted, by_weight, draw_lambda, mix
from balancemix.methods.sampling import Batches
from balancemix.methods.state import as_kept, as_plain
from balancemix.processes import Shard

if TYPE_CHECKING:
    from balancemix.methods.closed_form import ClosedForm

Reduction = Literal["sum", "mean"]

_STATE = ("table", "odds", "epoch", "epochs", "generator", "order")  # what `start` adds


@dataclass(frozen=True)
class Request:
    """What a method needs in this epoch."""

    views: int = 1  # augmented views of each row in the epoch's batches
    passes: tuple[int, ...] = ()  # an N×K confidence each at its end: 0 plain, V mean of V views


@dataclass(frozen=True)
class Batch:
    """The rows of one step, or this process's part of them."""

    views: Sequence[Tensor]  # the same rows, augmented differently; each B×…
    index: Tensor  # the row numbers
    shard: Shard  # which part of the whole batch this is

    @property
    def x(self) -> Tensor:
        """The view to train on."""
        return self.views[0]


@dataclass(kw_only=True)
class Method:
    """Fields are hyper-parameters; `start` adds the state: label table, odds, epoch, generator.

    `reduction` is over the classes, followed by the mean over the batch: "sum" as in Eqs. 1 and 10,
    "mean" where K times the learning rate is too much. `alpha` is the parameter of Mixup's Beta
    distribution; 0 turns Mixup off. A subclass may override everything that is not final.
    """

    reduction: Reduction = "sum"
    alpha: float = 0.0

    # Attributes that a checkpoint keeps besides table, odds, epoch and generator.
    KEEPS: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        check_choices(self)
        require(0, math.inf, alpha=self.alpha)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            kind = type(self)
            if name in (*_STATE, *kind.KEEPS) and "table" not in vars(self):
                raise ValueError(f"{kind.__name__} has not started: call start(given, epochs)")
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")

    def start(
        self, given: LabelMatrix, epochs: int, seed: int = 0, verified: LabelMatrix | None = None
    ) -> Self:
        """Start on N×K labels of 1, 0 and −1 (unknown), to be trained for `epochs`.

        `verified` marks the labels that are known to be right; see `LabelTable.from_given`.
        """
        check_choices(self)
        if epochs < 1:
            raise ValueError(f"epochs must be at least 1, it is {epochs}")
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"seed must be between −2⁶³ and 2⁶⁴ − 1, it is {seed}")
        if type(self).loss is not Method.loss:
            name = type(self).__qualname__
            raise InputError(f"{name}.loss is final; override batch_loss(self, model, batch)")
        table = LabelTable.from_given(given, verified)
        if 0 in table.shape:
            raise ValueError(f"given has no {'classes' if len(table) else 'rows'} to learn from")
        if int(table.given.amax()) < 0:
            raise ValueError("all given labels are unknown (−1): there is nothing to learn from")
        self.table = table
        self.odds: Tensor | None = None  # of each row, for a second half of the batch
        self.epoch, self.epochs = 0, epochs  # epochs finished, epochs in all
        self.generator = torch.Generator().manual_seed(seed)
        self.order: Batches | None = None  # the latest sampler
        return self

    def build(self, make_model: Callable[[], nn.Module]) -> nn.Module:
        """Make the module to train: one model, unless a method needs more."""
        return make_model()

    def members(self, model: nn.Module) -> list[nn.Module]:
        """List the models in what `build` made; the first is the one to keep."""
        return [model]

    def batches(self, size: int, seed: int = 0) -> Batches:
        """Make the batch sampler, which reads odds and epoch each time it is iterated.

        Where several processes train together, each gets its part of `size` rows.
        """
        self.order = Batches(self, size, seed)
        return self.order

    @property
    def undecided(self) -> bool:
        """Whether a setting is still to be chosen from the data."""
        return False

    def decided_by(self, errors: LabelErrors) -> Self:
        """Copy the method with these settings chosen by the errors that unseen rows show."""
        return dataclasses.replace(self)

    @property
    def closed_form(self) -> ClosedForm | None:
        """How its model is solved, if it is not trained."""
        return None

    @property
    def closed(self) -> bool:
        """Whether its model is solved in closed form: no epochs, no batches."""
        return self.closed_form is not None

    @property
    def needs_opinion(self) -> bool:
        """Whether to ask the judge about the labels, and call `informed_by` before `start`."""
        return False

    def informed_by(self, opinion: Opinion, ridge: Ridge | None) -> Self:
        """Copy the method with what the judge says; `ridge` is that of rows that are features."""
        return dataclasses.replace(self)

    def request(self) -> Request:
        """Say what this epoch's batches and its end need."""
        return Request()

    def criterion(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compare B×K logits with targets, label by label."""
        return losses.bce(logits, target)

    def criterion_of_verified(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compare logits with verified labels: as others, unless the `criterion` doubts labels."""
        return self.criterion(logits, target)

    def batch_loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Compute the scalar loss of a batch, forward pass included; unknown labels have no weight.

        Draw random numbers for the whole batch and take this process's part (`batch.shard`), so
        that `generator` stays the same in all processes.
        """
        target, weight = self.table.rows(batch.index, batch.x.device)
        x, labels, verified = self.mixed_labels(batch, target, weight)
        logits = model(x)
        values = labels.weight * self.criterion(logits, labels.target)
        if verified is not None:
            sure = self.criterion_of_verified(logits, verified.target)
            values = values + verified.weight * sure
        return self.reduce(values)

    @final
    def loss(self, model: nn.Module, x: Tensor | Sequence[Tensor], index: Tensor) -> Tensor:
        """Compute the loss of the rows `index`; `x` is a batch, or a list with one for each view.

        Gradients are averaged over processes, whose parts of a batch may differ by a row. The loss
        is weighted by the part's size, so that the average is the gradient of the whole batch.
        """
        views = [x] if isinstance(x, Tensor) else list(x)
        check_batch(views, index, len(self.table))
        shard = None if self.order is None else self.order.shard_of(index)
        if shard is None:  # one process: all of the uniform rows
            shard = Shard(len(index) if self.odds is None else (len(index) + 1) // 2)
        return self.batch_loss(model, Batch(views, index, shard)) * shard.weight

    def mixed(self, batch: Batch, *matrices: Tensor) -> tuple[Tensor, ...]:
        """Mix inputs, targets and the like with a permutation of the batch, all by one λ."""
        if not self.alpha:
            return matrices
        partner = batch.shard.permutation(self.generator)
        lam = draw_lambda(self.alpha, self.generator)
        return tuple(mix(matrix, matrix[partner], lam) for matrix in matrices)

    def mixed_labels(
        self, batch: Batch, target: Tensor, weight: Tensor
    ) -> tuple[Tensor, Weighted, Weighted | None]:
        """Mix the rows and their labels; verified labels, if the batch has any, come apart."""
        verified = self.table.verified(batch.index)
        parts = [weight]
        if bool(verified.any()):
            verified = verified.to(weight.device)
            parts = [weight * ~verified, weight * verified]
        sums = [Weighted(part * target, part) for part in parts]
        x, *mixed = self.mixed(batch, batch.x, *(matrix for pair in sums for matrix in pair))
        labels = [by_weight(*pair) for pair in zip(mixed[::2], mixed[1::2], strict=True)]
        return x, labels[0], labels[1] if len(labels) > 1 else None

    def reduce(self, values: Tensor) -> Tensor:
        """Reduce B×K losses to the scalar of Eq. 1.

        Unknown labels are terms of 0: a row with few known labels counts less, and the mean over
        the classes is still divided by K.
        """
        rows = values.sum(1) if self.reduction == "sum" else values.mean(1)
        return rows.mean()

    def end_epoch(self, *confidence: Tensor) -> dict[str, float]:
        """Learn from an N×K confidence for each member and pass; return numbers to log.

        A subclass calls this last: an end of epoch that fails has not happened.
        """
        self.epoch += 1
        return {}

    def checked(self, confidence: tuple[Tensor, ...], count: int = 1) -> list[Tensor]:
        """Check the matrices of an epoch's end, at least `count`, and move them to the CPU."""
        if len(confidence) < count:
            what = "the N×K confidence" if count == 1 else f"{count} matrices of confidence, N×K,"
            raise ValueError(f"end_epoch needs {what} on the training data")
        matrices = [matrix.detach().cpu().float() for matrix in confidence]
        for matrix in matrices:
            check_confidence(self.table.given, matrix)
        return matrices

    def state_dict(self) -> dict[str, Any]:
        """Return the whole state as tensors and plain values."""
        return {
            "table": self.table.state_dict(),
            "odds": self.odds,
            "epoch": self.epoch,
            "epochs": self.epochs,
            "generator": self.generator.get_state(),
            **{name: as_plain(getattr(self, name)) for name in self.KEEPS},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Continue from where `state_dict` was taken, on the same given labels."""
        table = LabelTable(**state["table"]).copy()
        same = torch.equal(table.given, self.table.given)
        if not (same and torch.equal(table.verified(), self.table.verified())):
            raise InputError(
                "the state is of other given labels: start the method with those that it was "
                "taken with"
            )
        table.given = self.table.given  # shared with the data
        generator = torch.Generator()
        generator.set_state(state["generator"])
        kept = {name: as_kept(state[name]) for name in self.KEEPS}
        # Nothing is changed before everything has been read.
        self.odds, self.epoch, self.epochs = state["odds"], state["epoch"], state["epochs"]
        self.table, self.generator = table, generator
        for name, value in kept.items():
            setattr(self, name, value)
        return self


def warm_epochs(warmup: int | None, epochs: int) -> int:
    """Count the epochs of a warm-up: `warmup`, or about a fifth of all, as in the paper.

    >>> warm_epochs(None, 50), warm_epochs(None, 2), warm_epochs(0, 50)
    (10, 1, 0)
    """
    return max(round(epochs / 5), 1) if warmup is None else warmup
