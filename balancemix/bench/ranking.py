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

from balancemix.labels import noise

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


def rank(scores: Mapping[str, float]) -> dict[str, int]:
    """Number the names from the highest score, 1, downwards; equals share the better rank.

    >>> rank({"a": 1.0, "b": 3.0, "c": 1.0})
    {'a': 2, 'b': 1, 'c': 2}
    """
    return {
        name: 1 + sum(other > score for other in scores.values()) for name, score in scores.items()
    }


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
        here = rank(known)
        both = here if totals is None else {name: totals[name] + here[name]
                                            for name in totals if name in here}  # fmt: skip
        totals = both
    totals = totals or {}
    return rank({name: -total for name, total in totals.items()})


def from_all_corners(
    sets: Sequence[Mapping[str, Scores]], noises: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Rank the methods that have run under all these noises, from each corner that they show."""
    columns = {(text, group) for text in noises for group in ("All", "Few")}
    whole = [{name: s for name, s in methods.items() if columns <= s.keys()} for methods in sets]
    places = {corner: rank_methods(whole, noises, corner) for corner in CORNERS}
    names = [name for name in (whole[0] if whole else {}) if all(name in each for each in whole)]
    shown = {corner: ranked for corner, ranked in places.items() if ranked}
    return {name: {corner: ranked[name] for corner, ranked in shown.items()} for name in names}


def area(places: Sequence[float], methods: int) -> float:
    """Return the area of a pentagon of ranks as a share of the one with first place everywhere.

    >>> area([1, 1, 1, 1, 1], 7), round(area([7, 7, 7, 7, 7], 7), 3)
    (1.0, 0.02)
    """
    radii = [(methods + 1 - place) / methods for place in places]
    pairs = zip(radii, [*radii[1:], radii[0]], strict=True)
    return sum(one * other for one, other in pairs) / len(radii)
