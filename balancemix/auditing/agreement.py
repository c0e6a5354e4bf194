"""Do two people answer alike? Labels that both looked at, each without the other's answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple, Protocol

from balancemix.data.decisions.entries import Written
from balancemix.estimates.agreement import kappa
from balancemix.estimates.estimate import Estimate

ENOUGH = 50  # labels that two people answered, before which there is no κ


class Agreement(NamedTuple):
    """How many labels two people answered about, of how many they say the same, and κ."""

    both: int
    same: int
    kappa: Estimate | None
    people: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Describe it by plain values."""
        found, people = self.kappa, list(self.people)
        ends = None if found is None else {n: getattr(found, n) for n in ("value", "low", "high")}
        return {"labels": self.both, "same": self.same, "kappa": ends, "people": people}


class Said(Protocol):
    """An answer about a label; `class_` is None where it is about a whole picture."""

    @property
    def reviewer(self) -> str:
        """Who gave it."""

    @property
    def image(self) -> str:
        """The name of the picture."""

    @property
    def class_(self) -> str | None:
        """The name of the class."""

    @property
    def verdict(self) -> str:
        """Present, absent, or something else."""

    @property
    def mode(self) -> str:
        """Where it was given."""


def agreement_in(rows: Sequence[Written]) -> Agreement:
    """Compare the answers of people in a store, of which `rows` are all that was written."""
    undone = {(row.class_ is None, row.undoes) for row in rows if row.undoes is not None}
    return agreement(row for row in rows if (row.class_ is None, row.number) not in undone)


def agreement(live: Iterable[Said]) -> Agreement:
    """Compare the definite answers of every two people about the same label.

    `live` are the answers that are not undone. Settled pictures count by the labels they name.

    Answers that resolve a dispute do not count: both answers were known by then. Of more than two
    people, the pairs are put together, each in the order of the names.
    """
    said: dict[tuple[str, str], dict[str, bool]] = {}
    for each in live:
        definite = each.verdict in ("present", "absent") and each.mode not in ("resolve", "file")
        if definite and each.class_ is not None:
            opinions = said.setdefault((each.image, each.class_), {})
            opinions[each.reviewer] = each.verdict == "present"
    pairs, people = [], set[str]()
    for opinions in said.values():
        for one, other in combinations(sorted(opinions), 2):
            pairs.append((opinions[one], opinions[other]))
            people |= {one, other}
    same = sum(a == b for a, b in pairs)
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    enough = kappa(first, second) if len(pairs) >= ENOUGH else None
    return Agreement(len(pairs), same, enough, tuple(sorted(people)))
