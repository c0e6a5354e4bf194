"""Is what `export --above P` applies right as often as it says? docs/estimates.md.

    python benchmarks/applied.py            # goes on where it was stopped
    python benchmarks/applied.py --table    # write the table of what has ended

200 draws of 50 pictures of each set (benchmarks/known.py), wrong and missing labels apart. Applied
are the labels with a probability of at least P, by the cautious curve, as `export` does it, and as
a control by the likeliest one. "right" counts the labels of all draws together: a draw whose
probabilities came out too high applies most. Nothing is judged again with the answers.

What has ended is kept in benchmarks/applied.jsonl, one line for each set and side.
"""

from __future__ import annotations

import sys
from functools import cache
from itertools import product

import known
import numpy as np
from calibration import DRAWS, PICTURES, Ranked, draw
from known import SETS, SIDES
from records import Record, Records
from results import put

from balancemix.estimates import lower

ABOVE = (0.8, 0.9)
CURVES = ("cautious", "likeliest")

load = cache(known.load)


def main(words: list[str]) -> None:
    """Measure what is missing, and write the table."""
    records = Records("applied", ("set", "side"))
    for name, side in records.missing(product(SETS, SIDES)) if "--table" not in words else ():
        record = records.add({"set": name, "side": side, **measure(name, side)})
        print(record, flush=True)
    put("applied", table(records.all))


def measure(name: str, side: str) -> Record:
    """Draw pictures many times, and count what would be applied and what of it is right."""
    data = load(name)
    ranked, generator = Ranked.of(data, side), np.random.default_rng(0)
    found = {f"{curve}_{above}": [0, 0] for curve, above in product(CURVES, ABOVE)}
    for _ in range(DRAWS):
        rows = generator.choice(len(data.given), PICTURES, replace=False)
        likeliest, total = draw(data, side, ranked, rows)
        curves = dict(zip(CURVES, (lower(likeliest, ranked.doubt, total), likeliest), strict=True))
        for curve, above in product(CURVES, ABOVE):
            applied = curves[curve].probability(ranked.doubt) >= above
            found[f"{curve}_{above}"][0] += int(applied.sum())
            found[f"{curve}_{above}"][1] += int(ranked.error[applied].sum())
    return {"errors": int(ranked.error.sum()), **found}


def table(kept: list[Record]) -> str:
    """Write a line for each set and side: labels applied in a draw, and the share that is right."""
    cells = list(product(ABOVE, CURVES))
    head = ["labels", "side", "errors", *(f"{above}, {curve}" for above, curve in cells)]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for record in sorted(kept, key=lambda r: ([*SETS].index(r["set"]), SIDES.index(r["side"]))):
        row = [record["set"], record["side"], f"{record['errors']:,}"]
        for above, curve in cells:
            applied, right = record[f"{curve}_{above}"]
            share = f"{100 * right / applied:.1f} %" if applied else "–"
            row.append(f"{applied / DRAWS:,.0f}, {share}")
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
