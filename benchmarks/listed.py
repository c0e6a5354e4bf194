"""Do the intervals of classes and of the top of the list hold the truth? docs/estimates.md.

    python benchmarks/listed.py    # minutes; writes the table

200 draws of 50, 100 and 200 pictures of each set (benchmarks/known.py). Classes: every class of
which enough was seen in the draw. Top: the first 2,000 labels of each list; the control counts them
as if each had been drawn by itself, by an exact interval.
"""

from __future__ import annotations

from itertools import product

import known
import numpy as np
from known import SETS, SIDES, Bools, Known
from results import put

from balancemix.estimates import Estimate, among_top, by_class
from balancemix.estimates.few import exact_count

DRAWS, PICTURES, TOP = 200, (50, 100, 200), 2000

Pair = tuple[Estimate, float]  # with the truth


def main() -> None:
    """Measure, and write the table."""
    lines = [
        "| labels | pictures | of | classes shown | cover | top seen | covers | ± | control |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in SETS:
        data = known.load(name)
        for count, side in product(PICTURES, SIDES):
            facts = " | ".join([*of_classes(data, side, count), *of_top(data, side, count)])
            lines.append(f"| {name} | {count} | {side} | {facts} |")
            print(lines[-1], flush=True)
    put("listed", "\n".join(lines) + "\n")


def of_classes(data: Known, side: str, count: int) -> list[str]:
    """Measure the intervals of single classes: how many are shown, how many hold the truth."""
    here, generator = data.side(side), np.random.default_rng(count)
    error = data.error & here
    found: list[Pair] = []
    for _ in range(DRAWS):
        rows = generator.choice(len(here), count, replace=False)
        counts = error[rows].sum(0), here[rows].sum(0), here.sum(0), data.given.sum(0)
        pairs = zip(by_class(*counts), error.sum(0).tolist(), strict=True)
        found += [(estimate, truth) for estimate, truth in pairs if estimate is not None]
    return [f"{len(found) / DRAWS:.1f}", coverage(found)]


def of_top(data: Known, side: str, count: int) -> list[str]:
    """Measure the interval of the first labels of the list, and one that ignores pictures."""
    listed, generator = top(data, side), np.random.default_rng(count)
    error = data.error & listed
    truth = float(error.sum())
    ours: list[Pair] = []
    plain: list[Pair] = []
    seen = []
    for _ in range(DRAWS):
        rows = generator.choice(len(listed), count, replace=False)
        wrong, number = error[rows].sum(1), listed[rows].sum(1)
        estimate = among_top(wrong, number, TOP)
        seen.append(float(number.sum()))
        if estimate is not None:
            ours.append((estimate, truth))
            plain.append((exact_count(int(wrong.sum()), int(number.sum()), TOP), truth))
    half = np.median([(e.high - e.low) / 2 for e, _ in ours]) if ours else np.nan
    width = f"{100 * half / TOP:.0f} %" if ours else "–"
    return [f"{np.median(seen):.0f}", coverage(ours), width, coverage(plain)]


def top(data: Known, side: str) -> Bools:
    """Mark the first labels of a list."""
    doubt = np.where(data.side(side), data.doubt, -np.inf)
    listed = np.zeros(doubt.size, dtype=bool)
    listed[np.argsort(-doubt, axis=None, kind="stable")[:TOP]] = True
    return listed.reshape(doubt.shape)


def coverage(pairs: list[Pair]) -> str:
    """Write the share of intervals that hold the truth."""
    if not pairs:
        return "–"
    return f"{100 * np.mean([e.low <= truth <= e.high for e, truth in pairs]):.1f} %"


if __name__ == "__main__":
    main()
