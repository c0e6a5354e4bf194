"""What to ask next: pictures with open questions that nobody else is looking at."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from balancemix.data.source import Source
from balancemix.review.desk import DECIDED, DISPUTED, STATES, UNSURE, Asking, Desk
from balancemix.review.leases import counted
from balancemix.review.listed import PROBLEMS, Bools, Ints
from balancemix.review.log import Entry, Log
from balancemix.review.probes import turns

FEWEST = 10  # answers by which time is estimated


@dataclass(frozen=True)
class Person:
    """Who asks, if they have said so, and in which tab."""

    name: str | None
    tab: str


@dataclass(frozen=True)
class Filter:
    """Which findings are asked about; `unsure` are those to look at again."""

    column: int | None = None
    problem: str | None = None
    unsure: bool = False


def next_items(
    desk: Desk,
    who: Person,
    chosen: Filter,
    count: int,
    holding: Collection[int] = (),
    *,
    anyway: bool = False,
) -> dict[str, Any]:
    """Choose the next pictures, and lease them to the tab.

    Those that the tab holds already, or another one, are left out; the latter not if `anyway`.
    """
    mask = desk.listed.mask(chosen.column, chosen.problem)
    asked = mask & (desk.status == UNSURE if chosen.unsure else desk.is_asked(who.name))
    rows = len(desk.source)
    wanted = rows_with(desk, asked, rows)
    taken = {} if anyway else desk.leases.others(who.tab)
    free = np.ones(rows, dtype=np.bool_)
    free[[*holding, *taken]] = False
    order = desk.order(chosen.column, chosen.problem)
    order = order[(wanted & free)[order]]
    if chosen == Filter():
        picked = with_probes(desk, who, order, asked & free[desk.listed.row], count)
    else:  # a random one of a class would say nothing of all findings
        picked = order[:count].tolist()
    desk.leases.hold(who.tab, who.name or "", [*holding, *picked])
    done = rows_with(desk, mask, rows) & ~wanted
    questions = int(asked.sum())
    return {
        "items": [item(desk, row, who, chosen) for row in picked],
        "open": int(wanted.sum()),
        "answered": int(done.sum()),
        "minutes": minutes_left(desk.log, who.name, questions),
        "others": counted(name for row, name in taken.items() if wanted[row] and name),
    }


def with_probes(desk: Desk, who: Person, order: Ints, asked: Bools, count: int) -> list[int]:
    """Take the next pictures of an order, with one question in ten drawn at random."""
    if who.tab not in desk.asking:
        desk.asking[who.tab] = Asking(since_probe(desk.log.live(), who.name))
    asking = desk.asking[who.tab]
    questions = np.bincount(desk.listed.row[asked], minlength=len(desk.source))
    picked: list[int] = []
    for turn in turns(order, desk.listed, asked, desk.probes, asking.since):
        if len(picked) == count:
            break
        picked.append(turn.row)
        number = int(questions[turn.row])
        if turn.probe is None:
            asking.since += number
        else:
            asking.since = number - 1
            asking.probes[turn.row] = turn.probe
    return picked


def since_probe(entries: Iterable[Entry], name: str | None) -> int:
    """Count the questions that a person answered since their last probe."""
    count = 0
    for entry in entries:
        if entry.reviewer == name and entry.mode == "focus":
            count = 0 if entry.probe else count + 1
    return count


def item(desk: Desk, row: int, who: Person, chosen: Filter = Filter()) -> dict[str, Any]:
    """Describe a picture, its given labels and its findings."""
    listed, found = desk.listed, []
    mask = listed.mask(chosen.column, chosen.problem)
    for i in listed.of_row(row):
        if mask[i]:
            found.append(finding(desk, i, who))
    return {
        "image": image_of(desk, row),
        "labels": labels_of(desk.source, row),
        "findings": found,
    }


def finding(desk: Desk, i: int, who: Person) -> dict[str, Any]:
    """Describe a finding; what others answered does not show where two people are asked."""
    listed, row, column = desk.listed, int(desk.listed.row[i]), int(desk.listed.column[i])
    mine = None if who.name is None else desk.log.opinion(who.name, row, column)
    status = int(desk.status[i])
    if mine is None and who.name is not None and status in (DECIDED, DISPUTED) and desk.shared()[i]:
        status = 0
    asking = desk.asking.get(who.tab)
    verdict = None
    if mine is not None:
        verdict = "absent" if mine.column is None else mine.verdict
    return {
        "class": column,
        "problem": PROBLEMS[int(listed.given[i]) + 1],
        "given": int(listed.given[i]),
        "suggested": int(listed.suggested[i]),
        "p": None if desk.settings.blind else round(float(listed.p[i]), 4),
        "measured": bool(listed.measured[i]),
        "probe": asking is not None and asking.probes.get(row) == i,
        "state": STATES[status],
        "mine": verdict,
    }


def image_of(desk: Desk, row: int) -> dict[str, Any]:
    """Describe a picture, or the values of a row that has none."""
    name = desk.source.names[row]
    if desk.pictures is None or not desk.pictures.has(row):
        return {"row": row, "name": name, "w": None, "values": values_of(desk.source, row)}
    w, h = desk.pictures.size(row) or (None, None)
    return {"row": row, "name": name, "w": w, "h": h, "v": desk.pictures.version(row)}


def labels_of(source: Source, row: int) -> list[int]:
    """List the classes that a picture is given."""
    return [k for k, value in enumerate(source.given[row].tolist()) if value == 1]


def values_of(source: Source, row: int, most: int = 12) -> str:
    """Write the first numbers of a row that has no picture."""
    if source.features is None:
        return ""
    values = source.features[row].flatten()
    shown = ", ".join(f"{value:.3g}" for value in values[:most].tolist())
    return f"{shown} …" if len(values) > most else shown


def rows_with(desk: Desk, chosen: Bools, rows: int) -> Bools:
    """Mark the rows that have a chosen finding."""
    marks = np.zeros(rows, dtype=np.bool_)
    marks[desk.listed.row[chosen]] = True
    return marks


def minutes_left(log: Log, name: str | None, questions: int) -> int | None:
    """Estimate the minutes that open questions take, by a person's last answers; None before."""
    times = [] if name is None else list(log.times.get(name, ()))
    if len(times) < FEWEST:
        return None
    return max(round(float(np.median(times)) * questions / 60_000), 1)


def open_counts(desk: Desk, asked: Bools) -> Mapping[str, list[int]]:
    """Count open findings by problem and class."""
    listed, classes = desk.listed, len(desk.source.classes)
    return {
        problem: np.bincount(
            listed.column[asked & (listed.given == value - 1)], minlength=classes
        ).tolist()
        for value, problem in enumerate(PROBLEMS)
    }
