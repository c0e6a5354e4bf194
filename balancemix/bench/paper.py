"""Our numbers beside the paper's: the ranks in each column, and how well the two orders agree."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import StatisticsError, correlation
from typing import Any

from balancemix.bench.ranking import Scores, rank
from balancemix.bench.scores import GROUPS, heading
from balancemix.bench.table import Cell, Row, Table
from balancemix.errors import InputError, suggest

FILE = Path(__file__).parent / "paper_numbers.toml"
NO_SCORES = ("error", "selection")  # tables of the file without mAP


@cache
def paper_numbers() -> dict[str, Any]:
    """Read the paper's numbers: table, row, noise, group."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def paper_scores(table: str) -> dict[str, dict[tuple[str, str], float]]:
    """Return a table of the paper's mAP: row, then noise and group.

    >>> paper_scores("coco")["BalanceMix"]["mislabel:0.4", "Few"]
    63.1
    """
    known = [name for name in paper_numbers() if name not in NO_SCORES]
    if table not in known:
        raise InputError(f"paper = {table!r}: no such table; {suggest(table, known)}")
    return {
        row: {
            (noise, group.capitalize()): value
            for noise, groups in noises.items()
            for group, value in groups.items()
        }
        for row, noises in paper_numbers()[table].items()
    }


def versus_paper_tables(
    ours: Mapping[str, Scores],
    paper: Mapping[str, Scores],
    noises: Mapping[str, str],
    tail: str = "",
) -> list[Table]:
    """Lay out both numbers and ranks for each group, and Spearman's ρ of each column.

    `noises` maps our noises to those of the paper; `tail` ends the names of files.
    """
    tables, agreement = [], []
    names = {
        noise: heading(noise)
        if heading(noise) == heading(other)
        else f"{heading(noise)} (paper {heading(other)})"
        for noise, other in noises.items()
    }
    for group in GROUPS:
        rows, correlations = [], []
        for noise, other in noises.items():
            both = {
                label: (scores[noise, group], paper[label][other, group])
                for label, scores in ours.items()
                if (noise, group) in scores and (other, group) in paper.get(label, {})
            }
            our_rank, paper_rank = (rank({k: v[i] for k, v in both.items()}) for i in (0, 1))
            for label, (our, its) in both.items():
                order = (Cell.of(places[label], digits=0) for places in (paper_rank, our_rank))
                rows.append(Row(names[noise], label, (Cell.of(its), Cell.of(our), *order)))
            rho = spearman(list(both.values())) if len(both) > 2 else None
            note = f"of {len(both)}" if rho is not None else ""
            correlations.append(Cell.of(rho, note=note, digits=2))
        if rows:
            columns = (("mAP", "paper"), ("mAP", "ours"), ("rank", "paper"), ("rank", "ours"))
            title = f"Ours beside the paper's, {group.lower()} classes, last mAP"
            name = f"beside-{group.lower()}{tail}"
            headings = ("Noise", "Method")
            tables.append(Table(name, title, columns, tuple(rows), headings, marked=False))
            agreement.append(Row("", group, tuple(correlations)))
    if agreement:
        heads = tuple(("", name) for name in names.values())
        title = "Spearman's ρ between the paper's order of methods and ours, last mAP"
        name, headings = f"spearman{tail}", ("", "Classes")
        tables.append(Table(name, title, heads, tuple(agreement), headings, False, visible=True))
    return tables


def spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Correlate the ranks of paired numbers, ties by their mean rank; None if it is undefined.

    >>> spearman([(1, 10), (2, 30), (3, 20)])
    0.5
    """
    ranks = (
        [sum((other > value) + (other == value) / 2 for other in values) for value in values]
        for values in zip(*pairs, strict=True)
    )
    try:
        return correlation(*ranks)
    except StatisticsError:  # all equal
        return None
