"""Rank methods from the paper's five perspectives, and measure the pentagon that the ranks span."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

PERSPECTIVES = ("Clean", "Mislabel", "Rand. Flip", "Missing", "Imbal.")
KINDS = {
    "none": "Clean",
    "mislabel": "Mislabel",
    "flip": "Rand. Flip",
    "single": "Missing",
    "drop": "Missing",
}

Scores = Mapping[str, float]


def rank(scores: Scores) -> dict[str, int]:
    """Number the names from the highest score, 1, downwards; equals share the better rank.

    >>> rank({"a": 1.0, "b": 3.0, "c": 1.0})
    {'a': 2, 'b': 1, 'c': 2}
    """
    return {
        name: 1 + sum(other > score for other in scores.values()) for name, score in scores.items()
    }


def rankings(columns: Sequence[tuple[str, Scores]]) -> dict[str, dict[str, int]]:
    """Rank methods by perspective, from columns (perspective, score by method).

    As in the paper's Fig. 4: where a perspective has several columns (data sets, noise rates), the
    ranks in each are added up and ranked again. Only methods that are in every column take part.

    >>> rankings([("Clean", {"a": 9.0, "b": 8.0}), ("Missing", {"a": 1.0, "b": 2.0, "c": 3.0})])
    {'a': {'Clean': 1, 'Missing': 2}, 'b': {'Clean': 2, 'Missing': 1}}
    """
    everyone = list(dict.fromkeys(name for _, scores in columns for name in scores))
    names = [name for name in everyone if all(name in scores for _, scores in columns)]
    found: dict[str, dict[str, int]] = {name: {} for name in names}
    for perspective in PERSPECTIVES:
        ranks = [
            rank({name: scores[name] for name in names})
            for place, scores in columns
            if place == perspective
        ]
        if ranks:
            total = rank({name: -sum(each[name] for each in ranks) for name in names})
            for name in names:
                found[name][perspective] = total[name]
    return found


def area(ranks: Sequence[float], methods: int) -> float:
    """Measure the polygon whose corners are the farther out the better the rank.

    The paper gives areas but not their unit. Here the last of `methods` reaches 1 from the centre
    and the first reaches `methods`, so seven methods' best pentagon has 116.5.

    >>> round(area([1, 1, 1, 1, 1], 7), 1), round(area([7, 7, 7, 7, 7], 7), 2)
    (116.5, 2.38)
    """
    reach = [methods + 1 - each for each in ranks]
    pairs = zip(reach, [*reach[1:], reach[0]], strict=True)
    return 0.5 * math.sin(2 * math.pi / len(reach)) * sum(one * other for one, other in pairs)
