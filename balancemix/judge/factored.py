"""Factored: what ridge regression asks of rows, in whatever form they were factored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from balancemix.models.kernel import KernelMachine

Errors = Callable[[Sequence[float]], list[float]]  # of each penalty of a grid


@dataclass(eq=False)
class Factored(ABC):
    """N rows of features, factored once to be fitted to any N×K targets."""

    features: Tensor  # N×D, raw
    mean: Tensor  # D: they standardise the features
    scale: Tensor
    landmarks: Tensor  # M×D, standardised: what rows are compared with; 0×D for linear regression
    key: bytes | None = field(default=None, kw_only=True)  # where a stage is stored: of what it is

    for_one_penalty: ClassVar[bool] = False  # whether each penalty takes a factor of its own

    def __len__(self) -> int:
        return len(self.features)

    @property
    def device(self) -> torch.device:
        """Where matrices are multiplied."""
        return self.mean.device

    def standardised(self, features: Tensor) -> Tensor:
        """Standardise rows of raw features."""
        return (features.to(self.device).float() - self.mean) / self.scale

    def machine(self, coefficients: Tensor, intercept: Tensor) -> KernelMachine:
        """Make what scores any rows by their similarity to the landmarks."""
        return KernelMachine(self.mean, self.scale, self.landmarks, coefficients, intercept)

    @abstractmethod
    def left_out(self, target: Tensor, penalty: float, groups: Sequence[Tensor] = ()) -> Tensor:
        """Score every row of N×K targets by the others, rows of a group by those of others."""

    @abstractmethod
    def errors(self, target: Tensor, counted: Tensor, groups: Sequence[Tensor] = ()) -> Errors:
        """Prepare the leave-one-out error of N×K targets, of those that are `counted`.

        Where there are many rows, some of them are enough.
        """

    @abstractmethod
    def solve(self, target: Tensor, penalty: float) -> KernelMachine:
        """Fit all rows to N×K targets."""

    @abstractmethod
    def only(self, rows: Tensor) -> Factored:
        """Factor some of the rows alone, standardised as they are."""

    @abstractmethod
    def at(self, rows: Tensor, penalty: float) -> tuple[Factored, float]:
        """Factor some of the rows for one penalty; returns what of it is left to ask for."""

    @abstractmethod
    def places(self, rows: Tensor) -> Tensor | slice:
        """Say which coefficients of all rows those of some rows are."""


def class_weights(target: Tensor) -> Tensor:
    """Weigh the classes of N×K targets so that rare ones count as much as others.

    >>> class_weights(torch.tensor([[1.0, 1.0], [1.0, 0.0]]))
    tensor([1., 2.])
    """
    return len(target) / target.sum(0).clamp(min=1e-3)
