"""Fig. 4: ranks of methods from five perspectives as pentagons, each with its area."""

import math
from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from balancemix.bench.ranking import area
from balancemix.report.figures import style

Ranks = Mapping[str, Mapping[str, float]]


@style.styled
def pentagons(ranks: Ranks, columns: int = 3) -> Figure:
    """Draw a pentagon for each method, the largest first, from {method: {perspective: rank}}."""
    methods = len(ranks)
    sizes = {name: area(list(each.values()), methods) for name, each in ranks.items()}
    order = sorted(sizes, key=lambda name: -sizes[name])
    columns = min(columns if len(order) > 4 else 2, len(order))
    rows = math.ceil(len(order) / columns)
    figure, every = style.figure(
        5.6 / columns * rows, rows, columns, subplot_kw={"projection": "polar"}
    )
    for axes in every[len(order) :]:
        axes.set_visible(False)
    best = sizes[order[0]]
    for axes, name in zip(every, order, strict=False):
        colour = style.BLUE if sizes[name] == best else style.FAINT
        _grid(axes, {place: f"{place}\n#{rank:g}" for place, rank in ranks[name].items()}, methods)
        _outline(axes, ranks[name], methods, colour)
        # Above the pentagon: inside, the text would hide a small one.
        title = f"{name}  {sizes[name]:.0%}"
        axes.set_title(title, loc="center", pad=24, fontweight="bold", color=colour)
    return figure


def _angles(count: int) -> list[float]:
    return [2 * math.pi * i / count for i in range(count)]


def _grid(axes: Any, captions: Mapping[str, str], methods: int) -> None:
    """Draw the web that ranks are read from: rank 1 is at the rim."""
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_ylim(0, methods)
    axes.set_axis_off()
    angles = _angles(len(captions))
    for reach in range(1, methods + 1):
        wide = 1.0 if reach == methods else 0.5
        axes.plot([*angles, angles[0]], [reach] * (len(angles) + 1), color=style.GRID, lw=wide)
    for angle, caption in zip(angles, captions.values(), strict=True):
        axes.plot([angle, angle], [0, methods], color=style.GRID, lw=0.5)
        side = math.sin(angle)
        across = "center" if abs(side) < 0.2 else ("left" if side > 0 else "right")
        up = "bottom" if math.cos(angle) > 0.8 else ("top" if math.cos(angle) < -0.5 else "center")
        axes.text(
            angle, methods * (1.12 if up == "center" else 1.06), caption, ha=across, va=up,
            fontsize=7.5, color=style.FAINT, linespacing=1.05,
        )  # fmt: skip


def _outline(axes: Any, ranks: Mapping[str, float], methods: int, colour: str) -> None:
    angles = _angles(len(ranks))
    reach = [methods + 1 - rank for rank in ranks.values()]
    closed = [*angles, angles[0]], [*reach, reach[0]]
    axes.plot(*closed, color=colour, lw=1.6, marker="o", ms=2.5, clip_on=False)
    axes.fill(*closed, color=colour, alpha=0.2, lw=0)
