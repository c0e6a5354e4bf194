"""Did it help? The difference of each class between two runs, sorted, with their mean."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from balancemix.report.figures import style

_MOST_NAMES = 26  # that can be read side by side
_NAMED = 4  # at each end, where there are more classes


@style.styled
def differences(
    change: npt.ArrayLike,
    interval: tuple[float, float, float],
    groups: Mapping[str, Sequence[int]],
    classes: Sequence[str],
    title: str,
) -> Figure:
    """Draw K differences of AP as bars, what gained most first, coloured by group.

    `interval` is the mean difference and its 95 % interval, drawn as a line in a band. Classes
    whose difference is NaN are left out.
    """
    value = np.asarray(change, dtype=np.float64)
    scored = np.flatnonzero(~np.isnan(value))
    order = scored[np.argsort(-value[scored], kind="stable")]
    group_of = {k: name for name, members in groups.items() for k in members}
    every = len(order) <= _MOST_NAMES
    figure, (axes,) = style.figure(3.7 if every else 3.3)
    hues = [style.GROUPS.get(group_of.get(int(k), ""), style.GREY) for k in order]
    axes.bar(range(len(order)), value[order], color=hues, width=0.82)
    mean, low, high = interval
    if not (np.isnan(low) or np.isnan(high)):
        axes.axhspan(low, high, color=style.THIN, alpha=0.45, lw=0)
    axes.axhline(mean, color=style.INK, lw=1.2, ls="--")
    axes.axhline(0, color=style.INK, lw=0.8)
    axes.set_xlim(-0.7, max(len(order), 1) - 0.3)
    axes.margins(y=0.15 if every else 0.35)
    axes.set_ylabel("difference of AP, points")
    axes.set_title(title, pad=18)
    for place, name in enumerate(name for name in style.GROUPS if len(groups.get(name, ()))):
        axes.annotate(
            f"{name}-shot", (0.16 * place, 1.0), xycoords="axes fraction", xytext=(0, 4),
            textcoords="offset points", color=style.GROUPS[name], fontsize=8.5,
        )  # fmt: skip
    if every:
        names = [classes[k] for k in order]
        axes.set_xticks(range(len(order)), names, rotation=90 if len(order) > 6 else 0)
        axes.tick_params(axis="x", length=0, labelcolor=style.INK)
    else:
        for place in [*range(_NAMED), *range(len(order) - _NAMED, len(order))]:
            _name(axes, classes[order[place]], place, float(value[order[place]]), len(order))
        axes.set_xticks([])
        axes.set_xlabel(f"{len(order)} classes, what gained most first")
    return figure


def _name(axes: Axes, name: str, place: int, height: float, count: int) -> None:
    """Write a class's name upwards over its bar, or downwards under it; neighbours stay apart."""
    gap = max(count / 30, 1.0)
    from_end = count - 1 - place
    x = place * gap if place < from_end else count - 1 - from_end * gap
    axes.annotate(
        name, (x, height), xytext=(0, 3 if height >= 0 else -3), textcoords="offset points",
        rotation=90, ha="center", va="bottom" if height >= 0 else "top", fontsize=8,
    )  # fmt: skip
