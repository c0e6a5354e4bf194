"""Made-up findings, and people who answer about them."""

from typing import Any, NamedTuple

import numpy as np

from balancemix.data.decisions.states import LabelState
from balancemix.review.answered import Answer
from balancemix.review.log import Entry


class Listed(NamedTuple):
    """Findings as arrays."""

    row: np.ndarray
    column: np.ndarray
    given: np.ndarray
    p: np.ndarray


def listed(count=200, seed=0, rows=80, classes=6, unknown=False):
    """Make findings in a random order, none twice."""
    generator = np.random.default_rng(seed)
    labels = generator.choice(rows * classes, count, replace=False)
    given = generator.integers(-1 if unknown else 0, 2, count)
    p = np.sort(generator.random(count))[::-1] * 0.98 + 0.01
    return Listed(labels // classes, labels % classes, given, p)


def state(verdict, kind="decided"):
    return LabelState(kind, verdict, True, 1)


def said(findings, i, error, *, probe=False, mode="focus", seconds=4.0, first=True):
    """Answer about a finding: an error or not, or unsure (None)."""
    given = int(findings.given[i])
    verdict = None if error is None else ("present" if error == (given < 1) else "absent")
    place = int(findings.row[i]), int(findings.column[i])
    return Answer(*place, given, verdict, probe, float(findings.p[i]), mode, seconds, first)


def states_of(answers):
    return {
        (each.row, each.column): state(each.verdict, "decided" if each.verdict else "unsure")
        for each in answers
    }


def entry(seq, who="Ana", row=0, column=0, verdict="present", **more):
    """Make an entry of a log."""
    facts: dict[str, Any] = {
        "undoes": None, "mode": "focus", "batch": None, "probe": False, "p": None,
        "suggested": None, "width": None, "ms": None, "at": "2026-11-18T10:00:00Z", "sample": None,
        "covers": frozenset(),
    }  # fmt: skip
    class_ = None if column is None else f"class {column}"
    names = f"c{seq}", who, f"{row}.jpg", class_, row, column, verdict
    return Entry(seq, *names, **facts | more)
