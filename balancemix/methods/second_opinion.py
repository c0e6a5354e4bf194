"""Second opinion: train on labels that a judge has seen first.

Idea: a model judges labels badly once it has learned them. The judge (docs/judge.md) scores every
label by the *other* rows, in closed form and before training: η = P(present | x), and under a model
of the noise q = P(present | given, x). The network is then trained by Mixup on soft targets

    T = (1 − share)·q + share·η

Kernel ridge regression on the same targets makes other errors than the network. On features both
are solved, and the model to keep is the mean of their log-odds.

Fields: `share`, the part of each target that does not know the given label. `modelled`: off, q is
the given label, and no noise model is used. `form`: what learns T: "trained" (a network, by Mixup),
"closed" (kernel ridge regression, no epochs), "mean" (of both log-odds; features only) or "auto"
(mean on features, trained on images). `penalty` of kernel ridge regression on T: T is smooth, so
leave-one-out, which chooses the penalty for given labels, would choose next to none. `alpha` of
Mixup.
Cost: that of Mixup, and the judge once before training: seconds for thousands of rows.
BCE where share = alpha = 0, modelled is off and form is "trained".

An unknown label has no given value, so q = η: it is trained on T = η. Left out instead, it did
worse where most labels are unknown (docs/method.md). A verified label is trained on as given.

In the table PRESENT and ABSENT are labels with a target on the other side of a half, and P(clean)
is that of the noise model. With "mean", the network alone is scored before the last epoch.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal, Self

import torch
from torch import nn

from balancemix.errors import InputError
from balancemix.judge.opinion import Opinion
from balancemix.judge.ridge import Ridge
from balancemix.labels.table import LabelMatrix, Status
from balancemix.methods.base import Method
from balancemix.methods.checks import check_informed, require
from balancemix.methods.closed_form import ClosedForm
from balancemix.models.kernel import KernelMachine, MeanOfLogOdds

Form = Literal["auto", "trained", "closed", "mean"]


@dataclass(kw_only=True)
class SecondOpinion(Method):
    """`share`, `modelled`, `form`, `penalty`: see the module's docstring."""

    alpha: float = 4.0
    share: float = 0.4
    modelled: bool = True
    form: Form = "auto"
    penalty: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0, 1, share=self.share)
        if not 0 < self.penalty < math.inf:
            raise ValueError(f"penalty must be above 0, it is {self.penalty}")
        self.opinion: Opinion | None = None
        self.ridge: Ridge | None = None
        self.machine: KernelMachine | None = None  # solved by `start`, for the mean

    @property
    def closed_form(self) -> ClosedForm | None:
        """Fit T by kernel ridge regression alone, if that is the form."""
        if self.form != "closed":
            return None
        return ClosedForm("rbf", self._fixed_penalty, self.ridge)

    @property
    def _fixed_penalty(self) -> float | None:
        """The penalty of kernel ridge regression; None leaves it to leave-one-out."""
        return self.penalty if self._judged else None

    @property
    def needs_opinion(self) -> bool:
        """Whether the targets or the form depend on the judge."""
        return self._judged or self.form != "trained"

    @property
    def _judged(self) -> bool:
        """Whether the targets differ from the given labels."""
        return self.share > 0 or self.modelled

    def informed_by(self, opinion: Opinion, ridge: Ridge | None) -> Self:
        """Copy the method with the judge's opinion; a mean is solved by the `ridge`."""
        method = dataclasses.replace(self)
        method.opinion, method.ridge = opinion, ridge
        return method

    def start(
        self, given: LabelMatrix, epochs: int, seed: int = 0, verified: LabelMatrix | None = None
    ) -> Self:
        """Start with the judge's targets and, for the mean, solve for them."""
        opinion, ridge = self.opinion, self.ridge
        if self._judged:
            check_informed(opinion, "SecondOpinion")
        if self.form == "mean" and ridge is None:
            raise InputError(
                "form='mean' solves for the features as well: call informed_by with their Ridge, "
                "or use form='trained', for images"
            )
        super().start(given, epochs, seed, verified)
        if opinion is not None and self._judged:
            self._adopt(opinion)
        if self.form in ("auto", "mean") and ridge is not None:
            target, weight = self.table.rows(slice(None))
            penalty = self._fixed_penalty or ridge.choose(target, weight > 0).best
            self.machine = ridge.solve(target, penalty, weight > 0)
        return self

    def _adopt(self, opinion: Opinion) -> None:
        """Make the judge's targets the table's."""
        given = self.table.given
        if opinion.posterior.shape != given.shape:
            shapes = f"{tuple(opinion.posterior.shape)}, not {tuple(given.shape)}"
            raise InputError(f"the opinion is of labels of shape {shapes}: judge these labels")
        target = opinion.targets(given, self.share, modelled=self.modelled).half()
        there = target > 0.5
        changed = torch.where(there, Status.PRESENT, Status.ABSENT)
        unchanged = (there == (given > 0)) & (given >= 0)
        status = torch.where(unchanged, Status.CLEAN, changed)
        clean = torch.where(given > 0, opinion.posterior, 1 - opinion.posterior)
        self.table.write(slice(None), status, clean)
        self.table.soft = target

    def members(self, model: nn.Module) -> list[nn.Module]:
        """Pair the network with the machine at the end of the last epoch."""
        if self.machine is None or self.epoch + 1 < self.epochs:
            return [model]
        device = next(model.parameters()).device
        return [MeanOfLogOdds(model, self.machine.to(device))]
