"""The ranks from five perspectives as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from balancemix.bench.ranking import CORNERS, PERSPECTIVES, Scores, area, mean_of, rank_methods
from balancemix.bench.table import Cell, Row, Table


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
