"""Cards: the rows with findings, surest first, as a page shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from PIL.Image import Image

from balancemix.auditing.findings import Finding, Findings
from balancemix.auditing.judged import Judged
from balancemix.auditing.probability import SIDES
from balancemix.report.pictures import data_uri

MOST = 200  # cards
BUDGET = 6_000_000  # characters of all pictures together
SIGNS = {"wrong": "−", "missing": "+", "unknown": "?"}
LOOKS = {"wrong": "wrong", "missing": "missing", "unknown": "present"}


class Pictured(Protocol):
    """Rows that may have pictures."""

    def picture(self, i: int) -> Image | None:
        """Return a picture of row i, if there is one."""

    def values(self, i: int) -> str:
        """Write the values of row i, for one without a picture."""


@dataclass(frozen=True)
class Tag:
    """A label of a card: as it is given, or with what looks wrong about it."""

    name: str
    problem: str = ""
    chance: str = ""

    @property
    def sign(self) -> str:
        """`−` for what looks wrong, `+` for what looks missing, `?` for what looks present."""
        return SIGNS.get(self.problem, "")


@dataclass(frozen=True)
class Card:
    """A row with findings: its picture or its values, its labels, and the truth if it is known."""

    name: str
    picture: str  # a data URI
    values: str
    tags: list[Tag]
    keys: list[str]  # problem:column of each finding, for the page's filter
    truth: str = ""


@dataclass(frozen=True)
class Cards:
    """The cards of a page, surest first, and how many rows with findings there are in all."""

    cards: list[Card]
    rows: int
    full: bool  # whether more would have made the page too large
    columns: dict[int, str]  # the classes of the findings on the cards, by name

    def __len__(self) -> int:
        return len(self.cards)

    @cached_property
    def pictured(self) -> int:
        """How many have a picture."""
        return sum(bool(card.picture) for card in self.cards)

    @cached_property
    def problems(self) -> dict[str, int]:
        """On how many cards each problem is."""
        each = ({key.partition(":")[0] for key in card.keys} for card in self.cards)
        counts = Counter(problem for problems in each for problem in problems)
        return {problem: counts[problem] for problem in SIDES if counts[problem]}

    @property
    def noun(self) -> str:
        """What the cards show."""
        return "picture" if self.pictured else "row"


def make_cards(findings: Findings, rows: Pictured, most: int = MOST, budget: int = BUDGET) -> Cards:
    """Make cards of the rows with the surest findings: at most `most`, with `budget` for pictures.

    `rows` are those that were audited.
    """
    chosen = by_row(findings, most)
    cards, used, full = [], 0, False
    for row, listed in chosen.items():
        picture = data_uri(rows.picture(row))
        used += len(picture)
        full = used > budget
        if full:
            break
        values = "" if picture else rows.values(row)
        cards.append(_card(findings.judged, row, listed, picture, values))
    shown = {f.column for listed in list(chosen.values())[: len(cards)] for f in listed}
    names = {column: findings.judged.classes[column] for column in shown}
    columns = dict(sorted(names.items(), key=lambda item: (item[1].casefold(), item[0])))
    return Cards(cards, len(np.unique(findings.row.numpy())), full, columns)


def by_row(findings: Findings, most: int) -> dict[int, list[Finding]]:
    """Collect the findings of the rows with the surest ones, in this order in each row too."""
    order = np.lexsort((findings.rank.numpy(), -findings.probability.numpy()))
    first = dict.fromkeys(findings.row[torch.from_numpy(order)].tolist())
    chosen: dict[int, list[Finding]] = {row: [] for row in list(first)[:most]}
    kept = torch.isin(findings.row, torch.tensor(list(chosen), dtype=findings.row.dtype))
    for finding in sorted(findings[kept], key=lambda f: (-f.probability, f.rank)):
        chosen[finding.row].append(finding)
    return chosen


def chance(probability: float) -> str:
    """Write a probability in percent, which is never 0 or 100.

    >>> chance(0.971), chance(0.997), chance(0.001)
    ('97 %', 'over 99 %', 'under 1 %')
    """
    whole = round(100 * probability)
    if whole > 99:
        return "over 99 %"
    return f"{whole} %" if whole else "under 1 %"


def _card(judged: Judged, row: int, listed: list[Finding], picture: str, values: str) -> Card:
    doubted = {f.column for f in listed}
    given = [k for k in _present(judged.given, row) if k not in doubted]
    tags = [Tag(judged.classes[f.column], f.problem, chance(f.probability)) for f in listed]
    tags += [Tag(judged.classes[k]) for k in given]
    truth = ""
    if judged.truth is not None and bool((judged.truth[row] >= 0).any()):
        truth = ", ".join(judged.classes[k] for k in _present(judged.truth, row)) or "none"
    keys = [f"{f.problem}:{f.column}" for f in listed]
    return Card(judged.names[row], picture, values, tags, keys, truth)


def _present(labels: torch.Tensor, row: int) -> Iterator[int]:
    yield from (labels[row] == 1).nonzero().flatten().tolist()
