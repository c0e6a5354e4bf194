"""In which order to ask: the pictures first in which a second of a person's time fixes most.

q      how likely a finding is an error: p, corrected by the answers in its band of p
need   how much a class needs its errors fixed: more where it has few positives
score  Σ q·need over the open findings of a picture, divided by the seconds that it takes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from balancemix.auditing.snapshot import BANDS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

EDGES = BANDS[1:-1]  # between bands of p
PRIOR = 2.0  # answers that p itself counts for in a band
_LEAST = 1e-9  # of p̄, which divides
GAMMA = 0.0  # of need; docs/review-numbers.md says why
EVERY = 50  # answers after which the order is computed again


class Listed(Protocol):
    """Findings as arrays of the same length, whatever else they have.

    `given` is 1 for what looks wrong, 0 for what looks missing, −1 for what is unknown.
    """

    @property
    def row(self) -> Ints: ...  # noqa: D102
    @property
    def column(self) -> Ints: ...  # noqa: D102
    @property
    def given(self) -> npt.NDArray[np.integer[Any]]: ...  # noqa: D102
    @property
    def p(self) -> Floats: ...  # noqa: D102


class Pace(NamedTuple):
    """The seconds that a picture and each question about it take."""

    picture: float = 4.0
    question: float = 2.0


USUAL = Pace()


def corrected(given: npt.ArrayLike, p: npt.ArrayLike, error: npt.ArrayLike) -> Floats:
    """Correct the probabilities of findings by the answers so far: q.

    `error` is 1 for an error, 0 for a label that is right, −1 for what is not known. In each band
    of p, wrong, missing and unknown apart, e errors among n answers that promised p̄ on average
    make q = p·(e + 2p̄)/(n + 2)/p̄, at most 1.

    >>> corrected([1, 1, 1, 0], [0.7, 0.7, 0.7, 0.7], [0, 0, -1, -1]).round(2).tolist()
    [0.35, 0.35, 0.35, 0.7]
    """
    side, p = np.asarray(given, dtype=np.int64), np.asarray(p, dtype=np.float64)
    said = np.asarray(error, dtype=np.int64)
    cell = (side + 1) * (len(EDGES) + 1) + np.searchsorted(EDGES, p, side="right")
    size, known = 3 * (len(EDGES) + 1), said >= 0
    count = np.bincount(cell[known], minlength=size)
    errors = np.bincount(cell[known], said[known], minlength=size)
    promised = np.bincount(cell[known], p[known], minlength=size)
    mean = np.maximum(promised / np.maximum(count, 1), _LEAST)
    ratio = np.where(count > 0, (errors + PRIOR * mean) / ((count + PRIOR) * mean), 1.0)
    q: Floats = np.minimum(p * ratio[cell], 1.0)
    return q


def need(positives: npt.ArrayLike, gamma: float = GAMMA) -> Floats:
    """Weigh K classes by their estimated positives n: ((n̄ + 10)/(n + 10))^γ.

    >>> need([0, 20], gamma=1.0).tolist()
    [2.0, 0.6666666666666666]
    """
    n = np.maximum(np.asarray(positives, dtype=np.float64), 0)
    weight: Floats = ((n.mean() + 10) / (n + 10)) ** gamma if len(n) else n
    return weight


def positives(findings: Listed, q: Floats, error: npt.ArrayLike, given: npt.ArrayLike) -> Floats:
    """Estimate how many rows truly have each class, from the K counts of given labels."""
    said = np.asarray(error)
    change = np.where(said >= 0, said, q) * np.where(findings.given > 0, -1.0, 1.0)
    counts = np.asarray(given, dtype=np.float64)
    return counts + np.bincount(findings.column, change, minlength=len(counts))


def scores(row: Ints, worth: Floats, pace: Pace = USUAL) -> tuple[Ints, Floats]:
    """Score pictures by what their findings are worth a second: their rows, and a score each."""
    rows, place = np.unique(row, return_inverse=True)
    number = np.bincount(place, minlength=len(rows))
    total = np.bincount(place, worth, minlength=len(rows))
    return rows, total / (pace.picture + pace.question * number)


def picture_order(
    findings: Listed,
    open_: Bools,
    error: npt.ArrayLike,
    given: Sequence[int] | Ints,
    pace: Pace = USUAL,
    gamma: float = GAMMA,
) -> list[int]:
    """List the rows with open findings in the order in which to show them.

    `open_` marks the findings still to be asked, `error` is what answers say of each (1, 0, or −1
    for nothing), `given` counts the given labels of each of K classes.
    """
    worth = worth_of(findings, error, given, gamma)
    rows, score = scores(findings.row[open_], worth[open_], pace)
    return [int(row) for row in rows[np.argsort(-score, kind="stable")]]


def worth_of(
    findings: Listed, error: npt.ArrayLike, given: npt.ArrayLike, gamma: float = GAMMA
) -> Floats:
    """Compute q·need of each finding."""
    q = corrected(findings.given, findings.p, error)
    if gamma == 0:
        return q
    weight = need(positives(findings, q, error, given), gamma)
    return q * weight[findings.column]
