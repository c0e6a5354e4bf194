"""Is auto ahead? The summary of benchmarks/bootstrap.jsonl in docs/tables/judge.md: `ahead.py`.

A row for each data set and noise: the difference between auto and a reference, the 95 % interval
over seeds and, in brackets, over test rows; bold where both exclude 0. The last column is the best
of the other methods, and what it has above auto.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from bootstrap import Line, read_lines
from results import ROOT, put

from balancemix.bench.scores import heading
from balancemix.files import with_nan

REFERENCES = ("BalanceMix", "BCE + Mixup", "Kernel Ridge")
HEAD = (
    f"| data | noise | seeds | {' | '.join(f'auto − {name}' for name in REFERENCES)} "
    "| best other − auto |\n|---|---|---|---|---|---|---|\n"
)


def main() -> None:
    """Write the table."""
    os.chdir(ROOT)
    put("judge/ahead", HEAD + "".join(rows()))


def rows() -> Iterator[str]:
    """Write a row for each data set and noise."""
    by_place: dict[tuple[str, str, str], dict[str, Line]] = {}
    for (bench, data, noise, method, reference), line in read_lines().items():
        if reference == "Auto":
            by_place.setdefault((bench, data, noise), {})[method] = with_nan(line)
    for (_, data, noise), lines in by_place.items():
        best = max(lines.values(), key=lambda line: line["mean"])
        seeds = min(len(line["seeds"]) for line in lines.values())
        cells = [cell(lines[name]) if name in lines else "" for name in REFERENCES]
        above = f"{best['method']}, {best['mean']:+.1f}"
        yield f"| {data} | {heading(noise)} | {seeds} | {' | '.join(cells)} | {above} |\n"


def cell(line: Line) -> str:
    """Turn a method's difference to auto into that of auto to the method."""
    names = ("mean", "high", "low", "rows_high", "rows_low")
    mean, low, high, rows_low, rows_high = (-line[name] for name in names)
    sure = min(low, rows_low) > 0 or max(high, rows_high) < 0
    # 0 is added to write 0.0 rather than -0.0.
    mean, low, high, rows_low, rows_high = (
        round(value, 1) + 0.0 for value in (mean, low, high, rows_low, rows_high)
    )
    bold = f"**{mean:+.1f}**" if sure else f"{mean:+.1f}"
    return f"{bold}, {low:.1f} to {high:.1f} ({rows_low:.1f} to {rows_high:.1f})"


if __name__ == "__main__":
    main()
