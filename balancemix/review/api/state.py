"""What the page needs to know before it asks anything, and what has changed since."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balancemix.review.bodies import number_of
from balancemix.review.desk import DISPUTED, STATES, UNSURE, Desk
from balancemix.review.handling import answer, person_of
from balancemix.review.queue import Person, open_counts


async def get_state(request: Request) -> Response:
    """Describe the data, the classes, and how far people are."""
    who = person_of(request)
    return await answer(request, lambda desk: state_of(desk, who))


async def get_changes(request: Request) -> Response:
    """List the labels that were answered about since a number of entries."""
    who, since = person_of(request), number_of(request, "since", 0, 10**12, 0)
    return await answer(request, lambda desk: changes_of(desk, who, since))


def state_of(desk: Desk, who: Person) -> dict[str, Any]:
    """Describe the review to one person."""
    asked, source, settings = desk.is_asked(who.name), desk.source, desk.settings
    expected = (0.0, 0.0) if desk.snapshot is None else desk.snapshot.expected
    return {
        "store": desk.store_id,
        "data": settings.data,
        "rows": len(source),
        "pictures": desk.pictures is not None,
        "me": who.name,
        "people": list(desk.people),
        "seq": len(desk.log),
        "question": settings.question,
        "blind": settings.blind,
        "measured": bool(desk.judge.measured),
        "findings": len(desk.listed),
        "open": int(asked.sum()),
        "unsure": int((desk.status == UNSURE).sum()),
        "disputed": sum(state.state == "disputed" for state in desk.states.values()),
        "expected": {"wrong": expected[0], "missing": expected[1]},
        "labels": source.given.numel(),
        "file": f"{desk.store.file.parent.name}/{desk.store.file.name}",
        "changed": desk.changed,
        "commands": dict(settings.commands),
        "sample": desk.sampling.facts(),
        "classes": classes_of(desk, open_counts(desk, asked)),
    }


def classes_of(desk: Desk, counts: Any) -> list[dict[str, Any]]:
    """Describe the classes, with their open findings."""
    rules = {rule.class_: rule.text for rule in desk.store.rules()}
    given = (desk.source.given == 1).sum(0).tolist()
    not_judged = set(desk.judge.not_judged)
    return [
        {
            "id": k,
            "name": name,
            "given": given[k],
            **{problem: counts[problem][k] for problem in ("missing", "wrong", "unknown")},
            "judged": name not in not_judged,
            "rule": rules.get(name, ""),
        }
        for k, name in enumerate(desk.source.classes)
    ]


def changes_of(desk: Desk, who: Person, since: int) -> dict[str, Any]:
    """List what others, or the same person in another tab, answered."""
    changed: dict[tuple[int, int], str] = {}
    for entry in desk.log.entries[since:]:
        if entry.row < 0 or desk.tabs.get(entry.client) == who.tab:
            continue
        if entry.column is None:
            found = [int(desk.listed.column[i]) for i in desk.listed.of_row(entry.row)]
        else:
            found = [entry.column] if entry.column >= 0 else []
        changed |= {(entry.row, column): entry.reviewer for column in found}
    labels = []
    for (row, column), name in changed.items():
        i = desk.index.get((row, column))
        if i is not None and is_hidden(desk, i, who):
            continue
        state = desk.state(row, column).state
        labels.append({"row": row, "class": column, "state": state, "who": name})
    return {"seq": len(desk.log), "labels": labels}


def is_hidden(desk: Desk, i: int, who: Person) -> bool:
    """Tell whether a person must not see what others answered about a finding."""
    if who.name is None or not desk.shared()[i] or int(desk.status[i]) == STATES.index("resolved"):
        return False
    return not desk.answered_by(who.name)[i] and int(desk.status[i]) <= DISPUTED


routes = [
    Route("/api/state", get_state, methods=["GET"]),
    Route("/api/changes", get_changes, methods=["GET"]),
]
