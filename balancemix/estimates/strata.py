"""Single given labels, drawn by rank in two phases: for errors that are rare (`wrong:200`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from balancemix.estimates.estimate import Estimate, Floats, Ints
from balancemix.estimates.few import gamma_interval

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
    [4, 4, 2]
    """
    return _share_out(np.ones(len(sizes)), total // 3, np.zeros(len(sizes)), sizes)


def second_phase(errors: Sequence[npt.ArrayLike], sizes: Sequence[int], total: int) -> Ints:
    """Say how many more labels of each stratum to ask for, by what the first phase showed.

    Neyman (1934): in proportion to N_h·√(p(1 − p)), with p = (errors + ½)/(n_h + 1).
    """
    seen = np.array([np.size(each) for each in errors], dtype=np.float64)
    wrong = np.array([np.sum(each) for each in errors], dtype=np.float64)
    rate = (wrong + 0.5) / (seen + 1)
    spread = np.asarray(sizes) * np.sqrt(rate * (1 - rate))
    return _share_out(spread, total - int(seen.sum()), seen, sizes)


def _share_out(weights: Floats, total: int, seen: Floats, sizes: Sequence[int]) -> Ints:
    """Divide a number of draws by weights; no stratum has more than there is."""
    room = np.asarray(sizes, dtype=np.float64) - seen
    drawn = np.zeros(len(weights))
    for _ in range(min(total, int(room.sum()))):
        # The next draw goes where most is due (D'Hondt), and where labels are left.
        due = np.where(drawn < room, weights / (drawn + 1), -1)
        drawn[int(due.argmax())] += 1
    return drawn.astype(np.int64)


def from_strata(errors: Sequence[npt.ArrayLike], sizes: Sequence[int]) -> Estimate:
    """Estimate all errors of the strata from the answers of each: 1 an error, 0 none."""
    answers = [np.asarray(each, dtype=np.float64) for each in errors]
    estimate = gamma_interval(answers, sizes)
    wrong = sum(float(y.sum()) for y in answers)
    right = sum(len(y) - float(y.sum()) for y in answers)
    return estimate.within(wrong, sum(sizes) - right)
