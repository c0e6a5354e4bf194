"""Do the probabilities say how often a label is wrong, after 50 pictures? docs/estimates.md.

Many draws of 50 pictures of each set (benchmarks/known.py), wrong and missing labels apart. Scored
on all labels of the side that are listed at 0.2 or above: the expected calibration error (ten bins
of equal number), and the Brier score beside that of two constants: the rate of the side that the
same pictures measure, and, as only the truth knows it, the share of errors among the listed labels.

    python benchmarks/calibration.py            # goes on where it was stopped
    python benchmarks/calibration.py --table    # write the table of what has ended
    python benchmarks/calibration.py --figure   # draw docs/calibration.svg, from one draw each

What has ended is kept in benchmarks/calibration.jsonl, one line for each set and side.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import known
import numpy as np
from known import SETS, SIDES, Floats, Known
from records import Record, Records
from results import ROOT, put

from balancemix.estimates import Calibration, Estimate, calibrate, from_pictures
from balancemix.report.figures.reliability import reliability
from balancemix.report.figures.style import save_as

FIGURE = ROOT / "docs" / "calibration.svg"
DRAWS, PICTURES, LISTED, BINS = 200, 50, 0.2, 10
MOST = 0.1  # expected calibration error

load = cache(known.load)


def main(words: list[str]) -> None:
    """Measure what is missing, and write the table or the figure."""
    if "--figure" in words:
        save_as(reliability({name: curves(name) for name in SETS}), FIGURE)
        return
    records = Records("calibration", ("set", "side"))
    for name, side in records.missing(product(SETS, SIDES)) if "--table" not in words else ():
        measured = {key: round(value, 4) for key, value in measure(name, side).items()}
        records.add({"set": name, "side": side, **measured})
        print(name, side, measured, flush=True)
    put("calibration", table(records.all))


@dataclass(frozen=True)
class Ranked:
    """All labels of one side, the most doubtful first, and errors and sums of the rows."""

    doubt: Floats
    error: Floats
    modelled: Floats
    errors: Floats
    sums: Floats

    @classmethod
    def of(cls, data: Known, side: str) -> Ranked:
        """Sort the labels of a side."""
        here = data.side(side)
        order = np.argsort(-data.doubt[here], kind="stable")
        columns = (data.doubt, data.error.astype(np.float64), data.modelled)
        ranked = (column[here][order] for column in columns)
        return cls(*ranked, data.errors(side), data.sums(side))


@dataclass(frozen=True)
class Score:
    """How well the probabilities of the listed labels fit."""

    listed: int
    apart: float  # expected calibration error
    brier: float
    constant: float  # the Brier score of the measured rate of the side
    hindsight: float  # of the true share among the listed labels

    @property
    def meets(self) -> bool:
        """Whether both requirements hold; of an empty list they do."""
        return self.listed == 0 or (self.apart <= MOST and self.brier < self.constant)


def score(probability: Floats, error: Floats, rate: float) -> Score:
    """Score the labels that are listed."""
    listed = probability >= LISTED
    p, z = probability[listed], error[listed]
    if not len(p):
        return Score(0, 0.0, 0.0, 0.0, 0.0)
    parts = bins(p)
    apart = sum(len(part) * abs(float((p - z)[part].mean())) for part in parts) / len(p)
    errors = (float(((guess - z) ** 2).mean()) for guess in (p, rate, z.mean()))
    return Score(len(p), apart, *errors)


def bins(p: Floats) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    """Divide labels by probability into parts of equal number."""
    return [part for part in np.array_split(np.argsort(p, kind="stable"), BINS) if len(part)]


def draw(data: Known, side: Any, ranked: Ranked, rows: Any) -> tuple[Calibration, Estimate]:
    """Calibrate on the settled rows."""
    total = from_pictures(ranked.errors[rows], ranked.sums[rows], ranked.sums)
    here = data.side(side)[rows]
    seen = data.doubt[rows][here], data.error[rows][here]
    return calibrate(*seen, side, ranked.doubt, total), total


def measure(name: str, side: str) -> Record:
    """Draw pictures many times, and score what is learned from them."""
    data = load(name)
    ranked, generator = Ranked.of(data, side), np.random.default_rng(0)
    scores = []
    for _ in range(DRAWS):
        rows = generator.choice(len(data.given), PICTURES, replace=False)
        calibration, total = draw(data, side, ranked, rows)
        probability = calibration.probability(ranked.doubt)
        scores.append(score(probability, ranked.error, total.value / len(ranked.error)))
    before = score(ranked.modelled, ranked.error, 0.0)
    return {
        "errors": int(ranked.error.sum()),
        "modelled_apart": before.apart,
        "meets": float(np.mean([each.meets for each in scores])),
        "beats": float(np.mean([each.brier <= each.hindsight for each in scores])),
        "empty": float(np.mean([each.listed == 0 for each in scores])),
        **{
            key: float(np.median([vars(each)[key] for each in scores if each.listed] or [0.0]))
            for key in vars(before)
        },
    }


def curves(name: str) -> dict[str, tuple[Floats, Floats]]:
    """Take one draw of a set: of each side, probability and share of errors by bin."""
    data, found = load(name), {}
    for side in SIDES:
        ranked = Ranked.of(data, side)
        rows = np.random.default_rng(1).choice(len(data.given), PICTURES, replace=False)
        p = draw(data, side, ranked, rows)[0].probability(ranked.doubt)
        p, z = p[p >= LISTED], ranked.error[p >= LISTED]
        parts = bins(p)
        found[side] = (
            np.array([p[part].mean() for part in parts]),
            np.array([z[part].mean() for part in parts]),
        )
    return found


def table(kept: list[Record]) -> str:
    """Write a line for each set and side."""
    lines = [
        "| labels | side | errors | listed | ECE | Brier | measured rate | best constant | meets | "
        "beats best | modelled ECE |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for record in sorted(kept, key=lambda r: ([*SETS].index(r["set"]), SIDES.index(r["side"]))):
        names = ("brier", "constant", "hindsight")
        values = [f"{record[key]:.3f}" for key in names] if record["empty"] < 0.5 else ["–"] * 3
        apart = f"{record['apart']:.3f}" if record["empty"] < 0.5 else "–"
        head = f"| {record['set']} | {record['side']} | {record['errors']:,} "
        shares = f"{100 * record['meets']:.0f} % | {100 * record['beats']:.0f} %"
        tail = f"{shares} | {record['modelled_apart']:.3f} |"
        lines.append(f"{head}| {record['listed']:,.0f} | {apart} | {' | '.join(values)} | {tail}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
