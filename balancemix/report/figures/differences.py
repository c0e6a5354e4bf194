"""Did it help? The difference of each class between two runs, sorted, with their mean."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

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
    figure, (axes,) = style.figure(4.0 if every else 3.6)
    hues = [style.GROUPS.get(group_of.get(int(k), ""), style.GREY) for k in order]
    axes.bar(range(len(order)), value[order], color=hues, width=0.82)
    mean, low, high = interval
    if not (np.isnan(low) or np.isnan(high)):
        axes.axhspan(low, high, color=style.THIN, alpha=0.45, lw=0)
    axes.axhline(mean, color=style.INK, lw=1.2, ls="--")
    axes.axhline(0, color=style.INK, lw=0.8)
    axes.set_xlim(-0.7, max(len(order), 1) - 0.3)
    axes.margins(y=0.15)
    axes.set_ylabel("difference of AP, points")
    axes.set_title(title)
    known = [name for name in style.GROUPS if len(groups.get(name, ()))]
    handles = [Patch(color=style.GROUPS[name], label=f"{name}-shot") for name in known]
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    if every:
        names = [classes[k] for k in order]
        axes.set_xticks(range(len(order)), names, rotation=90 if len(order) > 6 else 0)
        axes.tick_params(axis="x", length=0, labelcolor=style.INK)
    else:
        # Bars of what gained are on the left and above 0, of what lost on the right and below.
        _list(axes, "gained most", [k for k in order[:_NAMED] if value[k] > 0], value, classes)
        _list(axes, "lost most", [k for k in order[::-1][:_NAMED] if value[k] < 0], value, classes)
        axes.set_xticks([])
        axes.set_xlabel(f"{len(order)} classes, what gained most first")
    return figure


def _list(
    axes: Axes,
    title: str,
    chosen: Sequence[int],
    value: npt.NDArray[np.float64],
    classes: Sequence[str],
) -> None:
    """Write the names of some classes into the corner that their bars leave free."""
    if not chosen:
        return
    lines = [title, *(f"{classes[k]} {value[k]:+.1f}" for k in chosen)]
    low = title == "gained most"
    axes.text(
        0.02 if low else 0.98, 0.03 if low else 0.97, "\n".join(lines), fontsize=8,
        transform=axes.transAxes, ha="left" if low else "right", va="bottom" if low else "top",
    )  # fmt: skip
