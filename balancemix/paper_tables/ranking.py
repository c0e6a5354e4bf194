"""Ranks from five perspectives and the area of their pentagon, as the paper's figure has them.

"Clean" is no noise, "Mislabel" and "Rand. Flip" the mean over their rates, "Missing" the single
positive label, "Imbal." the few-shot classes without noise. Methods are ranked on each data, the
ranks are added up and ranked again. A corner of the pentagon is at (M + 1 − rank) / M of M methods.

Departure: the paper prints areas but not their unit; ours are a share of the whole pentagon, which
is first place everywhere. By this rule the paper's own numbers give the order of areas that its
source notes. "Few" ranks the few-shot classes over all noises, and is no corner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from balancemix import noise
from balancemix.paper_tables.table import Cell, Row, Table, ranks

PERSPECTIVES = {  # kind of noise (every one, if none is named) and group of classes
    "Clean": ("none", "All"),
    "Mislabel": ("mislabel", "All"),
    "Rand. Flip": ("flip", "All"),
    "Missing": ("single", "All"),
    "Imbal.": ("none", "Few"),
    "Few": ("", "Few"),
}
CORNERS = list(PERSPECTIVES)[:5]

Scores = Mapping[tuple[str, str], float]  # noise, group: mAP


def mean_of(scores: Scores, noises: Sequence[str], perspective: str) -> float | None:
    """Average a method's scores over the columns of a perspective; none where one is missing.

    >>> mean_of({("flip:0.1", "All"): 40.0, ("flip:0.2", "All"): 30.0}, ["flip:0.1", "flip:0.2"],
    ...         "Rand. Flip")
    35.0
    """
    kind, group = PERSPECTIVES[perspective]
    columns = [(text, group) for text in noises if kind in ("", noise.parse(text).kind)]
    if not columns or any(column not in scores for column in columns):
        return None
    return sum(scores[column] for column in columns) / len(columns)


def rank_methods(
    sets: Sequence[Mapping[str, Scores]], noises: Sequence[str], perspective: str
) -> dict[str, int]:
    """Rank methods on each data, add up, and rank again; who lacks a column is not ranked."""
    totals: dict[str, int] | None = None
    for methods in sets:
        found = {name: mean_of(scores, noises, perspective) for name, scores in methods.items()}
        known = {name: value for name, value in found.items() if value is not None}
        here = dict(zip(known, ranks(list(known.values())), strict=True))
        both = here if totals is None else {name: totals[name] + here[name]
                                            for name in totals if name in here}  # fmt: skip
        totals = both
    totals = totals or {}
    return dict(zip(totals, ranks([-total for total in totals.values()]), strict=True))


def area(places: Sequence[int], methods: int) -> float:
    """Return the area of a pentagon of ranks as a share of the one with first place everywhere.

    >>> area([1, 1, 1, 1, 1], 7), round(area([7, 7, 7, 7, 7], 7), 3)
    (1.0, 0.02)
    """
    radii = [(methods + 1 - place) / methods for place in places]
    return sum(one * other for one, other in zip(radii, [*radii[1:], radii[0]], strict=True)) / 5


def ranking_table(
    sets: Sequence[Mapping[str, Scores]],
    noises: Sequence[str],
    categories: Mapping[str, str],
    name: str = "ranking",
    title: str = "Rank from five perspectives, and the area of the pentagon",
) -> Table:
    """Lay out the ranks of all methods; `categories` names the rows."""
    places = {view: rank_methods(sets, noises, view) for view in PERSPECTIVES}
    most = max((len(ranked) for ranked in places.values()), default=0)
    rows = []
    for label, category in categories.items():
        cells = []
        for view, ranked in places.items():
            value = mean_of(sets[0].get(label, {}), noises, view) if len(sets) == 1 else None
            note = f"({value:.1f})" if value is not None else ""
            here = label in ranked
            cells.append(Cell((ranked[label],), note, 0) if here else Cell(digits=0))
        corners = [places[view][label] for view in CORNERS if label in places[view]]
        whole = len(corners) == len(CORNERS)
        size = Cell((area(corners, most),), digits=2) if whole else Cell(digits=2)
        rows.append(Row(category, label, (*cells[:5], size, *cells[5:])))
    columns = tuple(("", view) for view in (*CORNERS, "Area", "Few"))
    shown = name == "ranking"
    return Table(name, title, columns, tuple(rows), best="none", shown=shown)
