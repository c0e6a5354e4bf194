"""From answers to figures: errors of each kind in all labels, with intervals; pure arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from balancemix.auditing.judged import Judged
from balancemix.auditing.probability import SIDES
from balancemix.estimates import (
    Calibration,
    Estimate,
    among_top,
    both_ways,
    by_class,
    calibrate,
    from_pictures,
    from_strata,
    lower,
    missing_rate,
    pictures_with_errors,
    wrong_rate,
)
from balancemix.estimates.rates import Side

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
TOPS = (500, 1000, 2000, 5000, 10_000, 20_000)  # of a list; the first that enough was seen of


@dataclass(frozen=True)
class Ends:
    """An estimate with unsure answers counted as right, and once more with each as an error."""

    right: Estimate
    error: Estimate

    @property
    def value(self) -> float:
        """The estimate, unsure answers counted as right."""
        return self.right.value

    @property
    def low(self) -> float:
        """The lower end, unsure answers counted as right."""
        return self.right.low

    @property
    def high(self) -> float:
        """The upper end, unsure answers counted as errors."""
        return self.error.high

    def as_json(self) -> dict[str, float]:
        """Describe it by plain values."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Figures:
    """What is known of one problem (wrong, missing, unknown), from labels drawn at random.

    `labels` of all images have such a given value, `seen` of these were looked at, and `errors` are
    errors (of unknown ones: present). `rate` is that of the given labels that are wrong, of what is
    there that is not given, or of the unknown labels that are present. `images` have such an error.
    Of the `top[0]` labels that are ranked first, `top[1]` are errors. `calibration` makes doubt a
    probability; `cautious` is lower, so that its sum is the lower end of the total.
    """

    labels: int
    seen: int
    errors: int
    unsure: int
    total: Ends
    rate: Ends
    images: Ends | None = None
    top: tuple[int, Ends] | None = None
    classes: Mapping[str, Estimate] = field(default_factory=dict)
    calibration: Calibration | None = None
    cautious: Calibration | None = None

    def as_json(self) -> dict[str, Any]:
        """Describe the figures by plain values."""
        facts: dict[str, Any] = {
            "labels": self.labels,
            "seen": self.seen,
            "errors_seen": self.errors,
            "unsure": self.unsure,
            "total": self.total.as_json(),
            "rate": self.rate.as_json(),
            "rough": self.total.right.rough,
        }
        if self.images is not None:
            facts["images"] = self.images.as_json()
        if self.top is not None:
            facts["top"] = {"labels": self.top[0], **self.top[1].as_json()}
        facts["classes"] = {
            name: {"value": each.value, "low": each.low, "high": each.high}
            for name, each in self.classes.items()
        }
        return facts


@dataclass(frozen=True)
class Settled:
    """Whole images that people settled: their rows, and n×K of 1, 0 and −1 for unsure."""

    rows: Ints
    truth: Array


def measure_pictures(judged: Judged, rows: Ints, settled: Settled) -> dict[str, Figures]:
    """Estimate the errors among the labels of `rows` from images drawn at random from these."""
    parts = {name: _Part(judged, rows, settled, name) for name in SIDES}
    return {
        name: _figures(judged, rows, settled, part, parts)
        for name, part in parts.items()
        if part.labels
    }


class _Part:
    """The labels of one side, in all images and in those that were settled."""

    def __init__(self, judged: Judged, rows: Ints, settled: Settled, problem: str) -> None:
        value = SIDES[problem]
        self.problem = problem
        self.every: Array = judged.given[rows].numpy() == value
        self.mask: Array = judged.given[settled.rows].numpy() == value
        self.error: Array = self.mask & (settled.truth == (0 if value == 1 else 1))
        self.unsure: Array = self.mask & (settled.truth < 0)
        self.labels = int(self.every.sum())
        side = {"wrong": 0, "missing": 1}.get(problem)
        if side is None:  # the judge expects nothing of unknown labels
            self.sums, self.all_sums = np.zeros((len(settled.rows), 2)), np.zeros((len(rows), 2))
        else:
            sums = np.stack([judged.expected[:, side], judged.disagreement[:, side]], axis=1)
            self.sums, self.all_sums = (
                sums[each].astype(np.float64) for each in (settled.rows, rows)
            )

    def total(self, errors: Floats) -> Estimate:
        """Estimate the errors of all images from those of each settled one."""
        return from_pictures(errors, self.sums, self.all_sums).within(0, self.labels)

    def side(self, *, unsure: bool) -> Side:
        """Return the errors of each image, unsure answers among them or not."""
        errors = self.error | self.unsure if unsure else self.error
        return Side(errors.sum(1).astype(np.float64), self.sums, self.all_sums)


def _figures(
    judged: Judged, rows: Ints, settled: Settled, part: _Part, parts: Mapping[str, _Part]
) -> Figures:
    def ends(estimate: Callable[[Floats], Estimate], within: Array) -> Ends:
        counts = ((part.error & within).sum(1), (part.unsure & within).sum(1))
        return Ends(*both_ways(estimate, *counts))

    whole = np.ones_like(part.mask)
    total = ends(part.total, whole)
    given = parts["wrong"].labels
    if part.problem == "missing":
        pairs = [
            (parts["wrong"].side(unsure=unsure), part.side(unsure=unsure))
            for unsure in (False, True)
        ]
        rate = Ends(*(missing_rate(*pair, given) for pair in pairs))
    else:
        rate = Ends(wrong_rate(total.right, part.labels), wrong_rate(total.error, part.labels))
    doubt = judged.doubt.numpy()
    judgeable = np.isfinite(doubt[settled.rows])
    sure = part.mask & ~part.unsure & judgeable
    calibration, cautious = _calibrations(
        doubt[rows][part.every],
        doubt[settled.rows][sure],
        part.error[sure],
        "wrong" if part.problem == "wrong" else "missing",
        part.total((part.error & judgeable).sum(1).astype(np.float64)),
    )
    return Figures(
        labels=part.labels,
        seen=int(part.mask.sum()),
        errors=int(part.error.sum()),
        unsure=int(part.unsure.sum()),
        total=total,
        rate=rate,
        images=ends(lambda errors: pictures_with_errors(errors, len(rows)), whole),
        top=_top_of_pictures(part, doubt, rows, settled),
        classes=_classes(judged, part, parts["wrong"]),
        calibration=calibration,
        cautious=cautious,
    )


def _classes(judged: Judged, part: _Part, given: _Part) -> dict[str, Estimate]:
    counts = (part.error.sum(0), (part.mask & ~part.unsure).sum(0), part.every.sum(0))
    each = by_class(*counts, given.every.sum(0))
    named = zip(judged.classes, each, strict=True)
    return {name: estimate for name, estimate in named if estimate is not None}


def _calibrations(
    every: Floats, doubt: Floats, error: Array, side: Literal["wrong", "missing"], total: Estimate
) -> tuple[Calibration | None, Calibration | None]:
    """Calibrate a side, and once more with caution; None where nothing of it could be judged."""
    if not np.isfinite(every).any() or not len(doubt):
        return None, None
    likeliest = calibrate(doubt, error, side, every, total)
    return likeliest, lower(likeliest, every, total)


def _top_of_pictures(
    part: _Part, doubt: Array, rows: Ints, settled: Settled
) -> tuple[int, Ends] | None:
    for most, least in _thresholds(doubt[rows][part.every]):
        listed = part.mask & (doubt[settled.rows] >= least)
        pair = [
            among_top(((part.error | extra) & listed).sum(1), listed.sum(1), most)
            for extra in (np.zeros_like(part.unsure), part.unsure)
        ]
        if pair[0] is not None and pair[1] is not None:
            return most, Ends(pair[0], pair[1])
    return None


def _thresholds(doubt: Floats) -> list[tuple[int, float]]:
    """List the sizes of lists to speak of, and the least doubt in each."""
    ranked = np.sort(doubt[np.isfinite(doubt)])[::-1]
    return [(most, float(ranked[most - 1])) for most in TOPS if most <= len(ranked)]


def measure_labels(
    judged: Judged,
    rows: Ints,
    places: tuple[Ints, Ints],
    verdicts: Ints,
    stratum: Ints,
    sizes: Sequence[int],
) -> Figures:
    """Estimate the wrong labels from given labels that were drawn by rank.

    `places` are the row and column of each label that was answered, `verdicts` 1 (it is wrong), 0
    and −1 (unsure), `stratum` where it was drawn from.
    """
    doubt = judged.doubt.numpy()
    seen = doubt[places]
    error, unsure = verdicts == 1, verdicts < 0

    def total(errors: Array) -> Estimate:
        return from_strata([errors[stratum == h] for h in range(len(sizes))], list(sizes))

    def ends(within: Array) -> Ends:
        return Ends(total(error & within), total((error | unsure) & within))

    labels = int(sum(sizes))
    whole = ends(np.ones_like(error))
    given = judged.given[rows].numpy() == 1
    every, sure = doubt[rows][given], ~unsure & np.isfinite(seen)
    tops = _thresholds(every)
    calibration, cautious = _calibrations(
        every, seen[sure], error[sure], "wrong", total(error & np.isfinite(seen))
    )
    return Figures(
        labels=labels,
        seen=len(verdicts),
        errors=int(error.sum()),
        unsure=int(unsure.sum()),
        total=whole,
        rate=Ends(wrong_rate(whole.right, labels), wrong_rate(whole.error, labels)),
        top=(tops[0][0], _capped(ends(seen >= tops[0][1]), tops[0][0])) if tops else None,
        calibration=calibration,
        cautious=cautious,
    )


def _capped(ends: Ends, most: int) -> Ends:
    return Ends(ends.right.within(0, most), ends.error.within(0, most))
