"""Large loss matters (Kim et al., CVPR 2022): LL-R, LL-Ct and LL-Cp, for missing labels.

Idea: given positives are right, given negatives are only "unobserved". The unobserved labels of
largest loss are probably missing positives, more of them the longer training lasts: they are
rejected (LL-R), made positive in this step (LL-Ct), or for good (LL-Cp).

    k = ⌈B·K·(t − 1)·Δ/100⌉ labels of a batch in epoch t = 1, 2, …; LL-Cp: ⌈B·K·Δ/100⌉ from t = 2
    loss of those at or above the k-th largest: 0 (LL-R) or −log p (LL-Ct, LL-Cp)

Fields: `delta`, Δ above, in percent; by default 2 / epochs, so that about 2 % of the labels are
modified at the end whatever the number of epochs, as in BalanceMix's comparison (0.1 for 20, 0.04
for 50). `alpha` of Mixup; a mixed label is unobserved where it is unobserved in both rows.
Cost: that of BCE. BCE where delta = 0 and alpha = 0.

"Unobserved" is the paper's word for a given 0. An unknown label (−1) has no loss, so it is never
among the largest; nor is a verified one. B·K then counts the labels that may be wrong. A label
mixed with an unknown one is unobserved where it is unobserved in the row that has it.

Each process selects the k largest of its own part of a batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from balancemix import processes
from balancemix.labels.table import LabelMatrix, Status
from balancemix.methods import losses
from balancemix.methods.base import Batch, Method
from balancemix.methods.checks import require


def largest(values: Tensor, unobserved: Tensor, count: int) -> Tensor:
    """Mark the `count` largest losses among the unobserved, and those equal to the last of them.

    A loss of 0 is never marked.

    >>> largest(torch.tensor([[3.0, 2.0, 1.0]]), torch.tensor([[False, True, True]]), 1)
    tensor([[False,  True, False]])
    """
    count = min(count, int(unobserved.sum()))
    if count < 1:
        return torch.zeros_like(unobserved)
    threshold = values[unobserved].topk(count).values[-1]
    return unobserved & (values >= threshold) & (values > 0)


@dataclass(kw_only=True)
class LLR(Method):
    """Reject large losses; `delta` is in percent of the labels for each epoch."""

    alpha: float = 4.0
    delta: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta is not None:
            require(0, 100, delta=self.delta)

    @property
    def step(self) -> float:
        """Δ as a share of the labels."""
        return (2 / self.epochs if self.delta is None else self.delta) / 100

    @property
    def rate(self) -> float:
        """The share of the labels to modify in this epoch."""
        return self.epoch * self.step

    def criterion(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute BCE, with the large losses modified."""
        values = losses.bce(logits, target)
        return self.modified(logits, values, self.large(values, target, torch.ones_like(target)))

    def modified(self, logits: Tensor, values: Tensor, large: Tensor) -> Tensor:
        """Set large losses to 0; they stay in the mean."""
        return values.masked_fill(large, 0.0)

    def large(self, values: Tensor, target: Tensor, doubtful: Tensor) -> Tensor:
        """Mark this batch's labels to modify, among the `doubtful` ones."""
        doubtful = doubtful > 0
        # A product such as 1000 · 0.003 may come out just above the integer.
        count = math.ceil(int(doubtful.sum()) * self.rate - 1e-9)
        return largest(values.detach(), (target == 0) & doubtful, count)

    def batch_loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Modify large losses of the mixed batch, but for unknown and verified labels."""
        target, weight = self.table.rows(batch.index, batch.x.device)
        x, labels, verified = self.mixed_labels(batch, target, weight)
        logits = model(x)
        values, doubtful = losses.bce(logits, labels.target), labels.weight
        if verified is not None:  # a label that is verified present in a row is observed
            doubtful = doubtful.masked_fill(verified.weight * verified.target > 0, 0.0)
        large = self.large(values, labels.target, doubtful)
        self.remember(batch, values, large)
        values = labels.weight * self.modified(logits, values, large)
        if verified is not None:
            values = values + verified.weight * losses.bce(logits, verified.target)
        return self.reduce(values)

    def remember(self, batch: Batch, values: Tensor, large: Tensor) -> None:
        """Note which labels were modified, if that is to last."""


@dataclass(kw_only=True)
class LLCt(LLR):
    """Make labels of large loss positive, in this step only."""

    def modified(self, logits: Tensor, values: Tensor, large: Tensor) -> Tensor:
        """Use the loss of a present label where the loss is large."""
        present = losses.bce(logits, torch.ones_like(logits))
        return torch.where(large, present, values)


@dataclass(kw_only=True)
class LLCp(LLCt):
    """Make labels of large loss positive, and keep those above the k-th positive in the table.

    With Mixup the label belongs to the row with the larger share. Departure: the table is written
    at the end of the epoch. No batch sees the difference, as each row comes once in an epoch, and
    all processes then hold the same table.
    """

    KEEPS = ("corrected",)

    def start(
        self, given: LabelMatrix, epochs: int, seed: int = 0, verified: LabelMatrix | None = None
    ) -> Self:
        """Start with no label corrected."""
        super().start(given, epochs, seed, verified)
        self.corrected: list[Tensor] = []  # rows and classes corrected by each step, 2×n
        return self

    @property
    def rate(self) -> float:
        """The same share in every epoch but the first, since corrections add up."""
        return self.step if self.epoch else 0.0

    def remember(self, batch: Batch, values: Tensor, large: Tensor) -> None:
        """Remember the rows and classes of the labels above the k-th."""
        least = values.detach().where(large, torch.inf).amin()
        place, label = (large & (values > least)).nonzero().cpu().T
        # A new list: a checkpoint may hold the old one.
        self.corrected = [*self.corrected, torch.stack([batch.index.cpu()[place], label])]

    def end_epoch(self, *confidence: Tensor) -> dict[str, float]:
        """Write this epoch's corrections into the table."""
        table = self.table
        corrected = torch.zeros(table.shape, dtype=torch.uint8)
        for rows, label in self.corrected:
            corrected[rows, label] = 1
        # Not where the label was the other row's, and this row's is unknown.
        missing = (processes.all_reduce(corrected) > 0) & (table.given == 0)
        table.write(slice(None), table.status.masked_fill(missing, Status.PRESENT))
        self.corrected = []
        return super().end_epoch() | {"flipped": table.shares()["flipped"]}
