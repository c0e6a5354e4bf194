"""A page of a sweep: findings of one class and kind, surest first."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balancemix.review.api.queue import filter_of
from balancemix.review.bodies import number_of, rows_of
from balancemix.review.desk import Desk
from balancemix.review.handling import answer, person_of
from balancemix.review.leases import counted
from balancemix.review.listed import Bools
from balancemix.review.order import corrected
from balancemix.review.queue import Filter, Person, item
from balancemix.review.refused import Refused

MOST = 60  # findings that a browser holds
HALF = 0.5  # of a page; where fewer would be right, one look at each costs less than marking


async def get_grid(request: Request) -> Response:
    """Hand out tiles."""
    who, chosen = person_of(request), filter_of(request)
    if chosen.column is None or chosen.problem is None:
        raise Refused(400, "grid", "A sweep is of one class and one kind: name both.")
    count = number_of(request, "n", 0, MOST, 32)
    anyway = bool(number_of(request, "anyway", 0, 1, 0))
    holding = rows_of(request, len(request.app.state.desk.source))
    return await answer(
        request, lambda desk: page(desk, who, chosen, count, holding, anyway=anyway)
    )


def page(
    desk: Desk,
    who: Person,
    chosen: Filter,
    count: int,
    holding: Collection[int] = (),
    *,
    anyway: bool = False,
) -> dict[str, Any]:
    """Choose the surest findings that nobody holds (or `anyway`), and lease them to the tab.

    `open` counts all that are still to be swept; `over` says that fewer than half of these tiles
    would be right, by the answers so far.
    """
    listed = desk.listed
    swept = desk.is_asked(who.name) & listed.mask(chosen.column, chosen.problem)
    if chosen.problem == "wrong" and who.name is not None:
        swept &= ~passed_by(desk, who.name)
    taken = {} if anyway else desk.leases.others(who.tab)
    free = np.flatnonzero(swept & ~np.isin(listed.row, [*holding, *taken]))
    picked = free[np.lexsort((listed.row[free], -listed.p[free]))][:count]
    desk.leases.hold(who.tab, who.name or "", [*holding, *listed.row[picked].tolist()])
    likely = corrected(listed.given, listed.p, desk.errors())
    over = chosen.problem != "wrong" and len(picked) > 0 and likely[picked].mean() < HALF
    return {
        "items": [item(desk, int(row), who, chosen) for row in listed.row[picked]],
        "open": int(swept.sum()),
        "over": bool(over),
        "others": counted(taken[row] for row in listed.row[swept].tolist() if row in taken),
    }


def passed_by(desk: Desk, name: str) -> Bools:
    """Mark the findings that a person did not click in a sweep: only Focus asks about them."""
    marks: Bools = np.zeros(len(desk.listed), dtype=np.bool_)
    for reviewer, image, class_ in desk.store.passed():
        key = desk.place.get(image, -1), desk.column.get(class_, -1)
        if reviewer.casefold() == name.casefold() and key in desk.index:
            marks[desk.index[key]] = True
    return marks


routes = [Route("/api/grid", get_grid, methods=["GET"])]
