"""Is it ahead? Summaries of benchmarks/bootstrap.jsonl in docs/tables/judge.md: `ahead.py`.

Two tables, of `auto` and of second opinion, the setting that never changes. A row for each data set
and noise: the difference to a reference, the 95 % interval over seeds and, in brackets, over test
rows; bold where both exclude 0. The last column is the best of the other methods, and what it has
above the one of the table.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from statistics import mean

from bootstrap import Line, read_lines
from results import ROOT, put

from balancemix.bench.scores import heading
from balancemix.files import with_nan

AUTO, FIXED = "Auto", "Second Opinion"
REFERENCES = {
    AUTO: ("BalanceMix", "BCE + Mixup", "Kernel Ridge"),
    FIXED: ("BalanceMix", "BCE + Mixup"),
}
MARKS = {AUTO: "judge/ahead", FIXED: "judge/fixed"}
Lines = dict[tuple[str, str], Line]  # of one data set and noise, by method and reference


def main() -> None:
    """Write both tables."""
    os.chdir(ROOT)
    by_place: dict[tuple[str, str, str], Lines] = {}
    for (bench, data, noise, method, reference), line in read_lines().items():
        by_place.setdefault((bench, data, noise), {})[method, reference] = with_nan(line)
    for subject, mark in MARKS.items():
        put(mark, head(subject) + "".join(rows(subject, by_place)))


def head(subject: str) -> str:
    """Write the head of a method's table."""
    name = subject.lower()
    columns = [f"{name} − {reference}" for reference in REFERENCES[subject]]
    cells = ["data", "noise", "seeds", *columns, f"best other − {name}"]
    return f"| {' | '.join(cells)} |\n{'|---' * len(cells)}|\n"


def rows(subject: str, by_place: Mapping[tuple[str, str, str], Lines]) -> Iterator[str]:
    """Write a row for each data set and noise."""
    for (_, data, noise), lines in by_place.items():
        scores = mean_scores(lines)
        if subject not in scores:
            continue
        best = max((name for name in scores if name != subject), key=scores.__getitem__)
        seeds = min(len(line["seeds"]) for line in lines.values())
        cells = [cell(subject, name, lines) for name in REFERENCES[subject]]
        above = f"{best}, {scores[best] - scores[subject]:+.1f}".replace("-0.0", "+0.0")
        yield f"| {data} | {heading(noise)} | {seeds} | {' | '.join(cells)} | {above} |\n"


def mean_scores(lines: Lines) -> dict[str, float]:
    """List the mean score of each method.

    >>> mean_scores({("a", "b"): {"ours": [1.0, 2.0], "others": [4.0, 6.0]}})
    {'a': 1.5, 'b': 5.0}
    """
    scores = {}
    for (method, reference), line in lines.items():
        scores[method], scores[reference] = mean(line["ours"]), mean(line["others"])
    return scores


def cell(subject: str, other: str, lines: Lines) -> str:
    """Write what one method is ahead of another, whichever of them is the reference."""
    names, sign = ("mean", "low", "high", "rows_low", "rows_high"), 1
    line = lines.get((subject, other))
    if line is None:
        names, sign = ("mean", "high", "low", "rows_high", "rows_low"), -1
        line = lines.get((other, subject))
    if line is None:
        return ""
    gap, low, high, rows_low, rows_high = (sign * line[name] for name in names)
    sure = min(low, rows_low) > 0 or max(high, rows_high) < 0
    # 0 is added to write 0.0 rather than -0.0.
    gap, low, high, rows_low, rows_high = (
        round(value, 1) + 0.0 for value in (gap, low, high, rows_low, rows_high)
    )
    bold = f"**{gap:+.1f}**" if sure else f"{gap:+.1f}"
    return f"{bold}, {low:.1f} to {high:.1f} ({rows_low:.1f} to {rows_high:.1f})"


if __name__ == "__main__":
    main()
