"""Do two people answer alike? Labels that both looked at, each without the other's answer."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import NamedTuple

from balancemix.estimates.agreement import kappa
from balancemix.estimates.estimate import Estimate
from balancemix.review.log import Entry

ENOUGH = 50  # labels that two people answered, before which there is no κ


class Agreement(NamedTuple):
    """How many labels two people answered about, of how many they say the same, and κ."""

    both: int
    same: int
    kappa: Estimate | None
    people: tuple[str, ...]


def agreement(live: Iterable[Entry]) -> Agreement:
    """Compare the definite answers of every two people about the same label.

    `live` are the entries that are not undone. Settled pictures count by the labels they name.

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
