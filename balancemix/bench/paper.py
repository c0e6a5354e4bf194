"""Our numbers beside the paper's: who stands where in each column, and how far the orders agree."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from balancemix.bench.ranking import Scores
from balancemix.bench.scores import GROUPS, heading
from balancemix.bench.table import Cell, Row, Table, ranks, spearman
from balancemix.errors import InputError, suggest

FILE = Path(__file__).parent / "paper_numbers.toml"
NO_SCORES = ("error", "selection")  # tables of the file that are not of mAP


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


def pairs(
    ours: Mapping[str, Scores], theirs: Mapping[str, Scores], noise: str, other: str, group: str
) -> dict[str, tuple[float, float]]:
    """Pair our number under a noise with theirs under theirs, for the rows that have both.

    >>> pairs({"ASL": {("flip:0.1", "All"): 34.7}}, paper_scores("coco"), "flip:0.1", "flip:0.2",
    ...       "All")
    {'ASL': (34.7, 75.0)}
    """
    return {
        label: (scores[noise, group], theirs[label][other, group])
        for label, scores in ours.items()
        if (noise, group) in scores and (other, group) in theirs.get(label, {})
    }


def beside_tables(
    ours: Mapping[str, Scores],
    theirs: Mapping[str, Scores],
    noises: Mapping[str, str],
    tail: str = "",
) -> list[Table]:
    """Lay out both numbers and ranks for each group, and Spearman's ρ of each column.

    `noises` are ours, each with the paper's that it is compared with; `tail` ends the files' names.
    """
    tables, agreement = [], []
    for group in GROUPS:
        rows, correlations = [], []
        for noise, other in noises.items():
            found = pairs(ours, theirs, noise, other, group)
            mine, yours = [ours for ours, _ in found.values()], [its for _, its in found.values()]
            places = zip(found, mine, yours, ranks(mine), ranks(yours), strict=True)
            name = _named(noise, other)
            for label, our, their, our_rank, their_rank in places:
                cells = (Cell((their,)), Cell((our,)))
                order = (Cell((their_rank,), digits=0), Cell((our_rank,), digits=0))
                rows.append(Row(name, label, cells + order))
            rho = spearman(mine, yours) if len(found) > 2 else None
            note = f"of {len(found)}" if rho is not None else ""
            correlations.append(Cell((rho,) if rho is not None else (), note, 2))
        if rows:
            tables.append(_group_table(group, rows, tail))
            agreement.append(Row("", group, tuple(correlations)))
    if not agreement:
        return []
    columns = tuple(("", _named(noise, other)) for noise, other in noises.items())
    title = "Spearman's ρ between the paper's order of methods and ours, last mAP"
    corner = ("", "Classes")
    rhos = Table(
        f"spearman{tail}", title, columns, tuple(agreement), corner, best="none", shown=True
    )
    return [*tables, rhos]


def _group_table(group: str, rows: list[Row], tail: str) -> Table:
    columns = (("mAP", "paper"), ("mAP", "ours"), ("rank", "paper"), ("rank", "ours"))
    title = f"Ours beside the paper's, {group.lower()} classes, last mAP"
    name = f"beside-{group.lower()}{tail}"
    return Table(name, title, columns, tuple(rows), ("Noise", "Method"), best="none")


def _named(noise: str, other: str) -> str:
    same = heading(noise) == heading(other)
    return heading(noise) if same else f"{heading(noise)} (paper {heading(other)})"
