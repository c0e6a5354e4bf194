"""Method: what every method is, and, as it stands, plain BCE (Eq. 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from balancemix.judge.held_out import LabelErrors
from balancemix.labels.table import LabelTable, check_confidence
from balancemix.methods import losses
from balancemix.methods.sampling import Batches
from balancemix.processes import Part

Reduction = Literal["sum", "mean"]
Input = Tensor | Sequence[Tensor]  # a batch, or one batch for each view of the same rows
Loss = Callable[[Any, nn.Module, Input, Tensor], Tensor]


def of_its_part(loss: Loss) -> Loss:
    """Tell a method which part of a batch it is to compute the loss of, and weigh that.

    Gradients are averaged over processes, whose parts may differ by a row. Each one's mean counts
    by its rows, so that the average is the gradient of the whole batch.
    """

    @wraps(loss)
    def weighed(self: Method, model: nn.Module, x: Input, index: Tensor) -> Tensor:
        part = None if self.order is None else self.order.part_of(index)
        if part is None or self.part is not None:  # alone, or called by another's `loss`
            return loss(self, model, x, index)
        self.part = part
        try:
            return loss(self, model, x, index) * part.weight
        finally:
            self.part = None

    return weighed


@dataclass(kw_only=True)
class Method:
    """Fields are hyper-parameters; `start` adds the state: the label table, odds, epoch, λ's seed.

    `reduction` is over the classes, always followed by the mean over the batch: "sum" as in
    Eqs. 1 and 10, "mean" where K times the learning rate is too much.
    """

    reduction: Reduction = "sum"

    def __init_subclass__(cls) -> None:
        """Let a method's own `loss` know its part of a batch, as the one here does."""
        super().__init_subclass__()
        if "loss" in vars(cls):
            cls.loss = of_its_part(cls.loss)  # type: ignore[method-assign]

    def start(self, labels: Tensor, epochs: int, seed: int = 0) -> Self:
        """Begin on an N×K matrix of 0/1 labels, to be trained for `epochs`."""
        if epochs < 1:
            raise ValueError(f"epochs must be at least 1, it is {epochs}")
        self.table = LabelTable.from_given(labels)
        if bool((self.table.given < 0).any()):
            raise ValueError(
                "some labels are unknown (−1), and methods learn from known ones only: give each "
                "label as 0 or 1"
            )
        self.odds: Tensor | None = None  # of each row, or None: no second half of the batch
        self.epoch, self.epochs = 0, epochs  # epochs ended, epochs in all
        self.generator = torch.Generator().manual_seed(seed)
        self.order: Batches | None = None  # the sampler made last
        self.part: Part | None = None  # of the batch at hand, where other processes have the rest
        return self

    def part_of(self, rows: int) -> Part:
        """Say which part of a batch these rows are; all of it, where there is one process.

        What is drawn for a batch is drawn for all of it and then taken from: thus `generator`
        moves on alike in all processes.
        """
        return self.part or Part(rows)

    def build(self, make_model: Callable[[], nn.Module]) -> nn.Module:
        """Make what is trained: one model, unless a method wants more."""
        return make_model()

    def witness(self, model: nn.Module) -> nn.Module:
        """Choose whose confidence `end_epoch` wants; its first K columns are the model's own."""
        return model

    def deliver(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Choose, of the weights of what `build` made, those of the one model that is kept."""
        return weights

    def batches(self, size: int, seed: int = 0) -> Batches:
        """Make the batch sampler; it reads odds and epoch afresh each time it is iterated.

        Where several processes train together, each gets its share of `size` rows.
        """
        self.order = Batches(self, size, seed)
        return self.order

    @property
    def unsettled(self) -> bool:
        """Does it wait for `settle` to choose a setting that was left to the data?"""
        return False

    def settle(self, errors: LabelErrors) -> None:
        """Choose by what unseen rows say of the labels, before the first epoch."""

    @property
    def views(self) -> int:
        """How many augmented views of a row this epoch's loss wants."""
        return 1

    @property
    def needs_confidence(self) -> bool:
        """Does this epoch's end want the N×K confidence?"""
        return False

    @property
    def confidence_views(self) -> int:
        """Count the augmented views that `end_epoch`'s confidence is the mean of; 0 is plain."""
        return 0

    @property
    def needs_views(self) -> bool:
        """Does this epoch's end want the confidence on augmented views too?"""
        return False

    def criterion(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compare B×K logits with targets, label by label."""
        return losses.bce(logits, target)

    @of_its_part
    def loss(self, model: nn.Module, x: Input, index: Tensor) -> Tensor:
        """Compute the scalar loss of a batch whose rows are `index`; owns the forward pass."""
        x = first_view(x)
        target, weight = self.table.rows(index, x.device)
        return self.reduce(weight * self.criterion(model(x), target))

    def reduce(self, values: Tensor) -> Tensor:
        """Reduce B×K losses to the scalar of Eq. 1."""
        rows = values.sum(1) if self.reduction == "sum" else values.mean(1)
        return rows.mean()

    def end_epoch(
        self, confidence: Tensor | None = None, view_confidence: Tensor | None = None
    ) -> dict[str, float]:
        """Learn from the N×K confidence on plain inputs (and on views); return facts to log."""
        self.epoch += 1
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Collect the whole state as tensors and numbers."""
        return {
            "table": self.table.state_dict(),
            "odds": self.odds,
            "epoch": self.epoch,
            "epochs": self.epochs,
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Go on where `state_dict` was taken."""
        self.table = LabelTable(**state["table"]).copy()
        self.odds, self.epoch, self.epochs = state["odds"], state["epoch"], state["epochs"]
        self.generator = torch.Generator()
        self.generator.set_state(state["generator"])
        return self


def first_view(x: Input) -> Tensor:
    """Take the view that is trained on."""
    return x if isinstance(x, Tensor) else x[0]


def warm_epochs(wanted: int | None, epochs: int) -> int:
    """Count the epochs of a warm-up: as many as wanted, or about a fifth, as in the paper.

    >>> warm_epochs(None, 50), warm_epochs(None, 2), warm_epochs(0, 50)
    (10, 1, 0)
    """
    return max(round(epochs / 5), 1) if wanted is None else wanted


def checked(given: Tensor, confidence: Tensor | None) -> Tensor:
    """Take the N×K confidence of an epoch's end, on the CPU, or say what is wrong with it."""
    if confidence is None:
        raise ValueError("end_epoch needs the N×K confidence on the training data")
    confidence = confidence.detach().cpu().float()
    check_confidence(given, confidence)
    return confidence


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
