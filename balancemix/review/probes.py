"""Probes: every tenth question is drawn at random, so that the list is measured, not believed.

A permutation of all findings says in which order they are probed; what has an answer by then is
passed over. The queue takes the surest findings first, whatever the permutation. So the probes that
the queue would not have reached yet are a random sample of what is left; others count as far as
findings like them are open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from balancemix.estimates.estimate import Estimate
from balancemix.estimates.left import errors_left
from balancemix.review.order import USUAL, Bools, Floats, Ints, Listed, Pace, scores

EVERY = 10  # questions, of which one is a probe
GROUP = 5  # probes with scores like each other


def probe_order(count: int, seed: int) -> Ints:
    """Draw the order in which findings are probed; the same for the same seed."""
    return np.random.default_rng([seed, count]).permutation(count).astype(np.int64)


def next_probe(order: Ints, open_: Bools) -> int | None:
    """Find the next finding to probe: the first in the order that is open.

    >>> next_probe(np.array([2, 0, 1]), np.array([True, True, False]))
    0
    """
    waiting = np.flatnonzero(open_[order])
    return int(order[waiting[0]]) if len(waiting) else None


class Turn(NamedTuple):
    """A picture to show, and which of its findings is a probe, if one is."""

    row: int
    probe: int | None = None


def turns(
    rows: Sequence[int] | Ints, findings: Listed, open_: Bools, probes: Ints, since: int = 0
) -> Iterator[Turn]:
    """Mix probes into an order of pictures: one question in ten, the others in their order.

    `since` is how many questions were asked since the last probe. A picture is shown once.
    """
    last = int(findings.row.max(initial=0))
    questions = np.bincount(findings.row[open_], minlength=last + 1)
    waiting = map(int, probes[open_[probes]])
    shown: set[int] = set()
    queue = map(int, rows)
    while True:
        if since >= EVERY - 1:
            probe = next((i for i in waiting if int(findings.row[i]) not in shown), None)
            turn = None if probe is None else Turn(int(findings.row[probe]), probe)
        else:
            turn = next((Turn(row) for row in queue if row not in shown), None)
        if turn is None:
            return
        shown.add(turn.row)
        asked = int(questions[turn.row])
        since = asked - 1 if turn.probe is not None else since + asked
        yield turn


def weigh_probes(
    findings: Listed,
    worth: Floats,
    open_: Bools,
    probed: Bools,
    swept: Bools,
    pace: Pace = USUAL,
) -> Floats:
    """Say how many open findings each probe stands for; 0 for all other findings.

    The probes are put into groups by the scores of their pictures, and share the open findings of
    their group. Where the queue goes strictly by score, probes that it has reached stand for none;
    what people skipped, or left out by a filter, is stood for by probes like it. A probe that is
    surer than a finding of its class and kind that was swept has been reached by the sweep.
    """
    asked = ~swept
    rows, score = scores(findings.row[asked], worth[asked], pace)
    whole = np.zeros(int(findings.row.max(initial=0)) + 1)  # before any of it was asked in Focus
    whole[rows] = score
    like = whole[findings.row]
    kind = 3 * findings.column + findings.given + 1
    least = np.full(int(kind.max(initial=0)) + 1, np.inf)
    np.minimum.at(least, kind[swept], findings.p[swept])
    sample = probed & (findings.p < least[kind])
    if not sample.any():
        return np.zeros(len(like))
    edges = np.sort(like[sample])[GROUP : -GROUP + 1 : GROUP]
    place = np.searchsorted(edges, like, side="right")
    count = np.bincount(place[sample], minlength=len(edges) + 1)
    left = np.bincount(place[open_], minlength=len(edges) + 1)
    return np.where(sample, (left / np.maximum(count, 1))[place], 0.0)


class Left(NamedTuple):
    """What the probes say of the findings that nobody has looked at.

    `drawn` is how many probes, all of the same weight, would tell as much.
    """

    left: int
    drawn: float
    rate: float
    estimate: Estimate | None


def what_is_left(
    findings: Listed, open_: Bools, probed: Bools, weight: Floats, error: npt.ArrayLike
) -> Left:
    """Estimate the errors among the open findings by the probes, weighted by `weigh_probes`.

    An unknown label cannot be an error, and is left out; so are probes that nobody was sure about.
    """
    said = np.asarray(error)
    can_err = findings.given >= 0
    sample = probed & can_err & (said >= 0)
    w, e = weight[sample], said[sample]
    left = int((open_ & can_err).sum())
    total = float(w.sum())
    drawn = total**2 / float((w**2).sum()) if total > 0 else 0.0
    rate = float((w * e).sum()) / total if total > 0 else 0.0
    return Left(left, drawn, rate, errors_left(rate, drawn, left))
