"""What each departure from the published formulae does, on simulated errors: docs/estimates.md.

    python benchmarks/departures.py    # minutes; writes the table

Few errors, 2,000 draws: pictures of which few have one; Fay and Feuer's interval, and φ below 1
where the sample shows less spread than a Poisson count. Labels by rank, 500 draws: the variance of
Poisson counts, the interval of the errors even where most labels are errors, and Neyman's rule
without the neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from unittest.mock import patch

import estimates
import known
import numpy as np
from estimates import DRAWS, student, summary
from known import Floats, Known
from results import put
from scipy.special import gammaincinv

from balancemix.estimates import Estimate, strata
from balancemix.estimates.few import gamma_ends, gamma_interval, unseen_weight

FEW = (("mislabel 20 %", "wrong", 25), ("flip 10 %", "missing", 25), ("flip 10 %", "missing", 50))
LABELS = ("mislabel 20 %", "mislabel 40 %", "flip 10 %")


def main() -> None:
    """Measure, and write the table."""
    lines = ["| labels | sample | formula | covers | ÷ control |", "|---|---|---|---|---|"]
    for name, side, count in FEW:
        for formula, interval in INTERVALS.items():
            facts = few(known.load(name).errors(side), count, interval)
            lines.append(f"| {name}, {side} | {count} | {formula} | {facts} |")
            print(lines[-1], flush=True)
    sets = {name: known.load(name) for name in LABELS}
    for formula, change in CHANGES.items():
        for name, data in sets.items():
            lines.append(f"| {name}, wrong | wrong:200 | {formula} | {by_rank(data, change)} |")
            print(lines[-1], flush=True)
    put("departures", "\n".join(lines) + "\n")


def few(errors: Floats, count: int, interval: Callable[[Floats, int], Estimate]) -> str:
    """Draw pictures, and compare an interval with Student's."""
    generator = np.random.default_rng(count)
    drawn = [errors[generator.choice(len(errors), count, replace=False)] for _ in range(DRAWS)]
    return facts(*(tuple(f(y, len(errors)) for y in drawn) for f in (interval, student)), errors)


def by_rank(data: Known, change: AbstractContextManager[object]) -> str:
    """Draw labels by rank, with something changed."""
    generator = np.random.default_rng(200)
    with change:
        draw = estimates.by_labels(data, 200)
        ours, plain = zip(*(draw(generator) for _ in range(DRAWS // 4)), strict=True)
    return facts(ours, plain, data.errors("wrong"))


def facts(ours: tuple[Estimate, ...], plain: tuple[Estimate, ...], errors: Floats) -> str:
    """Write coverage, and the median half-width in units of the control's."""
    found, control = (summary(each, float(errors.sum())) for each in (ours, plain))
    return f"{100 * found['covers']:.1f} % | {found['half'] / control['half']:.2f}"


def published(errors: Floats, size: int) -> Estimate:
    """Compute the interval of Fay and Feuer, with our weights."""
    return fay_feuer(*_parts(errors, size, least=1.0))


def unclipped(errors: Floats, size: int) -> Estimate:
    """Compute our interval with φ as the sample shows it."""
    return gamma_ends(*_parts(errors, size, least=0.0))


def _parts(errors: Floats, size: int, least: float) -> tuple[float, float, float]:
    share, mean = len(errors) / size, float(errors.mean())
    clumps = max(least, float(errors.var(ddof=1)) / mean) if mean > 0 else 1.0
    variance = clumps * (1 - share) * float(errors.sum()) / share**2
    return mean * size, variance, clumps * unseen_weight(share)


def fay_feuer(total: float, variance: float, weight: float) -> Estimate:
    """Take each end from one distribution."""
    low = variance / total * float(gammaincinv(total**2 / variance, 0.025)) if variance else total
    mean, spread = total + weight, variance + weight**2
    return Estimate(
        total, low, spread / mean * float(gammaincinv(mean**2 / spread, 0.975)), rough=True
    )


def as_counts(
    errors: Sequence[Floats], sizes: Sequence[int], spread: Callable[[Floats], float]
) -> Estimate:
    """Estimate from strata, always the errors and never the labels that are right."""
    total = variance = weight = 0.0
    for y, size in zip(errors, sizes, strict=True):
        total += size * float(y.mean())
        variance += size**2 * spread(y) / len(y) * (1 - len(y) / size)
        weight = max(weight, unseen_weight(len(y) / size))
    return gamma_ends(total, variance, weight)


POISSON = partial(as_counts, spread=lambda y: float(y.mean()))
BINOMIAL = partial(as_counts, spread=lambda y: float(y.var(ddof=1)))
INTERVALS = {"ours": gamma_interval, "Fay and Feuer": published, "φ as seen": unclipped}
CHANGES: dict[str, AbstractContextManager[object]] = {
    "ours": nullcontext(),
    "variance of Poisson counts": patch.object(estimates, "from_strata", POISSON),
    "always of the errors": patch.object(estimates, "from_strata", BINOMIAL),
    "without neighbours": patch.object(strata, "_with_neighbours", lambda counts: counts),
}


if __name__ == "__main__":
    main()
