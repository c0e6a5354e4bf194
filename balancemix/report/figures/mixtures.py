"""Eqs. 6–8: the losses of one class and side, and the two Gaussians fitted to them."""

import math

import numpy as np
import numpy.typing as npt
import torch
from matplotlib.figure import Figure

from balancemix.labels.mixtures import Guard, Mixtures
from balancemix.report.figures import style

Numbers = npt.NDArray[np.float64]

_BINS = 48
_WHY = {
    Guard.FEW: "too few labels to judge: all count as clean",
    Guard.CONSTANT: "all losses are equal: all count as clean",
    Guard.EMPTY: "one component is empty: all count as clean",
    Guard.OVERLAPPING: "the components overlap: all count as clean",
}


@style.styled
def loss_histogram(
    losses: npt.ArrayLike,
    mixtures: Mixtures,
    column: int,
    side: int,
    wrong: npt.ArrayLike | None = None,
) -> Figure:
    """Draw the losses of class `column` given as negatives (side 0) or positives (side 1).

    `losses` are those of that side; `wrong` marks the wrong labels among them, which get a second
    colour. Bins have equal width in log loss, and the curves show how many labels each Gaussian
    expects in them. The axis of counts is a square root, so that few and many are both visible.
    """
    values = np.asarray(losses, dtype=np.float64)
    edges = _edges(values)
    figure, (axes,) = style.figure(2.9)
    held = values.clip(edges[0], edges[-1])
    if wrong is None:
        parts = {"given labels": (held, style.GREY)}
    else:
        bad = np.asarray(wrong, dtype=bool)
        parts = {
            f"right: {int((~bad).sum()):,}": (held[~bad], style.RIGHT),
            f"wrong: {int(bad.sum()):,}": (held[bad], style.WRONG),
        }
    highest = 1.0
    for name, (part, colour) in parts.items():
        counts, _ = np.histogram(part, edges)
        axes.stairs(counts, edges, fill=True, color=colour, alpha=0.35, label=name)
        highest = max(highest, float(counts.max()))
    guard = Guard(int(mixtures.guard[side, column]))
    if guard is Guard.FITTED:
        middle = np.sqrt(edges[1:] * edges[:-1])
        for component, (name, colour) in enumerate(
            (("clean component", style.RIGHT), ("noisy component", style.WRONG))
        ):
            expected = _expected(mixtures, column, side, component, edges, len(values))
            dash = "--" if component else "-"
            axes.plot(middle, expected, color=colour, lw=1.8, ls=dash, label=name)
            highest = max(highest, float(expected.max()))
        turn = boundary(mixtures, column, side, edges)
        if turn is not None:
            axes.axvline(turn, color=style.INK, lw=1, ls=":")
            style.write_above(axes, "P(clean) = ½", turn, xytext=(0, 3), fontsize=8.5)
    else:
        axes.set_title(_WHY[guard], color=style.FAINT)
    style.plain_log(axes, "x")
    axes.set_xlim(edges[0], edges[-1])
    axes.set_yscale("function", functions=(_root, np.square))
    axes.set_ylim(0, highest * 1.08)
    axes.set_yticks(_ticks(highest))
    axes.set_xlabel("binary cross-entropy of the given label")
    axes.set_ylabel("labels a bin")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def boundary(mixtures: Mixtures, column: int, side: int, edges: Numbers) -> float | None:
    """Find the loss at which P(clean) falls below a half, if it does within `edges`."""
    only = [column]
    single = Mixtures(
        mixtures.share[:, only],
        mixtures.mean[:, only],
        mixtures.variance[:, only],
        mixtures.guard[:, only],
    )
    grid = torch.logspace(math.log10(edges[0]), math.log10(edges[-1]), 2000, dtype=torch.float64)
    clean = single.posterior(torch.full((len(grid), 1), side), grid[:, None])[:, 0]
    noisy = (clean < 0.5).nonzero().flatten()
    return float(grid[noisy[0]]) if len(noisy) and int(noisy[0]) > 0 else None


def _edges(values: Numbers) -> Numbers:
    """Make bins of equal width in log loss; losses below a millionth go into the first."""
    low = max(float(values.min(initial=1.0)), 1e-6)
    high = max(float(values.max(initial=0.0)) * 1.02, low * 10)
    # Two powers of ten at least, or the axis has too few marks to be read.
    return np.geomspace(min(low, high / 100), high, _BINS + 1)


def _expected(
    mixtures: Mixtures, column: int, side: int, component: int, edges: Numbers, labels: int
) -> Numbers:
    """Count the labels that a Gaussian expects in each bin."""
    share, mean, variance = (
        float(part[side, column, component])
        for part in (mixtures.share, mixtures.mean, mixtures.variance)
    )
    scaled = (edges - mean) / math.sqrt(2 * variance)
    below = np.array([0.5 * (1 + math.erf(place)) for place in scaled])
    return labels * share * np.diff(below)


def _root(values: Numbers) -> Numbers:
    return np.sqrt(np.maximum(values, 0))


def _ticks(highest: float) -> list[int]:
    """Choose counts that are well apart on a square-root axis."""
    every = [scale * digit for scale in (1, 10, 100, 1000, 10_000, 100_000) for digit in (1, 2, 5)]
    ticks = [0]
    for count in (count for count in every if count <= highest * 1.05):
        if math.sqrt(count) - math.sqrt(ticks[-1]) >= 0.11 * math.sqrt(highest):
            ticks.append(count)
    return ticks
