"""AN-LS, EPR and ROLE (Cole et al., CVPR 2021): learning from few given positives.

Given positives are right; every label given as 0 is unobserved.

AN-LS: assume the unobserved negative, and smooth all labels:  BCE(p, (1 − ε)·y + ε·(1 − y)).
EPR: learn from positives only, and keep the mean number of predicted positives of an image at the
expected k:
    y·(−log p) + R(p),  R(p) = ((mean over rows of Σ p − k) / K)²
ROLE: also learn a label g for each entry of the N×K matrix; g and the model teach each other:
    of the model   ½·[y·(−log p) + BCE(p, g) + R(p)],  g held fixed
    of the matrix  ½·[y·(−log g) + BCE(g, p) + R(g)],  p held fixed

Fields: `smoothing`, ε above. `expected`, k above; by default the mean number of given positives.
`rate` of the matrix's steps. `strength`: 1 is EPR or ROLE, 0 is BCE, between is a blend of both.
`alpha` of Mixup; a mixed row's g is the mix of the two.
Cost: that of BCE; ROLE's also a forward pass over the data each epoch and an N×K matrix.
BCE, with alpha = 0: AN-LS at smoothing = 0, EPR and ROLE at strength = 0.

An unknown label (−1) is unobserved too: AN-LS assumes it negative (ABSENT in the table), EPR and
ROLE treat it as a 0, except in the blend's BCE, where it has no weight. Verified absent labels are
observed: their loss is −log(1 − p), in all three. Verified labels are not smoothed, and their g is
the label. k is by default the sum over the classes of the share of positives among known labels.

Departure: the authors give EPR and ROLE the true k of their data sets (VOC 1.5), which is unknown
where labels are missing; set `expected` to do the same. They take the logarithm of p + 1e-5, here
it is exact. With several processes R is computed from each one's part of the batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from balancemix.labels.table import LabelMatrix, Status
from balancemix.methods import losses
from balancemix.methods.base import Batch, Method, Request
from balancemix.methods.checks import require
from balancemix.methods.sampling import known_labels


class Observed(NamedTuple):
    """What is observed of a batch, B×K shares between 0 and 1; `estimate` is ROLE's g."""

    present: Tensor
    absent: Tensor  # verified
    negative: Tensor  # given as 0, for BCE
    estimate: Tensor | None = None


def surplus(confidence: Tensor, expected: float) -> Tensor:
    """Compute the predicted minus the expected number of positives of a row, divided by K.

    >>> surplus(torch.tensor([[0.5, 0.5], [1.0, 1.0]]), 1.0)
    tensor(0.2500)
    """
    return (confidence.sum(1).mean() - expected) / confidence.shape[1]


def label_step(
    logits: Tensor, given: Tensor, confidence: Tensor, expected: float, rate: float
) -> Tensor:
    """Step the logits of N×K labels g down the gradient of ROLE's loss of the matrix.

    Only given positives (1) are observed; 0 and −1 are not.

    >>> label_step(torch.zeros(1, 2), torch.tensor([[1, 0]]), torch.tensor([[0.5, 0.1]]), 1.0, 1.0)
    tensor([[ 0.2500, -0.2000]])
    """
    g = logits.sigmoid()
    slope = (given > 0) * (g - 1) + (g - confidence) + 2 * surplus(g, expected) * g * (1 - g)
    return logits - rate * slope / 2


@dataclass(kw_only=True)
class ANLS(Method):
    """`smoothing`: the share of each label that goes to its opposite."""

    alpha: float = 4.0
    smoothing: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0, 0.5, smoothing=self.smoothing)

    def start(
        self, given: LabelMatrix, epochs: int, seed: int = 0, verified: LabelMatrix | None = None
    ) -> Self:
        """Assume that unknown labels are negative."""
        super().start(given, epochs, seed, verified)
        table = self.table
        assumed = table.status.masked_fill(table.given < 0, Status.ABSENT)
        table.write(slice(None), assumed)
        return self

    def criterion(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute BCE of smoothed labels."""
        return losses.bce(logits, target + self.smoothing * (1 - 2 * target))

    def criterion_of_verified(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute BCE."""
        return losses.bce(logits, target)


@dataclass(kw_only=True)
class EPR(Method):
    """`expected`: positives of an image; None: the mean given. `strength`: BCE (0) to EPR (1)."""

    KEEPS: ClassVar[tuple[str, ...]] = ("positives",)
    alpha: float = 4.0
    expected: float | None = None
    strength: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0, 1, strength=self.strength)
        if self.expected is not None:
            require(0, math.inf, expected=self.expected)

    def start(
        self, given: LabelMatrix, epochs: int, seed: int = 0, verified: LabelMatrix | None = None
    ) -> Self:
        """Count the positives, unless `expected` is set."""
        super().start(given, epochs, seed, verified)
        _, known = known_labels(self.table.given)
        positives, rows = (self.table.given > 0).sum(0), len(self.table)
        # As many times more as there would be if all were known: exactly once if all are.
        mean = float((positives * (rows / known.clamp(min=1))).sum()) / rows
        self.positives = mean if self.expected is None else self.expected
        return self

    def batch_loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Compute the loss of observed labels, and add the batch's R to every label."""
        x, observed = self.observed(batch)
        logits = model(x)
        present, absent = losses.sides(logits)
        epr = losses.weigh(observed.present, observed.absent, present, absent)
        epr = epr + self.regulariser(logits)
        bce = losses.weigh(observed.present, observed.negative, present, absent)
        return self.reduce(torch.lerp(bce, epr, self.strength))

    def observed(self, batch: Batch, *more: Tensor) -> tuple[Tensor, Observed]:
        """Mix the rows of a batch, what is observed of them, and `more` matrices."""
        index = batch.index.cpu()
        given, verified = self.table.given[index], self.table.verified(index)
        parts = (given > 0, verified & (given == 0), given == 0)
        matrices = [part.to(batch.x.device, torch.float32) for part in parts]
        x, *mixed = self.mixed(batch, batch.x, *matrices, *more)
        return x, Observed(*mixed)

    def regulariser(self, logits: Tensor) -> Tensor:
        """Compute R of a batch."""
        return surplus(losses.widened(logits).sigmoid(), self.positives).square()


@dataclass(kw_only=True)
class ROLE(EPR):
    """`rate`: the step size of a label's logit; above 4 it may overshoot.

    Departure: the matrix steps once an epoch, down its loss on the whole data by plain gradient
    descent, rather than in each batch by the model's Adam at ten times its rate. Each label still
    steps once an epoch, never sees a mixed image, and is the same in all processes.
    """

    KEEPS = ("positives", "matrix")
    rate: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0, math.inf, rate=self.rate)

    def start(
        self, given: LabelMatrix, epochs: int, seed: int = 0, verified: LabelMatrix | None = None
    ) -> Self:
        """Start with given positives at 0.995, and unobserved labels drawn from 0.4 to 0.6."""
        super().start(given, epochs, seed, verified)
        unsure, sure = math.log(0.6 / 0.4), math.log(0.995 / 0.005)
        drawn = unsure * (2 * torch.rand(self.table.shape, generator=self.generator) - 1)
        drawn.masked_fill_(self.table.verified(), -sure)
        self._estimate(drawn.masked_fill(self.table.given > 0, sure))
        return self

    def request(self) -> Request:
        """Ask for plain confidence in every epoch: the matrix learns from it."""
        return Request(passes=(0,))

    def batch_loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Learn from observed and estimated labels."""
        index = batch.index.cpu()
        known = (self.table.given[index] > 0).float()
        estimate = torch.where(self.table.verified(index), known, self.matrix[index].sigmoid())
        x, observed = self.observed(batch, estimate.to(batch.x.device))
        assert observed.estimate is not None
        logits = model(x)
        present, absent = losses.sides(logits)
        of_observed = losses.weigh(observed.present, observed.absent, present, absent)
        cross = losses.combine(observed.estimate, present, absent)
        role = (of_observed + cross + self.regulariser(logits)) / 2
        bce = losses.weigh(observed.present, observed.negative, present, absent)
        return self.reduce(torch.lerp(bce, role, self.strength))

    def end_epoch(self, *confidence: Tensor) -> dict[str, float]:
        """Step the matrix."""
        given, plain = self.table.given, self.checked(confidence)[0]
        stepped = label_step(self.matrix, given, plain, self.positives, self.rate)
        self._estimate(torch.where(self.table.verified(), self.matrix, stepped))
        known = given >= 0
        flipped = (((self.matrix > 0) != (given > 0)) & known).sum() / known.sum()
        return super().end_epoch() | {"flipped": float(flipped)}

    def _estimate(self, matrix: Tensor) -> None:
        """Keep the logits, and make them the table's targets."""
        estimated = torch.where(matrix > 0, Status.PRESENT, Status.ABSENT)
        self.table.write(slice(None), estimated.masked_fill(self.table.given > 0, Status.CLEAN))
        self.matrix, self.table.soft = matrix, matrix.sigmoid().half()
