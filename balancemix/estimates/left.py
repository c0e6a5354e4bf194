"""What is left of a list that a person goes through: judged by the questions drawn at random."""

from __future__ import annotations

from balancemix.estimates.estimate import Estimate
from balancemix.estimates.few import exact_count

LEAST = 20  # questions drawn at random, below which nothing is said


def errors_left(errors: int, drawn: int, left: int) -> Estimate | None:
    """Estimate the errors among the `left` findings nobody has looked at.

    `drawn` others were taken at random from a list of these and themselves; `errors` of them are
    errors. None with fewer than 20.

    The interval is Clopper and Pearson's (1934) of draws without replacement: it closes as the list
    gets shorter.

    >>> errors_left(10, 40, 400)
    Estimate(value=100.0, low=48.0, high=168.0, rough=True)
    >>> errors_left(0, 3, 0)
    Estimate(value=0.0, low=0.0, high=0.0, rough=False)
    """
    if left == 0:
        return Estimate(0.0, 0.0, 0.0, False)
    if drawn < LEAST:
        return None
    all_ = exact_count(errors, drawn, left + drawn)
    return Estimate(
        left * errors / drawn, all_.low - errors, all_.high - errors, all_.rough
    ).within(0.0, left)
