"""Ridge regression and kernel ridge regression: models that are solved, not trained.

Idea: least squares on the labels as given, shrunk towards the mean of each class by a penalty λ.
One factorisation of the features solves all classes and gives, for every label, the score that the
other rows alone predict (leave-one-out).

    score(x) = ȳ + Σᵢ k(x, xᵢ)·cᵢ,   c = (k(X, X) + λ)⁻¹ (y − ȳ)

`ridge` is linear, k(a, b) = aᵀb; `kernel-ridge` has k(a, b) = exp(−‖a − b‖² / 2D). Both read
standardised features; of images, those of the frozen backbone. λ has the least leave-one-out error
against the given labels (see `Ridge.choose`).

Fields: none. Cost: seconds for thousands of rows; there are no epochs. The label table keeps the
given labels, and the stored confidence is leave-one-out: that of rows that were not fitted.

Where labels are unknown (−1), each class is fitted on its known rows, and scored in all. Verified
labels are fitted as others are.

BCE at no setting: the loss is the squared error. Tests compare with scikit-learn instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from balancemix.judge.factor import Kernel
from balancemix.judge.penalty import Penalty
from balancemix.judge.ridge import Ridge
from balancemix.labels.table import check_given
from balancemix.methods.base import Method
from balancemix.models.kernel import KernelMachine


@dataclass(frozen=True)
class ClosedForm:
    """How a method's model is solved."""

    kernel: Kernel = "rbf"
    penalty: float | None = None  # None: that with the least leave-one-out error
    ridge: Ridge | None = None  # the training rows, if they are factored already


class Solution(NamedTuple):
    """A model in closed form, and what its leave-one-out scores say."""

    machine: KernelMachine
    penalty: Penalty
    confidence: Tensor  # N×K: the score of each row by the others, clipped to 0 … 1


def solve_targets(
    ridge: Ridge, target: Tensor, known: Tensor | None = None, penalty: float | None = None
) -> Solution:
    """Fit N×K targets, or those that are known.

    Without a `penalty`, it is the one with the least leave-one-out error.
    """
    chosen = ridge.choose(target, known) if penalty is None else Penalty(penalty, [], [])
    left_out = ridge.leave_one_out(target, chosen.best, known)
    machine = ridge.solve(target, chosen.best, known)
    return Solution(machine, chosen, left_out.clamp(0, 1))


@dataclass(kw_only=True)
class RidgeRegression(Method):
    """Linear ridge regression; see the module's docstring."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha or self.reduction != "sum":
            raise ValueError(
                "a method that is solved, not trained, has neither alpha nor reduction"
            )

    @property
    def closed_form(self) -> ClosedForm:
        """Fit the given labels by a linear function of the features."""
        return ClosedForm("linear")

    def solve(self, ridge: Ridge, given: Tensor) -> KernelMachine:
        """Fit N×K given labels of the rows that were factored; unknown ones (−1) are left out."""
        check_given(given)
        return solve_targets(ridge, (given > 0).float(), given >= 0).machine


@dataclass(kw_only=True)
class KernelRidge(RidgeRegression):
    """Kernel ridge regression; see the module's docstring."""

    @property
    def closed_form(self) -> ClosedForm:
        """Fit the given labels by similarities of rows."""
        return ClosedForm("rbf")
