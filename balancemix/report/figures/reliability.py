"""How often a label is an error, beside the probability that was given to it."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from balancemix.report.figures import style

Numbers = npt.NDArray[np.float64]
_HUES = {"wrong": style.RED, "missing": style.BLUE}


@style.styled
def reliability(panels: Mapping[str, Mapping[str, tuple[Numbers, Numbers]]]) -> Figure:
    """Draw a panel for each set of labels, in it a curve for each side.

    A curve is the mean probability of some bins of labels, and the share of errors in each. On
    the diagonal the probabilities are right.
    """
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure, every = style.figure(1.9 * rows + 0.4, rows, columns, sharex=True, sharey=True)
    for axes, (name, curves) in zip(every, panels.items(), strict=False):
        axes.plot([0, 1], [0, 1], color=style.THIN, lw=0.8, zorder=1)
        for side, (probability, share) in curves.items():
            colour = _HUES.get(side, style.GREY)
            axes.plot(probability, share, "o-", color=colour, ms=3, lw=1.2, label=side)
        axes.set_title(name)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
    for axes in every[len(panels) :]:
        axes.set_axis_off()
    for axes in every[:: max(columns, 1)]:
        axes.set_ylabel("share of errors")
    for axes in every[-columns:]:
        axes.set_xlabel("probability")
    handles = {
        label: handle
        for axes in every
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside upper right", ncols=len(handles))
    return figure
