"""Ranks from five perspectives and the area of their pentagon, as the paper's figure has them.

"Clean" is no noise, "Mislabel" and "Rand. Flip" the mean over their rates, "Missing" the single
positive label, "Imbal." the few-shot classes without noise. Methods are ranked on each data set,
the ranks are added up and ranked again. A perspective is a corner of the pentagon, at a radius of
(M + 1 − rank) / M for M methods.

Departure: the paper prints areas but not their unit; ours are a share of the whole pentagon, which
is first place everywhere. By this rule the paper's numbers give the order of areas that its source
notes. "Few" ranks the few-shot classes over all noises, and is not a corner.
"""

from collections.abc import Mapping, Sequence

from balancemix.bench.table import Cell, Row, Table
from balancemix.labels import noise

PERSPECTIVES = {  # kind of noise (every one, if none is named) and group of classes
    "Clean": ("none", "All"),
    "Mislabel": ("mislabel", "All"),
    "Rand. Flip": ("flip", "All"),
    "Missing": ("single", "All"),
    "Imbal.": ("none", "Few"),
    "Few": ("", "Few"),
}
FIVE = list(PERSPECTIVES)[:5]  # corners of the pentagon

Scores = Mapping[tuple[str, str], float]  # noise, group: mAP


def rank(scores: Mapping[str, float]) -> dict[str, int]:
    """Rank names by score, the highest first; ties share the better rank.

    >>> rank({"a": 1.0, "b": 3.0, "c": 1.0})
    {'a': 2, 'b': 1, 'c': 2}
    """
    return {
        name: 1 + sum(other > score for other in scores.values()) for name, score in scores.items()
    }


def mean_of(scores: Scores, noises: Sequence[str], perspective: str) -> float | None:
    """Average a method's scores over the columns of a perspective; None if one is missing.

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
    """Rank methods on each data set, add up, and rank again; a missing column leaves one out."""
    ranks = []
    for methods in sets:
        means = {name: mean_of(scores, noises, perspective) for name, scores in methods.items()}
        ranks.append(rank({name: mean for name, mean in means.items() if mean is not None}))
    names = [name for name in (ranks[0] if ranks else ()) if all(name in each for each in ranks)]
    return rank({name: -sum(each[name] for each in ranks) for name in names})


def rank_perspectives(
    sets: Sequence[Mapping[str, Scores]], noises: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Rank the methods that ran under all these noises from each of the five perspectives.

    Returns {method: {perspective: rank}}, without the perspectives for which there is no noise.
    """
    columns = {(text, group) for text in noises for group in ("All", "Few")}
    whole = [{name: s for name, s in methods.items() if columns <= s.keys()} for methods in sets]
    ranks = {view: rank_methods(whole, noises, view) for view in FIVE}
    names = [name for name in (whole[0] if whole else {}) if all(name in each for each in whole)]
    return {name: {view: r[name] for view, r in ranks.items() if r} for name in names}


def ranking_table(
    sets: Sequence[Mapping[str, Scores]],
    noises: Sequence[str],
    categories: Mapping[str, str],
    name: str = "ranking",
    title: str = "Rank from five perspectives, and the area of the pentagon",
) -> Table:
    """Lay out the ranks of all methods; `categories` names the rows."""
    ranks = {view: rank_methods(sets, noises, view) for view in PERSPECTIVES}
    most = max(len(ranked) for ranked in ranks.values())
    rows = []
    for label, category in categories.items():
        cells = []
        for view, ranked in ranks.items():
            value = mean_of(sets[0].get(label, {}), noises, view) if len(sets) == 1 else None
            note = f"({value:.1f})" if value is not None else ""
            cells.append(Cell.of(ranked.get(label), note=note, digits=0))
        places = [ranks[view][label] for view in FIVE if label in ranks[view]]
        size = area(places, most) if len(places) == len(FIVE) else None
        rows.append(Row(category, label, (*cells[:5], Cell.of(size, digits=2), *cells[5:])))
    columns = tuple(("", view) for view in (*FIVE, "Area", "Few"))
    return Table(name, title, columns, tuple(rows), marked=False, visible=name == "ranking")


def area(places: Sequence[float], methods: int) -> float:
    """Return the area of a pentagon of ranks as a share of the one with first place everywhere.

    >>> area([1, 1, 1, 1, 1], 7), round(area([7, 7, 7, 7, 7], 7), 3)
    (1.0, 0.02)
    """
    radii = [(methods + 1 - place) / methods for place in places]
    pairs = zip(radii, [*radii[1:], radii[0]], strict=True)
    return sum(a * b for a, b in pairs) / len(radii)
