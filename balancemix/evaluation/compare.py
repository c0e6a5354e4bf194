"""Did it help? The average precision of two models on the same rows, paired by class."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from torch import Tensor

from balancemix.evaluation.metrics import Convention, average_precision
from balancemix.evaluation.resampling import Floats, resampled_ap

Ints = npt.NDArray[np.int64]
Over = Literal["test rows", "classes"]
CLASS_DRAWS = 10_000
_WORK = 400_000_000  # labels scored in all draws of rows together, if these are not too few
_FEWEST, _MOST = 200, 1000  # draws of rows


@dataclass(frozen=True)
class Difference:
    """The mean difference of AP over classes, in points, with its 95 % interval.

    The interval is NaN where there is too little to draw from.
    """

    classes: int
    before: float
    after: float
    low: float
    high: float

    @property
    def value(self) -> float:
        """The mean difference, after minus before."""
        return self.after - self.before

    @property
    def verdict(self) -> Literal["better", "worse", "not shown"]:
        """Whether the interval leaves out 0, and on which side."""
        if self.low > 0:
            return "better"
        return "worse" if self.high < 0 else "not shown"


@dataclass(frozen=True)
class Comparison:
    """Two models by class: AP in percent before and after, NaN for a class without positives.

    `over` says what was drawn again for the intervals: the test rows, the same for both models, or
    the classes, where there are no predictions. Neither includes how much a result changes with
    the seed of a training.
    """

    classes: Sequence[str]
    before: Floats
    after: Floats
    groups: Mapping[str, Ints]
    over: Over
    draws: int
    all: Difference
    by_group: Mapping[str, Difference]

    @property
    def difference(self) -> Floats:
        """The difference of each class, after minus before."""
        return self.after - self.before

    def ranked(self) -> list[int]:
        """List the classes that have an AP, what gained most first."""
        scored = np.flatnonzero(~np.isnan(self.difference))
        return [int(k) for k in scored[np.argsort(-self.difference[scored], kind="stable")]]

    def as_json(self) -> dict[str, Any]:
        """Describe the comparison by plain values."""
        return {
            "mAP": _facts(self.all),
            "verdict": self.all.verdict,
            "groups": {name: _facts(each) for name, each in self.by_group.items()},
            "interval_over": self.over,
            "draws": self.draws,
            "classes": {
                self.classes[k]: {"before": float(self.before[k]), "after": float(self.after[k])}
                for k in range(len(self.classes))
            },
        }


def compare_scores(
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    classes: Sequence[str],
    groups: Mapping[str, Tensor],
    seed: int = 0,
) -> Comparison:
    """Compare the AP of K classes, in percent, with intervals over draws of classes.

    >>> result = compare_scores([50.0, 60.0], [55.0, 61.0], ["cat", "dog"], {})
    >>> result.all.value, result.ranked()
    (3.0, [0, 1])
    """
    first, second = (np.asarray(each, dtype=np.float64) for each in (before, after))
    generator = np.random.default_rng(seed)

    def interval(index: Ints) -> tuple[float, float]:
        change = (second - first)[index]
        if len(change) < 2:
            return math.nan, math.nan
        drawn = generator.integers(0, len(change), (CLASS_DRAWS, len(change)))
        return _central(change[drawn].mean(1))

    return _compared(first, second, classes, groups, "classes", CLASS_DRAWS, interval)


def compare_predictions(
    truth: Tensor,
    before: Tensor,
    after: Tensor,
    classes: Sequence[str],
    groups: Mapping[str, Tensor],
    convention: Convention = "sklearn",
    seed: int = 0,
) -> Comparison:
    """Compare the N×K logits of two models, with intervals over draws of rows.

    Each draw takes the same rows for both. Within draws, equal scores are one rank.
    """
    first, second = (
        100 * average_precision(truth, logits, convention).numpy() for logits in (before, after)
    )
    draws = min(max(_WORK // max(truth.numel(), 1), _FEWEST), _MOST)
    drawn = 100 * (
        resampled_ap(truth, after, draws, seed) - resampled_ap(truth, before, draws, seed)
    )

    def interval(index: Ints) -> tuple[float, float]:
        scored = ~np.isnan(drawn[index])
        count = scored.sum(0)
        sums = np.where(scored, drawn[index], 0.0).sum(0)
        return _central(sums[count > 0] / count[count > 0])

    return _compared(first, second, classes, groups, "test rows", draws, interval)


def _compared(
    first: Floats,
    second: Floats,
    classes: Sequence[str],
    groups: Mapping[str, Tensor],
    over: Over,
    draws: int,
    interval: Callable[[Ints], tuple[float, float]],
) -> Comparison:
    scored = ~np.isnan(first - second)

    def difference(index: Ints) -> Difference:
        low, high = interval(index) if len(index) else (math.nan, math.nan)
        before, after = (
            float(each[index].mean()) if len(index) else math.nan for each in (first, second)
        )
        return Difference(len(index), before, after, low, high)

    members = {name: index.numpy() for name, index in groups.items()}
    kept = {name: index[scored[index]] for name, index in members.items()}
    return Comparison(
        classes=classes,
        before=first,
        after=second,
        groups=members,
        over=over,
        draws=draws,
        all=difference(np.flatnonzero(scored)),
        by_group={name: difference(index) for name, index in kept.items() if len(index)},
    )


def _central(draws: Floats) -> tuple[float, float]:
    """Return the central 95 % of draws."""
    if not len(draws):
        return math.nan, math.nan
    low, high = np.percentile(draws, [2.5, 97.5])
    return float(low), float(high)


def _facts(each: Difference) -> dict[str, Any]:
    names = ("classes", "before", "after", "value", "low", "high")
    return {"difference" if name == "value" else name: getattr(each, name) for name in names}


def extremes(comparison: Comparison, most: int) -> Iterator[tuple[str, int]]:
    """Yield ("gained" or "lost", class) for the classes that changed most, at most `most` each."""
    ranked, change = comparison.ranked(), comparison.difference
    yield from (("gained", k) for k in ranked[:most] if change[k] > 0)
    yield from (("lost", k) for k in ranked[::-1][:most] if change[k] < 0)
