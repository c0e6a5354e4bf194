"""What changes with the epochs: mAP, last against best; and what the minority sampler draws."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from balancemix.labels.classes import NAMES
from balancemix.report.figures import style


@style.styled
def learning(
    curves: Mapping[str, Sequence[float]], lines: Mapping[str, style.Line] | None = None
) -> Figure:
    """Draw mAP after each epoch, a curve for each name, with a ring at the best and a dot at the
    last epoch, and both numbers beside the curve.

    `lines` gives names the colour and dash that they have in other figures; curves of other names
    are thin and grey.
    """
    lines = style.colours(list(curves)) if lines is None else lines
    epochs = max(len(values) for values in curves.values())
    curves = {name: values for name, values in curves.items() if _known(values)}
    named = {name: values for name, values in curves.items() if name in lines}
    height = max(3.0, 0.19 * len(named) + 1.0)
    figure, (axes,) = style.figure(height)
    for name, values in curves.items():
        if name not in named:
            axes.plot(range(1, len(values) + 1), values, color=style.THIN, lw=0.8, zorder=1)
    for name, values in named.items():
        _draw(axes, values, *lines[name])
    if not curves:
        note = "not defined: no class has a positive in the rows that are scored"
        axes.set_title(note, color=style.FAINT)
    axes.set_xlim(1, max(epochs, 2))
    whole_epochs(axes, epochs)
    axes.set_xlabel("epoch")
    axes.set_ylabel("mAP, %")
    _name(axes, named, {name: lines[name][0] for name in named}, height)
    marks = [
        Line2D([], [], marker="o", color=style.FAINT, ls="none", label="last"),
        Line2D(
            [], [], marker="o", label="(best)", mfc=style.PAPER, mec=style.FAINT, mew=1.6, ls="none"
        ),
    ]
    if len(named) < len(curves):
        marks.append(Line2D([], [], color=style.THIN, lw=0.8, label="others"))
    figure.legend(handles=marks, loc="outside upper right", ncols=3, handletextpad=0.4)
    return figure


def _draw(axes: Axes, values: Sequence[float], colour: str, dash: str) -> None:
    """Draw a curve with its ring and its dot."""
    known = _known(values)
    best = max(known, key=lambda place: place[1])
    axes.plot(range(1, len(values) + 1), values, color=colour, linestyle=dash)
    ring: dict[str, Any] = {"mfc": style.PAPER, "mec": colour, "ms": 6, "mew": 1.6, "zorder": 3}
    axes.plot(*best, "o", **ring)
    axes.plot(*known[-1], "o", color=colour, ms=6, clip_on=False, zorder=4)


def _name(
    axes: Axes, curves: Mapping[str, Sequence[float]], colours: Mapping[str, str], height: float
) -> None:
    """Write each curve's name, last and best next to its end, without overlap."""
    low, high = axes.get_ylim()
    gap = (high - low) * 11.5 / (72 * (height - 0.85))
    known = {name: _known(values) for name, values in curves.items()}
    places = style.spread_labels([each[-1][1] for each in known.values()], gap)
    for (name, values), place in zip(curves.items(), places, strict=True):
        best = max(value for _, value in known[name])
        last = "–" if math.isnan(values[-1]) else f"{values[-1]:.1f}"
        axes.annotate(
            f"{name} {last} ({best:.1f})",
            known[name][-1],
            xytext=(1.06, place),
            textcoords=axes.get_yaxis_transform(),
            va="center",
            fontsize=8.5,
            color=colours[name],
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colours[name],
                "lw": 0.6,
                "relpos": (0, 0.5),
                "shrinkA": 0,
                "shrinkB": 3,
            },
        )


@style.styled
def penalties(errors: Mapping[str, float], best: float) -> Figure:
    """Draw the leave-one-out error by penalty, with a ring at the one chosen."""
    figure, (axes,) = style.figure(2.6)
    grid = sorted((float(penalty), error) for penalty, error in errors.items())
    axes.plot(*zip(*grid, strict=True), "o-", color=style.INK, ms=3.5)
    ring: dict[str, Any] = {"mfc": style.PAPER, "mec": style.INK, "ms": 8, "mew": 1.6}
    axes.plot(*min(grid, key=lambda place: abs(place[0] - best)), "o", **ring)
    style.plain_log(axes, "x")
    axes.set_xlabel("penalty")
    axes.set_ylabel("leave-one-out error")
    axes.grid(axis="y")
    return figure


@style.styled
def upsampling(lines: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw how often the minority sampler draws each class group, from the lines of a log.

    Below that, how many rows it effectively draws from: Kish's effective share, 100 % for uniform
    odds.
    """
    figure, (above, below) = style.figure(
        3.7, 2, 1, sharex=True, gridspec_kw={"height_ratios": (5, 2)}
    )
    sampled = [line for line in lines if any(f"upsampling_{name}" in line for name in NAMES)]
    epochs = [line["epoch"] for line in sampled]
    for name in NAMES:
        factor = [line.get(f"upsampling_{name}", math.nan) for line in sampled]
        above.plot(epochs, factor, color=style.GROUPS[name], label=f"{name}-shot")
    above.axhline(1, color=style.FAINT, lw=1, ls="--", label="at random")
    above.set_ylabel("times as often\nas at random")
    rows = [100 * line.get("effective_rows", math.nan) for line in sampled]
    below.plot(epochs, rows, color=style.INK)
    below.set_ylabel("effective\nrows, %")
    below.set_xlabel("epoch")
    for axes in (above, below):
        axes.ticklabel_format(axis="y", useOffset=False)
        axes.margins(x=0.01)
    low, high = min((v for v in rows if v == v), default=0.0), 100.0
    below.set_ylim(min(low - 0.15 * (high - low), 99.0), max(high, 100 + 0.15 * (high - low)))
    whole_epochs(below, len(lines))
    figure.legend(*above.get_legend_handles_labels(), loc="outside upper left", ncols=4)
    return figure


def whole_epochs(axes: Axes, epochs: int) -> None:
    """Put ticks on whole epochs only, the last of them included."""
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 1000) if epochs <= 8 * s or s == 1000)
    ticks = [1, *range(step, epochs + 1, step)] if step > 1 else list(range(1, epochs + 1))
    axes.set_xticks(ticks)


def _known(values: Sequence[float]) -> list[tuple[int, float]]:
    """List the epochs at which a curve is defined, with its values."""
    return [(epoch, value) for epoch, value in enumerate(values, 1) if not math.isnan(value)]
