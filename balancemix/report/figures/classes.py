"""App. C: how often each class occurs, with the lines between many, medium and few shots."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from balancemix.report.figures import style

# How many names can be read side by side.
_MOST_NAMES = 26


@style.styled
def distribution(
    counts: npt.ArrayLike, groups: Mapping[str, Sequence[int]], classes: Sequence[str]
) -> Figure:
    """Draw the positives of each class as bars, the commonest first, coloured by group.

    With too many classes to name, only the first of each group and the last of all are named.
    """
    number = np.asarray(counts, dtype=float)
    order = [
        k for name in groups for k in sorted(groups[name], key=lambda k: (-number[k], classes[k]))
    ]
    group_of = {k: name for name, members in groups.items() for k in members}
    every = len(order) <= _MOST_NAMES
    figure, (axes,) = style.figure(3.5 if every else 3.1)
    hues = [style.GROUPS.get(group_of[k], style.GREY) for k in order]
    axes.bar(range(len(order)), number[order], color=hues, width=0.82)
    style.plain_log(axes, "y")
    least = max(number[number > 0].min(initial=1.0), 1.0)
    most = max(number.max(initial=1.0), 2.0)
    axes.set_ylim(least / 2, most * (1.6 if every else 3.5))
    axes.set_xlim(-0.7, len(order) - 0.3)
    start = 0
    for name, members in groups.items():
        if start and len(members):
            axes.axvline(start - 0.5, color=style.INK, lw=1, ls="--")
        if len(members):
            middle = start + (len(members) - 1) / 2
            colour = style.GROUPS.get(name, style.INK)
            style.write_above(axes, f"{name}-shot: {len(members)}", middle, color=colour)
            if not every:
                _name(axes, classes[order[start]], start, number[order[start]], 3)
        start += len(members)
    if every:
        names = [classes[k] for k in order]
        axes.set_xticks(range(len(order)), names, rotation=90 if len(order) > 6 else 0)
        axes.tick_params(axis="x", length=0, labelcolor=style.INK)
    else:
        # The last bar is low: its name has to clear its neighbours.
        _name(axes, classes[order[-1]], len(order) - 1, number[order[-3:]].max(), -1)
        axes.set_xticks([])
        axes.set_xlabel(f"{len(order)} classes, the commonest first")
    axes.set_ylabel("positives in training")
    return figure


def _name(axes: Axes, name: str, place: int, height: float, aside: float) -> None:
    """Write a class's name upwards over its bar."""
    axes.annotate(
        name, (place, max(height, axes.get_ylim()[0])), xytext=(aside, 3),
        textcoords="offset points", rotation=90, ha="center", va="bottom", fontsize=8,
    )  # fmt: skip
