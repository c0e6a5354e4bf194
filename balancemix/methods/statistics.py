"""What the end of an epoch must know of all rows, added up batch by batch.

Odds (Eqs. 2–4) and mixtures (Eqs. 6–7) need of N×K confidences only sums and histograms of losses
by class. These fit into memory whatever N is, and those of batches, or of processes, add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from balancemix.labels.chunks import chunks
from balancemix.labels.histogram import (
    MOST_ROWS,
    add_losses,
    empty_histogram,
)
from balancemix.labels.mixtures import Fit, Mixtures, fit_histogram, label_loss
from balancemix.methods.losses import widened

_UNIT = 1 << 34  # confidences are added up as integers: 2²⁸ rows, the most, stay within 63 bits


@dataclass
class Statistics:
    """Sums over rows by class, in integers: those of parts add up exactly, in whatever order."""

    rows: Tensor  # (1,) int64
    positives: Tensor  # (K,) int64: given positives
    present: Tensor  # (K,) int64: sum of confidence over given positives, in units of 2⁻³⁴
    absent: Tensor  # (K,) int64: sum of 1 − confidence over given negatives, likewise
    histogram: Tensor | None  # (2, K, BINS) int64: of the losses, if there are to be mixtures

    @classmethod
    def empty(
        cls, classes: int, *, losses: bool = True, device: torch.device | str = "cpu"
    ) -> Self:
        """Make the statistics of no rows; without `losses` for the odds alone."""
        rows, positives, present, absent = (
            torch.zeros(length, dtype=torch.int64, device=device)
            for length in (1, classes, classes, classes)
        )
        histogram = empty_histogram(classes, device) if losses else None
        return cls(rows, positives, present, absent, histogram)

    def update(self, confidence: Tensor, given: Tensor) -> Self:
        """Add B rows: B×K confidences in presence and given labels.

        >>> confidence, given = torch.tensor([[0.9], [0.4], [0.2]]), torch.tensor([[1], [1], [0]])
        >>> Statistics.empty(1).update(confidence, given).presence
        tensor([0.6500], dtype=torch.float64)
        """
        self._check(confidence, given)
        device = self.present.device
        for rows in chunks(*given.shape):
            said, labels = widened(confidence[rows].to(device)), given[rows].to(device)
            positive, units = labels > 0, (said.double() * _UNIT).round_().long()
            self.positives += positive.sum(0)
            self.present += torch.where(positive, units, 0).sum(0)
            self.absent += torch.where(positive, 0, _UNIT - units).sum(0)
            if self.histogram is not None:
                add_losses(self.histogram, label_loss(labels, said), labels)
        self.rows += len(given)
        return self

    def merge(self, other: Statistics) -> Self:
        """Add the rows of another part of the data."""
        for mine, theirs in zip(self.tensors(), other.tensors(), strict=True):
            mine += theirs.to(mine.device)
        return self

    def tensors(self) -> list[Tensor]:
        """List the tensors that, summed over processes in place, make the statistics of all."""
        sums = [self.rows, self.positives, self.present, self.absent]
        return sums if self.histogram is None else [*sums, self.histogram]

    @property
    def presence(self) -> Tensor:
        """P(k), the mean confidence in given positives (Eq. 2); 0 where a class has none."""
        return self.present.double() / _UNIT / self.positives.clamp(min=1)

    @property
    def absence(self) -> Tensor:
        """A(k), the mean confidence in given negatives (Eq. 2); 0 where a class has none."""
        return self.absent.double() / _UNIT / (self.rows - self.positives).clamp(min=1)

    def scores(self, given: Tensor) -> Tensor:
        """Compute Eq. 3 for any rows of given labels, in time proportional to their positives."""
        return float(self.absence.sum()) + over_positives(given, self.presence - self.absence)

    def mixtures(self, *, fit: Fit = "raw", fewest: int = 10, separation: float = 0.0) -> Mixtures:
        """Fit the mixtures of the losses of all rows so far (Eqs. 6 and 7); see `fit_mixtures`."""
        if self.histogram is None:
            raise ValueError("these statistics were made without losses, there is nothing to fit")
        if int(self.rows) > MOST_ROWS:
            raise ValueError(f"{int(self.rows)} rows are more than the {MOST_ROWS} a bin can count")
        return fit_histogram(self.histogram, fit=fit, fewest=fewest, separation=separation)

    def _check(self, confidence: Tensor, given: Tensor) -> None:
        if confidence.shape != given.shape or given.shape[1:] != self.positives.shape:
            shapes = f"{tuple(confidence.shape)} and {tuple(given.shape)}"
            raise ValueError(
                f"confidence and labels must both be B×{len(self.positives)}, they are {shapes}"
            )
        if confidence.numel():
            least, most = confidence.aminmax()
            if not bool((least >= 0) & (most <= 1)):  # so of NaN too
                raise ValueError(f"confidences of {least:g} to {most:g} are not between 0 and 1")


def over_positives(given: Tensor, value: Tensor) -> Tensor:
    """Add up in each row the values (K) of the classes that it is given.

    >>> over_positives(torch.tensor([[1, 0, 1], [0, 0, 0]]), torch.tensor([1.0, 2.0, 4.0]))
    tensor([5., 0.], dtype=torch.float64)
    """
    value = value.to(given.device, torch.float64)
    total = torch.zeros(len(given), dtype=torch.float64, device=given.device)
    for rows in chunks(*given.shape):
        row, column = (given[rows] > 0).nonzero(as_tuple=True)
        total[rows].index_add_(0, row, value[column])
    return total
