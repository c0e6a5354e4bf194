"""How every figure looks, and how it is stored: the same bytes for the same numbers."""

import functools
import io
import math
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from html import escape
from itertools import cycle
from pathlib import Path
from typing import Any, Literal, ParamSpec

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.style import context
from matplotlib.ticker import FuncFormatter, NullFormatter

from balancemix.files import write_whole

P = ParamSpec("P")
Line = tuple[str, str]  # colour and dash

# Inches. Narrow enough for a telephone, where a point is then about a pixel.
WIDTH = 5.4

INK, FAINT, GRID, PAPER = "#1b1f24", "#57606a", "#d8dee4", "#ffffff"
THIN = "#b3bac2"  # of lines that serve for comparison only
BLUE, RED, GREEN, PINK = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
ORANGE, SKY, GREY = "#e69f00", "#56b4e9", "#7f858c"
HUES = (GREEN, PINK, ORANGE, SKY)  # Okabe and Ito's, which colour-blind people can distinguish
METHODS = {"balancemix": BLUE, "bce": RED, "mixup": GREY, "all": INK}
GROUPS = {"many": BLUE, "medium": GREEN, "few": RED}
RIGHT, WRONG = BLUE, RED

# Replacements in dark mode for colours that are too dark there.
DARK = {
    INK: "#e6edf3",
    FAINT: "#9aa4af",
    GRID: "#343b44",
    THIN: "#59626c",
    PAPER: "#12161b",
    BLUE: "#4aa8e0",
    RED: "#f0813a",
    GREEN: "#2bbf94",
}

_SETTINGS: dict[str, Any] = {
    "font.size": 9.5,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "text.color": INK,
    "text.parse_math": False,  # a class may be named "$_$"
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "svg.fonttype": "none",  # text stays text: it can be searched and read aloud
}


def style(**more: object) -> AbstractContextManager[None]:
    """Draw with our settings only, whatever the user's matplotlibrc says."""
    return context(["default", {**_SETTINGS, **more}])


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Make a function draw in our style."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with style():
            return draw(*args, **kwargs)

    return drawn


def figure(
    height: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Start a figure of the common width, with its axes in reading order."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def plain_log(axes: Axes, axis: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, its marks in digits where these are few."""
    getattr(axes, f"set_{axis}scale")("log")
    scale = axes.xaxis if axis == "x" else axes.yaxis
    scale.set_major_formatter(FuncFormatter(lambda value, _: power(value)))
    scale.set_minor_formatter(NullFormatter())


def write_above(axes: Axes, text: str, x: float, **options: Any) -> None:
    """Write a text above the axes, centred at x."""
    place = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points"}
    axes.annotate(text, (x, 1.0), ha="center", **{"xytext": (0, 4), **place, **options})


def power(value: float) -> str:
    """Write a power of ten.

    >>> power(1000.0), power(0.01), power(1e-5), power(1e10)
    ('1,000', '0.01', '10⁻⁵', '10¹⁰')
    """
    if 1e-3 <= value < 1e6:
        return f"{value:,.0f}" if value >= 1 else f"{value:g}"
    exponent = str(round(math.log10(value)))
    return "10" + exponent.translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def colours(names: Sequence[str]) -> dict[str, Line]:
    """Give each name a colour and a dash: known names a fixed one, others the next free one.

    >>> colours(["bce", "asl"])
    {'bce': ('#d55e00', '-'), 'asl': ('#009e73', '-')}
    """
    fixed = {**METHODS, **GROUPS}
    others = cycle([(hue, line) for line in ("-", "--", ":", "-.") for hue in HUES])
    return {name: (fixed[name], "-") if name in fixed else next(others) for name in names}


def spread_labels(places: Sequence[float], gap: float) -> list[float]:
    """Move places as little as possible so that neighbours are at least `gap` apart.

    >>> spread_labels([1.0, 5.0, 1.0], 2.0)
    [0.0, 5.0, 2.0]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    pools: list[tuple[float, int]] = []  # mean and size, once the gaps are taken off
    for step, i in enumerate(order):
        mean, size = places[i] - step * gap, 1
        while pools and pools[-1][0] > mean:
            before, count = pools.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        pools.append((mean, size))
    moved = [mean for mean, size in pools for _ in range(size)]
    mean_of = dict(zip(order, moved, strict=True))
    step_of = {i: step for step, i in enumerate(order)}
    return [mean_of[i] + step_of[i] * gap for i in range(len(places))]


# The kinds of files, and what is left out of each so that the same figure has the same bytes.
KINDS: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


def save(figure: Figure, path: Path) -> list[Path]:
    """Write `path`.svg and `path`.png, whole or not at all; return both paths."""
    written = [path.with_name(f"{path.name}.{kind}") for kind in KINDS]
    for file in written:
        save_as(figure, file)
    return written


def save_as(figure: Figure, file: Path) -> None:
    """Write one file, an SVG or a PNG by its ending, whole or not at all."""
    kind = file.suffix[1:].lower()
    write = functools.partial(figure.savefig, format=kind, dpi=200, metadata=KINDS[kind])
    with style(**{"svg.hashsalt": file.stem}):
        write_whole(file, write)


def inline(figure: Figure, name: str, caption: str) -> str:
    """Return the figure as SVG to embed in a page, in the page's font and colours.

    `name` keeps the ids of a page's figures distinct; `caption` is what a screen reader says.
    """
    drawn = io.StringIO()
    with style(**{"svg.hashsalt": name}):
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None})
    text = drawn.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r"\s*<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
    text = re.sub(r' transform="rotate\(-0 [^"]*"', "", text)
    text = re.sub(r"<[^>]*>", _shortened, text)
    for colour in DARK:
        text = text.replace(colour, f"var({variable(colour)}, {colour})")
    text = re.sub(r"\s*\n\s*", "\n", text)
    head = re.sub(r' (width|height|version|xmlns(:xlink)?)="[^"]*"', "", text[: text.index(">")])
    label = f' role="img" aria-label="{escape(caption)}"'
    return head + label + text[text.index(">") :].rstrip()


def _shortened(tag: re.Match[str]) -> str:
    """Round the numbers in a tag to a hundredth of a point; text between tags is not changed."""
    return re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0])


def variable(colour: str) -> str:
    """Name the CSS variable by which a page replaces a colour."""
    return f"--c{colour[1:]}"
