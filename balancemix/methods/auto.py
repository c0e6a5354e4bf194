"""Auto: let the given labels choose the method.

Idea: nobody knows which method suits the noise of a data set, and there is no true label to find
out by. But wrong labels that are independent of the row lower the score of every method alike: the
method that ranks held-out *given* labels best usually ranks the true ones best. So each candidate
is trained on four fifths of the rows, and scored on the given labels of the others:

    chosen = argmax over candidates c of mAP(c trained on 80 %; given labels of the other 20 %)

The chosen one is then trained on all rows, as if it had been named. A few hundred noisy labels
cannot tell apart what is nearly equal, so second opinion (on features, the mean) is taken unless
another candidate is ahead of it by more than the standard error of their difference over the
classes. Of equal scores the first of `CANDIDATES` counts, which is the cheapest. Unknown labels,
test rows and true labels play no part.

Cost: on features, that of four trainings on 80 % of the rows (BCE, Mixup, BalanceMix and one for
second opinion; the closed forms and the means of log-odds share what these compute) and of a kernel
matrix. On images the candidates are compared on the features of the frozen backbone, and are those
that can train the network: BCE, Mixup, BalanceMix, second opinion. To choose among all of them,
make features with `balancemix embed` and train on those.

Limits: errors that depend on the row in the same way in both parts (a class that is always labelled
when another is present) are learned and rewarded. It is no setting of BCE, unlike the other
methods: it becomes what it chooses.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from balancemix.errors import InputError, suggest
from balancemix.labels.table import LabelMatrix
from balancemix.methods.balancemix import BalanceMix
from balancemix.methods.base import Method
from balancemix.methods.closed_form import KernelRidge
from balancemix.methods.mixup import BCE, Mixup
from balancemix.methods.second_opinion import SecondOpinion

# The cheapest first.
CANDIDATES: dict[str, Callable[[], Method]] = {
    "kernel-ridge": KernelRidge,
    "second-opinion-closed": partial(SecondOpinion, form="closed"),
    "bce": BCE,
    "bce-and-kernel-ridge": partial(
        SecondOpinion, share=0.0, modelled=False, alpha=0.0, form="mean"
    ),
    "mixup": Mixup,
    "second-opinion-trained": partial(SecondOpinion, form="trained"),
    "second-opinion-mean": partial(SecondOpinion, form="mean"),
    "balancemix": BalanceMix,
}
# The mean of the log-odds of two other candidates.
MEANS = {
    "bce-and-kernel-ridge": ("bce", "kernel-ridge"),
    "second-opinion-mean": ("second-opinion-trained", "second-opinion-closed"),
}
PREFERRED = (
    "second-opinion-mean",
    "second-opinion-trained",
)  # the first of these, if it is as good
TRAINED = ("bce", "mixup", "second-opinion-trained", "balancemix")  # also on images


@dataclass(kw_only=True)
class Auto(Method):
    """The module's docstring explains the choice; the fields:

    candidates: names of `CANDIDATES` to choose among; None is all that the data allow.
    holdout: share of the training rows to score on.
    reduction: of every candidate that is trained. `alpha` is each candidate's own.
    """

    candidates: list[str] | None = None
    holdout: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha:
            raise ValueError(f"alpha is each candidate's own, it cannot be {self.alpha:g} for all")
        if not 0 < self.holdout < 1:
            raise ValueError(f"holdout must be between 0 and 1, it is {self.holdout}")
        for name in self.candidates or ():
            if name not in CANDIDATES:
                raise ValueError(f"candidates: {name!r}: {suggest(name, list(CANDIDATES))}")
        if self.candidates is not None and len(set(self.candidates)) < 2:
            raise ValueError("candidates must name at least two methods to choose among")

    def among(self, *, features: bool) -> list[str]:
        """List the candidates for rows of features, or of images; the cheapest first."""
        if self.candidates is None:
            return [name for name in CANDIDATES if features or name in TRAINED]
        for name in self.candidates:
            if name in MEANS and not features:
                raise InputError(
                    f"method.candidates: {name} is for features, which `balancemix embed` makes; "
                    f"name others, such as {' or '.join(MEANS[name])}"
                )
        return [name for name in CANDIDATES if name in self.candidates]

    def candidate(self, name: str) -> Method:
        """Make a candidate by its name."""
        method = CANDIDATES[name]()
        return method if method.closed else dataclasses.replace(method, reduction=self.reduction)

    def start(
        self, given: LabelMatrix, epochs: int, seed: int = 0, verified: LabelMatrix | None = None
    ) -> Self:
        """Refuse: a choice comes first."""
        raise InputError("auto has to choose a method first: `balancemix train --method auto` does")


@dataclass(frozen=True)
class Choice:
    """What was compared and what was chosen.

    `scores` are mAP in percent on the given labels of `held_out` rows, after training on `rows`
    others; the cheapest candidate comes first. `errors` are standard errors of the difference to
    second opinion. `settings` are the method's section of a plan.
    """

    chosen: str
    scores: dict[str, float]
    errors: dict[str, float]
    settings: dict[str, Any]
    rows: int
    held_out: int

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Choice:
        """Read what was stored of a choice; a ValueError says what is wrong with it."""
        try:
            choice = cls(**{field.name: facts[field.name] for field in dataclasses.fields(cls)})
            numbers = (
                *choice.scores.values(),
                *choice.errors.values(),
                choice.rows,
                choice.held_out,
            )
            known = choice.chosen in choice.scores and choice.errors.keys() == choice.scores.keys()
            if known and all(map(math.isfinite, numbers)):
                return choice
        except (KeyError, TypeError, AttributeError, OverflowError):
            pass
        raise ValueError("it is not the choice of a method")

    @property
    def reason(self) -> str:
        """Why this one, of all scores."""
        best = max(self.scores, key=self.scores.__getitem__)
        if self.scores[best] > self.scores[self.chosen]:
            return f"{best} is ahead by no more than a standard error over the classes"
        if self.chosen not in PREFERRED and any(name in self.scores for name in PREFERRED):
            return "it is ahead of second opinion by more than a standard error over the classes"
        return "no other scored higher"

    def table(self) -> list[dict[str, Any]]:
        """List the candidates, their scores, and which was taken."""
        return [
            {
                "candidate": name,
                "held-out mAP": score,
                "choice": "taken" if name == self.chosen else "",
            }
            for name, score in self.scores.items()
        ]
