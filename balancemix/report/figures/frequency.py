"""Fig. 3 and App. B: AP and confidence by class frequency, and how they correlate."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from balancemix.report.figures import style

Numbers = npt.NDArray[np.float64]


@style.styled
def by_frequency(
    counts: npt.ArrayLike,
    ap: npt.ArrayLike,
    present: npt.ArrayLike,
    absent: npt.ArrayLike,
    groups: Mapping[str, Sequence[int]],
    scored_on: str = "test rows",
) -> Figure:
    """Draw AP (0 to 100) above, mean confidence in given positives and negatives below.

    All are K values; a dot is a class, the line joins the means of ten class groups by descending
    frequency, between which the paper takes Pearson's coefficient.
    """
    number, precision, sure, unsure = (
        np.asarray(values, dtype=np.float64) for values in (counts, ap, present, absent)
    )
    figure, (above, below) = style.figure(4.9, 2, 1, sharex=True)
    hues = np.full(len(number), style.GREY, dtype=object)
    for name, members in groups.items():
        hues[list(members)] = style.GROUPS.get(name, style.GREY)
    _shade((above, below), number, groups)
    occurs, parts = number > 0, tenths(number)
    where, means = ([_mean(values, part) for part in parts] for values in (number, precision))
    each = "tenth" if len(parts) == 10 else f"of {len(parts)} parts"
    above.scatter(number[occurs], precision[occurs], s=13, c=hues[occurs], alpha=0.75, lw=0)
    label = f"mean of each {each} of the classes"
    above.plot(where, means, "o-", color=style.INK, ms=4, label=label)
    above.set_ylabel(f"AP on {scored_on}, %")
    for values, mark, name in ((sure, "o", "positives"), (unsure, "s", "negatives")):
        edge: dict[str, Any] = {"facecolors": "none", "edgecolors": hues[occurs], "linewidths": 0.9}
        solid: dict[str, Any] = {"c": hues[occurs], "linewidths": 0}
        below.scatter(
            number[occurs], values[occurs], s=13, marker=mark, alpha=0.75,
            **(solid if mark == "o" else edge),
        )  # fmt: skip
        group = [_mean(values, part) for part in parts]
        r = pearson(group, means)
        together = "–" if np.isnan(r) else f"{r:.2f}"
        below.plot(
            where, group, f"{mark}-", color=style.INK, ms=4, label=f"{name}: r = {together}",
            mfc=style.INK if mark == "o" else style.PAPER,
        )  # fmt: skip
    below.set_ylabel("mean confidence\nin given labels")
    below.set_ylim(-0.03, 1.05)
    style.plain_log(below, "x")
    below.set_xlabel("positives of the class in training")
    above.legend(loc="best")
    figure.legend(
        *below.get_legend_handles_labels(), loc="outside lower center", ncols=2,
        title="Pearson’s r of confidence and AP between the groups", title_fontsize=8.5,
    )  # fmt: skip
    return figure


def tenths(counts: Numbers, parts: int = 10) -> list[npt.NDArray[np.int64]]:
    """Split the classes that occur into ten groups, the commonest first.

    >>> [part.tolist() for part in tenths(np.array([5.0, 9.0, 0.0, 7.0]), 2)]
    [[1, 3], [0]]
    """
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    return [part for part in np.array_split(order, min(parts, max(len(order), 1))) if len(part)]


def pearson(a: Sequence[float], b: Sequence[float]) -> float:
    """Correlate two rows of numbers; NaN if one of them is constant.

    >>> pearson([1, 2, 3], [2, 4, 6.0]), pearson([1, 2, 3], [1, 1, 1])
    (1.0, nan)
    """
    pairs = np.array([a, b], dtype=np.float64)
    pairs = pairs[:, np.isfinite(pairs).all(0)]
    a_off, b_off = pairs - pairs.mean(1, keepdims=True) if pairs.size else pairs
    scale = float(np.sqrt((a_off @ a_off) * (b_off @ b_off)))
    return float(a_off @ b_off) / scale if scale > 0 else float("nan")


def _mean(values: Numbers, part: npt.NDArray[np.int64]) -> float:
    known = values[part][np.isfinite(values[part])]
    return float(known.mean()) if len(known) else float("nan")


def _shade(panels: tuple[Axes, Axes], counts: Numbers, groups: Mapping[str, Sequence[int]]) -> None:
    """Tint the range of counts of each group, and name it."""
    known = {name: counts[list(members)] for name, members in groups.items()}
    known = {name: sizes[sizes > 0] for name, sizes in known.items() if (sizes > 0).any()}
    names = list(known)
    lowest = min((sizes.min() for sizes in known.values()), default=1.0) / 1.25
    highest = max((sizes.max() for sizes in known.values()), default=1.0) * 1.25
    right = highest
    for i, name in enumerate(names):
        after = known[names[i + 1]].max() if i + 1 < len(names) else None
        left = lowest if after is None else float(np.sqrt(known[name].min() * after))
        for axes in panels:
            axes.axvspan(left, right, color=style.GROUPS.get(name, style.GREY), alpha=0.08, lw=0)
        colour = style.GROUPS.get(name, style.INK)
        style.write_above(panels[0], name, float(np.sqrt(left * right)), color=colour)
        right = left
    panels[0].set_xlim(lowest, highest)
