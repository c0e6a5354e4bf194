"""What is left of a list that a person goes through: judged by the questions drawn at random."""

from __future__ import annotations

from scipy.special import betaincinv

from balancemix.estimates.estimate import ENOUGH, HIGH, LOW, Estimate

LEAST = 20  # questions drawn at random, below which nothing is said


def errors_left(rate: float, drawn: float, left: int) -> Estimate | None:
    """Estimate the errors among the `left` findings that nobody has looked at.

    Of `drawn` findings, taken at random from a list of these and themselves, the share `rate` are
    errors. Weighted draws count as so many as tell the same, which need not be a whole number. None
    with fewer than 20. The interval is that of Clopper and Pearson (1934).

    >>> found = errors_left(0.25, 40, 400)
    >>> round(found.low), found.value, round(found.high)
    (51, 100.0, 165)
    >>> errors_left(0.0, 3, 0)
    Estimate(value=0.0, low=0.0, high=0.0, rough=False)
    """
    if left == 0:
        return Estimate(0.0, 0.0, 0.0, False)
    if drawn < LEAST:
        return None
    hits = rate * drawn
    low = float(betaincinv(hits, drawn - hits + 1, LOW)) if rate > 0 else 0.0
    high = float(betaincinv(hits + 1, drawn - hits, HIGH)) if rate < 1 else 1.0
    return Estimate(rate, low, high, min(hits, drawn - hits) < ENOUGH).times(left)
