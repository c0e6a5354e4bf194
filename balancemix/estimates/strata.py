"""Single given labels, drawn by rank in two phases: for errors that are rare (`wrong:200`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from balancemix.errors import InputError
from balancemix.estimates.estimate import ENOUGH, Estimate, Floats, Ints
from balancemix.estimates.few import gamma_ends, unseen_weight

STRATA = 10


def draw_strata(
    doubt: npt.ArrayLike, generator: np.random.Generator, strata: int = STRATA
) -> list[Ints]:
    """Divide labels by the rank of their doubt, the most doubtful first, each part in random order.

    The first n_h labels of a part are its sample; more can be asked for later.

    >>> parts = draw_strata([0.0, 3.0, 1.0, 2.0], np.random.default_rng(0), strata=2)
    >>> [sorted(part.tolist()) for part in parts]
    [[1, 3], [0, 2]]
    """
    order = np.argsort(-np.asarray(doubt, dtype=np.float64), kind="stable")
    return [generator.permutation(part) for part in np.array_split(order, strata) if len(part)]


def first_phase(sizes: Sequence[int], total: int) -> Ints:
    """Say how many labels of each stratum to ask for first: a third of the sample, evenly.

    >>> first_phase([100, 100, 2], 30).tolist()
    [3, 3, 2]
    """
    return np.minimum(total // (3 * len(sizes)), np.asarray(sizes, dtype=np.int64))


def second_phase(errors: Sequence[npt.ArrayLike], sizes: Sequence[int], total: int) -> Ints:
    """Say how many more labels of each stratum to ask for, by what the first phase showed.

    Neyman (1934): in all, in proportion to N_h·√(p(1 − p)).

    Departure: p = (errors + ½)/(n + 1) of the stratum and, counted half, of its neighbours in rank:
    six answers alone say little, and where they show no error by chance, too few are asked for.
    """
    seen = np.array([np.size(each) for each in errors], dtype=np.float64)
    wrong = np.array([np.sum(each) for each in errors], dtype=np.float64)
    rate = (_with_neighbours(wrong) + 0.5) / (_with_neighbours(seen) + 1)
    spread = np.asarray(sizes) * np.sqrt(rate * (1 - rate))
    return _share_out(spread, total - int(seen.sum()), seen, sizes)


def _with_neighbours(counts: Floats) -> Floats:
    """Add half of both neighbours; the first and the last have themselves for one."""
    around = np.pad(counts, 1, mode="edge")
    return counts + (around[:-2] + around[2:]) / 2


def _share_out(weights: Floats, total: int, seen: Floats, sizes: Sequence[int]) -> Ints:
    """Add draws to those seen until all are in proportion to the weights, as far as there are."""
    room = np.asarray(sizes, dtype=np.float64) - seen
    drawn = np.zeros(len(weights))
    for _ in range(min(total, int(room.sum()))):
        # The next draw goes where most is due (D'Hondt), and where labels are left.
        due = np.where(drawn < room, weights / (seen + drawn + 1), -1)
        drawn[int(due.argmax())] += 1
    return drawn.astype(np.int64)


def from_strata(errors: Sequence[npt.ArrayLike], sizes: Sequence[int]) -> Estimate:
    """Estimate all errors of the strata from the answers of each: 1 an error, 0 none.

    T = Σ_h N_h·p_h, with the variance of draws without replacement, and the gamma interval of
    `gamma_ends`.

    Departure: answers are binomial, not Poisson; where more than half are errors, the interval is
    that of the labels that are right, which are the rarer ones.
    """
    answers = [np.asarray(each, dtype=np.float64) for each in errors]
    for number, y in enumerate(answers):
        if not len(y):
            raise InputError(f"stratum {number + 1} of {len(answers)} has no answers")
    whole, wrong = sum(sizes), sum(float(y.sum()) for y in answers)
    right = sum(len(y) for y in answers) - wrong
    found = _from_rare(answers, sizes)
    if found.value > whole / 2:
        rest = _from_rare([1 - y for y in answers], sizes)
        found = Estimate(found.value, whole - rest.high, whole - rest.low, rest.rough)
    return replace(found.within(wrong, whole - right), rough=min(wrong, right) < ENOUGH)


def _from_rare(answers: Sequence[Floats], sizes: Sequence[int]) -> Estimate:
    """Estimate a total of ones among zeros, if these are the larger part."""
    total = variance = unseen = certain = 0.0
    for y, size in zip(answers, sizes, strict=True):
        share, rate = len(y) / size, float(y.mean())
        total += size * rate
        variance += size**2 * rate * (1 - rate) / max(len(y) - 1, 1) * (1 - share)
        unseen = max(unseen, unseen_weight(share))
        if rate == 1:
            certain = max(certain, unseen_weight(share))
    found = gamma_ends(total, variance, unseen)
    if certain > 0:  # where all were ones, a zero may be among those not seen
        zeros = gamma_ends(sum(sizes) - total, variance, certain)
        found = replace(found, low=min(found.low, sum(sizes) - zeros.high))
    return found
