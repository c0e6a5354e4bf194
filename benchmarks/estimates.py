"""How often do the intervals hold the truth, and how wide are they? docs/estimates.md.

2,000 draws of each cell: six sets of known truth (benchmarks/known.py); 50, 100 and 200 pictures,
and 200 given labels by rank (`wrong:200`). The control is plain random sampling of as many units:
the mean of pictures with Student's interval, and of single labels the exact interval.

    python benchmarks/estimates.py            # goes on where it was stopped
    python benchmarks/estimates.py --table    # write the tables of what has ended
    python benchmarks/estimates.py --ppi      # the same pictures by ppi-python, where installed

What has ended is kept in benchmarks/estimates.jsonl, one line for each cell.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache

import known
import numpy as np
from known import SETS, SIDES, Floats, Known
from records import Record, Records
from results import put
from scipy.special import stdtrit

from balancemix.estimates import (
    Estimate,
    draw_strata,
    first_phase,
    from_pictures,
    from_strata,
    missing_rate,
    second_phase,
)
from balancemix.estimates.few import exact_count
from balancemix.estimates.rates import Side

DRAWS = 2000
SAMPLES = ("50", "100", "200", "wrong:200")
LEAST, MOST = 0.93, 1.1  # coverage in 19 of 20 cells, half-width in units of the control's
KEY = ("set", "what", "sample")

Draw = Callable[[np.random.Generator], tuple[Estimate, Estimate]]
load = cache(known.load)


def main(words: list[str]) -> None:
    """Measure what is missing, and write the tables."""
    records = Records("estimates", KEY)
    for cell in records.missing(cells("--ppi" in words)) if "--table" not in words else ():
        record = records.add(dict(zip(KEY, cell, strict=True)) | measure(*cell))
        shown = ("covers", "half", "plain_covers", "plain_half")
        print(*cell, *(f"{name} {record[name]:.3f}" for name in shown), flush=True)
    put("estimates", table(records.all))
    put("ppi", ppi_table(records.all))


def cells(ppi: bool) -> Iterator[tuple[str, str, str]]:
    """List the cells."""
    if ppi:
        yield from ((s, f"ppi {side}", n) for s in SETS for n in SAMPLES[:3] for side in SIDES)
        return
    for name in SETS:
        for sample in SAMPLES[:3]:
            yield from ((name, what, sample) for what in (*SIDES, "missing rate"))
        yield name, "wrong", SAMPLES[3]


def measure(name: str, what: str, sample: str) -> Record:
    """Draw many samples, and compare the intervals with the truth."""
    data = load(name)
    count = int(sample.removeprefix("wrong:"))
    truth = float(data.errors(what.removeprefix("ppi ").removesuffix(" rate")).sum())
    if what == "missing rate":
        truth /= float(data.truth.sum())
        draw = by_rate(data, count)
    elif what.startswith("ppi "):
        draw = by_ppi(data, what.removeprefix("ppi "), count)
    else:
        draw = by_labels(data, count) if ":" in sample else by_pictures(data, what, count)
    generator = np.random.default_rng(count)
    ours, plain = zip(*(draw(generator) for _ in range(DRAWS)), strict=True)
    control = {f"plain_{key}": value for key, value in summary(plain, truth).items()}
    return {"truth": truth, **summary(ours, truth), **control}


def summary(estimates: tuple[Estimate, ...], truth: float) -> dict[str, float]:
    """Summarise intervals: how many hold the truth, how wide half of them are at most, and more."""
    value, low, high = np.array([(e.value, e.low, e.high) for e in estimates]).T
    unit = truth or 1.0  # without errors: counts
    return {
        "covers": float(((low <= truth) & (truth <= high)).mean()),
        "too_high": float((low > truth).mean()),
        "half": round(float(np.median(high - low)) / 2 / unit, 4),
        "bias": round(float(value.mean() - truth) / unit, 4),
        "rough": float(np.mean([e.rough for e in estimates])),
        "most": round(float(high.max()), 4),
    }


def by_pictures(data: Known, side: str, count: int) -> Draw:
    """Draw pictures, and estimate the errors of a side."""
    errors, sums = data.errors(side), data.sums(side)

    def draw(generator: np.random.Generator) -> tuple[Estimate, Estimate]:
        rows = generator.choice(len(errors), count, replace=False)
        return from_pictures(errors[rows], sums[rows], sums), student(errors[rows], len(errors))

    return draw


def student(errors: Floats, size: int) -> Estimate:
    """Estimate as is usual: the mean of the units drawn, with Student's interval."""
    n = len(errors)
    spread = float(errors.std(ddof=1)) * np.sqrt((1 - n / size) / n)
    mean, half = float(errors.mean()), float(stdtrit(n - 1, 0.975)) * spread
    return Estimate(size * mean, size * (mean - half), size * (mean + half), False)


def by_rate(data: Known, count: int) -> Draw:
    """Draw pictures, and estimate the share of the true positives that are missing."""
    errors, sums = ({side: f(side) for side in SIDES} for f in (data.errors, data.sums))
    zeros = np.zeros_like(sums["wrong"])
    given = int(data.given.sum())

    def draw(generator: np.random.Generator) -> tuple[Estimate, Estimate]:
        rows = generator.choice(len(zeros), count, replace=False)
        ours, plain = (
            missing_rate(*(Side(errors[s][rows], x[s][rows], x[s]) for s in SIDES), given)
            for x in (sums, dict.fromkeys(SIDES, zeros))
        )
        return ours, plain

    return draw


def by_labels(data: Known, count: int) -> Draw:
    """Draw given labels by rank in two phases; for the control, at random."""
    doubt, wrong = data.doubt[data.given], data.error[data.given].astype(np.float64)

    def draw(generator: np.random.Generator) -> tuple[Estimate, Estimate]:
        parts = [wrong[part] for part in draw_strata(doubt, generator)]
        sizes = [len(part) for part in parts]
        first = first_phase(sizes, count)
        seen = [part[:n] for part, n in zip(parts, first, strict=True)]
        more = first + second_phase(seen, sizes, count)
        ours = from_strata([part[:n] for part, n in zip(parts, more, strict=True)], sizes)
        hits = int(generator.hypergeometric(wrong.sum(), (1 - wrong).sum(), count))
        return ours, exact_count(hits, count, len(wrong))

    return draw


def by_ppi(data: Known, side: str, count: int) -> Draw:
    """Draw pictures, and estimate by prediction-powered inference (ppi-python)."""
    try:
        from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
    except ImportError:
        sys.exit("ppi-python is not installed: its lines are left as they are")
    errors, sums = data.errors(side), data.sums(side)[:, 0]

    def draw(generator: np.random.Generator) -> tuple[Estimate, Estimate]:
        rows = generator.choice(len(errors), count, replace=False)
        rest = np.delete(sums, rows)
        value = float(ppi_mean_pointestimate(errors[rows], sums[rows], rest).item())
        low, high = (
            float(np.asarray(end).item())
            for end in ppi_mean_ci(errors[rows], sums[rows], rest, alpha=0.05)
        )
        found = Estimate(value, low, high, False).times(len(errors))
        return found, student(errors[rows], len(errors))

    return draw


def table(kept: list[Record]) -> str:
    """Write a line for each set and kind of sample: coverage and half-width, beside the control."""
    lines = [
        "| labels | sample | of | true | covers | ± | control covers | ± |",
        "|---|---|---|---|---|---|---|---|",
    ]
    found = [record for record in kept if not record["what"].startswith("ppi")]
    for record in sorted(found, key=place):
        lines.append("| " + " | ".join(line(record)) + " |")
    return "\n".join(lines) + "\n"


def ppi_table(kept: list[Record]) -> str:
    """Write coverage and half-width of ppi-python beside ours."""
    lines = [
        "| labels | pictures | of | ours covers | ± | ppi covers | ± |",
        "|---|---|---|---|---|---|---|",
    ]
    ours = {tuple(record[key] for key in KEY): record for record in kept}
    for record in sorted((r for r in kept if r["what"].startswith("ppi")), key=place):
        side = record["what"].removeprefix("ppi ")
        same = ours.get((record["set"], side, record["sample"]))
        if same is not None:
            cells = [record["set"], record["sample"], side, *line(same)[4:6], *line(record)[4:6]]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def line(record: Record) -> list[str]:
    """Write the cells of a line; half-widths in percent of the truth, or as counts if it is 0."""
    truth, rate = record["truth"], record["what"] == "missing rate"
    shown = f"{100 * truth:.1f} %" if rate else f"{truth:,.0f}"
    cells = [record["set"], record["sample"], record["what"], shown]
    for start in ("", "plain_"):
        half = record[f"{start}half"]
        cells.append(f"{100 * record[f'{start}covers']:.1f} %")
        cells.append(f"{100 * half:.0f} %" if truth else f"at most {record[f'{start}most']:,.0f}")
    return cells


def place(record: Record) -> tuple[int, int, int]:
    """Sort as the cells are listed."""
    kinds = [*SIDES, "missing rate"]
    name, what, sample = (record[key] for key in KEY)
    return [*SETS].index(name), SAMPLES.index(sample), kinds.index(what.removeprefix("ppi "))


if __name__ == "__main__":
    main(sys.argv[1:])
