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
from balancemix.judge.noise_rates import NoiseRates
from balancemix.judge.opinion import Opinion
from balancemix.judge.ridge import Ridge
from balancemix.labels.mixtures import Guard, Mixtures
from balancemix.labels.table import LabelTable, check_confidence
from balancemix.methods import losses
from balancemix.methods.checks import check_batch, check_choices, require
from balancemix.methods.mixing import draw_lambda, mix
from balancemix.methods.sampling import Batches
from balancemix.processes import Shard

if TYPE_CHECKING:
    from balancemix.methods.closed_form import ClosedForm

Reduction = Literal["sum", "mean"]

_STATE = ("table", "odds", "epoch", "epochs", "generator", "order")  # what `start` adds

# Classes that a method may keep besides tensors and plain values; a checkpoint names the class.
_KINDS = {kind.__name__: kind for kind in (Mixtures, NoiseRates)}


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

    def start(self, given: Tensor, epochs: int, seed: int = 0) -> Self:
        """Start on an N×K matrix of 0/1 labels, to be trained for `epochs`."""
        check_choices(self)
        if epochs < 1:
            raise ValueError(f"epochs must be at least 1, it is {epochs}")
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"seed must be between −2⁶³ and 2⁶⁴ − 1, it is {seed}")
        if type(self).loss is not Method.loss:
            name = type(self).__qualname__
            raise InputError(f"{name}.loss is final; override batch_loss(self, model, batch)")
        table = LabelTable.from_given(given)
        if 0 in table.shape:
            raise ValueError(f"given has no {'classes' if len(table) else 'rows'} to learn from")
        if bool((table.given < 0).any()):
            raise ValueError(
                "some given labels are unknown (−1), and methods learn only from known ones: give "
                "each label as 0 or 1"
            )
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

    def batch_loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Compute the scalar loss of a batch, forward pass included.

        Draw random numbers for the whole batch and take this process's part (`batch.shard`), so
        that `generator` stays the same in all processes.
        """
        target, weight = self.table.rows(batch.index, batch.x.device)
        x, target = self.mixed(batch, batch.x, target)
        return self.reduce(weight * self.criterion(model(x), target))

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

    def reduce(self, values: Tensor) -> Tensor:
        """Reduce B×K losses to the scalar of Eq. 1."""
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
            **{name: _as_plain(getattr(self, name)) for name in self.KEEPS},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Continue from where `state_dict` was taken, on the same given labels."""
        table = LabelTable(**state["table"]).copy()
        if not torch.equal(table.given, self.table.given):
            raise InputError(
                "the state is of other given labels: start the method with those that it was "
                "taken with"
            )
        table.given = self.table.given  # shared with the data
        generator = torch.Generator()
        generator.set_state(state["generator"])
        kept = {name: _as_kept(state[name]) for name in self.KEEPS}
        # Nothing is changed before everything has been read.
        self.odds, self.epoch, self.epochs = state["odds"], state["epoch"], state["epochs"]
        self.table, self.generator = table, generator
        for name, value in kept.items():
            setattr(self, name, value)
        return self


def _as_plain(value: Any) -> Any:
    """Write a kept attribute so that it is stored without pickled code."""
    if type(value).__name__ in _KINDS:
        return {"kind": type(value).__name__, **vars(value)}
    return value


def _as_kept(value: Any) -> Any:
    """Read what `_as_plain` wrote."""
    if isinstance(value, Mapping) and "kind" in value:
        return _KINDS[value["kind"]](**{key: value[key] for key in value if key != "kind"})
    return value


def guard_counts(guard: Tensor) -> dict[str, float]:
    """Count the mixtures that were not used, by reason, under the names that the log has."""
    counts = {g: int((guard == g).sum()) for g in Guard if g}
    return {f"mixtures_{g.name.lower()}": count for g, count in counts.items() if count}


def warm_epochs(warmup: int | None, epochs: int) -> int:
    """Count the epochs of a warm-up: `warmup`, or about a fifth of all, as in the paper.

    >>> warm_epochs(None, 50), warm_epochs(None, 2), warm_epochs(0, 50)
    (10, 1, 0)
    """
    return max(round(epochs / 5), 1) if warmup is None else warmup


@dataclass(kw_only=True)
class BCE(Method):
    """Binary cross-entropy on the labels as given: the paper's Default."""


@dataclass(kw_only=True)
class Mixup(Method):
    """Mixup: BCE on each batch mixed with a permutation of itself (Zhang et al., ICLR 2018).

    Idea: train on x = λ·x_a + (1 − λ)·x_b with the labels mixed alike, so that the model is linear
    between rows and cannot memorise one. λ' ~ Beta(α, α), and λ = max(λ', 1 − λ'), which only names
    the larger of the two rows first.
    Fields: `alpha`, α above. Cost: that of BCE. BCE where α = 0.

    Departure: with several processes a row's partner comes from the rows of its own process, since
    the inputs of the others are elsewhere. λ is the same in all of them.

    The paper trains every method but its Default with Mixup, so each of them has an `alpha`.
    """

    alpha: float = 4.0
