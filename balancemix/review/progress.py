"""What a review has reached, and what is left: each number with its interval, or why there is none.

Everything here follows from the findings and the log, so it is the same after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from balancemix.data.decisions.states import LabelState
from balancemix.estimates.estimate import Estimate
from balancemix.estimates.shares import wilson
from balancemix.review import probes
from balancemix.review.advice import ENOUGH, NEXT, STOP, advise, fixes_ahead, in_order, stops_after
from balancemix.review.answered import Answer
from balancemix.review.order import (
    GAMMA,
    Bools,
    Floats,
    Ints,
    Listed,
    corrected,
    picture_order,
    worth_of,
)
from balancemix.review.pace import fixes_a_minute, pace_of, seconds_each

POINTS = 100  # of the curve
SIDES = {"wrong": 1, "missing": 0, "unknown": -1}
States = Mapping[tuple[int, int], LabelState]
Json = dict[str, Any]


@dataclass(frozen=True)
class Known:
    """What is known of the findings: 1 an error, 0 right, −1 not known; and which are open."""

    error: Ints
    open_: Bools
    probed: Bools
    swept: Bools


def known_of(findings: Listed, states: States, answers: Iterable[Answer]) -> Known:
    """Look up what people say of each finding."""
    place = places(findings)
    error = np.full(len(place), -1, dtype=np.int64)
    open_, probed, swept = np.ones(len(place), dtype=bool), *np.zeros((2, len(place)), dtype=bool)
    for key, i in place.items():
        state = states.get(key)
        if state is None or state.state == "open":
            continue
        open_[i] = False
        if state.verdict is not None:
            error[i] = (state.verdict == "present") == (findings.given[i] < 1)
    for each in answers:
        found = place.get((each.row, each.column))
        if found is not None:
            probed[found], swept[found] = each.probe, each.mode == "sweep" and not each.probe
    return Known(error, open_, probed, swept)


def places(findings: Listed) -> dict[tuple[int, int], int]:
    """Number the findings by row and column."""
    pairs = zip(findings.row.tolist(), findings.column.tolist(), strict=True)
    return {pair: i for i, pair in enumerate(pairs)}


def progress(
    findings: Listed,
    states: States,
    answers: Sequence[Answer],
    given: Sequence[int],
    gamma: float = GAMMA,
    stop: float = STOP,
) -> Json:
    """Compute what the Progress page shows; `given` counts the given labels of each class."""
    known, pace = known_of(findings, states, answers), pace_of(answers)
    q = corrected(findings.given, findings.p, known.error)
    rows = picture_order(findings, known.open_, known.error, given, pace, gamma)
    ahead = in_order(rows, findings.row[known.open_], q[known.open_])
    worth = worth_of(findings, known.error, given, gamma)
    weight = probes.weigh_probes(findings, worth, known.open_, known.probed, known.swept, pace)
    left = probes.what_is_left(findings, known.open_, known.probed, weight, known.error)
    fixed = sum(each.is_fix for each in answers)
    seconds = seconds_each(answers, pace)
    before = _fixes_before(findings, known, answers, given, gamma)
    advice = advise(len(answers), fixed, ahead, before, left.estimate, seconds, stop)
    return {
        "answered": len(answers),
        "fixed": fixed,
        "unsure": sum(each.verdict is None for each in answers),
        "seconds": round(sum(each.seconds for each in answers)),
        "findings": len(findings.p),
        "open": int(known.open_.sum()),
        "expected": round(float(findings.p[findings.given >= 0].sum()), 1),
        "left": interval(left.estimate),
        "probes": int(left.drawn),
        "advice": {**advice._asdict(), "stop": stop},
        "curve": {
            "past": past(answers),
            "ahead": future(len(answers), fixed, ahead, left.estimate),
            "stops": None if (n := stops_after(ahead, stop)) is None else len(answers) + n,
        },
        "precision": precision(findings, answers),
        "minute": {
            "last": rounded(fixes_a_minute(answers[-NEXT:])),
            "first": rounded(fixes_a_minute(answers[:NEXT])),
            "next": rounded(60 * fixes_ahead(ahead) / (seconds * min(NEXT, len(ahead))))
            if len(ahead)
            else None,
        },
        "classes": by_class(findings, known, q, answers, len(given)),
    }


def _fixes_before(
    findings: Listed, known: Known, answers: Sequence[Answer], given: Sequence[int], gamma: float
) -> float | None:
    """Compute what the next 50 answers should have fixed 50 answers ago."""
    if len(answers) < 2 * NEXT:
        return None
    place = places(findings)
    again = [place[key] for each in answers[-NEXT:] if (key := (each.row, each.column)) in place]
    error, open_ = known.error.copy(), known.open_.copy()
    error[again], open_[again] = -1, True
    q = corrected(findings.given, findings.p, error)
    rows = picture_order(findings, open_, error, given, pace_of(answers[:-NEXT]), gamma)
    return fixes_ahead(in_order(rows, findings.row[open_], q[open_]))


def past(answers: Sequence[Answer]) -> list[tuple[int, int]]:
    """Draw the labels fixed by answers given: at most 100 points, the last one now."""
    total = np.cumsum([0, *(each.is_fix for each in answers)])
    at = np.unique(np.linspace(0, len(answers), min(POINTS, len(answers) + 1)).round().astype(int))
    return [(int(i), int(total[i])) for i in at]


def future(
    answered: int, fixed: int, ahead: Floats, left: Estimate | None
) -> list[tuple[float | None, ...]]:
    """Forecast the curve: answers, labels fixed, and the ends of an interval where it is measured.

    The middle sums up q. At the end of the list the interval is that of the probes, widened to hold
    what q says.
    """
    total = np.concatenate([[0.0], ahead.cumsum()])
    whole = float(total[-1])
    low = high = None
    if left is not None and whole > 0:
        low, high = min(1.0, left.low / whole), max(1.0, left.high / whole)
    at = np.unique(np.linspace(0, len(ahead), min(POINTS, len(ahead) + 1)).round().astype(int))
    points = []
    for i in at.tolist():
        more = float(total[i])
        ends = [None if end is None else round(fixed + more * end, 1) for end in (low, high)]
        points.append((answered + i, round(fixed + more, 1), *ends))
    return points


def precision(findings: Listed, answers: Sequence[Answer]) -> Json:
    """Say how often a finding is right: of all answers, of the probes alone, and of each side."""
    place = places(findings)
    asked = []
    for each in answers:
        i = place.get((each.row, each.column))
        p = each.p if each.p is not None or i is None else float(findings.p[i])
        if p is not None and each.mode != "settle":
            asked.append((each, p))
    parts = {"all": asked, "probes": [(each, p) for each, p in asked if each.probe]}
    for name, value in SIDES.items():
        parts[name] = [(each, p) for each, p in asked if each.given == value]
    return {name: _share(part) for name, part in parts.items()}


def _share(asked: Sequence[tuple[Answer, float]]) -> Json:
    sure = [(each, p) for each, p in asked if each.verdict is not None]
    right = sum(each.is_fix for each, _ in sure)
    return {
        "right": right,
        "of": len(sure),
        "unsure": len(asked) - len(sure),
        "promised": rounded(float(np.mean([p for _, p in sure])), 3) if sure else None,
        **(interval(wilson(right, len(sure)) if len(sure) >= ENOUGH else None, 4) or {}),
    }


def by_class(
    findings: Listed, known: Known, q: Floats, answers: Sequence[Answer], classes: int
) -> list[Json]:
    """Count by class what was fixed and what is open, most errors left first.

    Few probes are of one class: what is left of it is modelled.
    """
    open_, column = known.open_, findings.column
    open_count = np.bincount(column[open_], minlength=classes)
    left = np.bincount(column[open_], q[open_], minlength=classes)
    place = places(findings)
    fixed, right, of = np.zeros((3, classes), dtype=np.int64)
    for each in answers:
        fixed[each.column] += each.is_fix
        if each.verdict is not None and (each.row, each.column) in place:
            right[each.column] += each.is_fix
            of[each.column] += 1
    return [
        {
            "class": int(k),
            "fixed": int(fixed[k]),
            "open": int(open_count[k]),
            "left": round(float(left[k]), 1),
            "right": int(right[k]),
            "of": int(of[k]),
        }
        for k in np.lexsort((-fixed, -left))
        if open_count[k] or of[k] or fixed[k]
    ]


def interval(estimate: Estimate | None, digits: int = 1) -> Json | None:
    """Write an estimate for the page."""
    if estimate is None:
        return None
    ends = {name: getattr(estimate, name) for name in ("value", "low", "high")}
    return {name: round(value, digits) for name, value in ends.items()}


def rounded(value: float | None, digits: int = 1) -> float | None:
    """Round what there is."""
    return None if value is None else round(value, digits)
