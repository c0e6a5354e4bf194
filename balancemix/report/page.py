"""A page: sections of text, tables and figures, put into one HTML file by the templates here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from balancemix.labels.classes import NAMES
from balancemix.report.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from balancemix.bench.table import Table

SCORES = ("last mAP", "best", *NAMES)
COLOURS = {"ink": style.INK, "faint": style.FAINT, "line": style.GRID, "paper": style.PAPER}


@dataclass(frozen=True)
class Grid:
    """Rows of cells. Columns of `text` are aligned left, rows of `best` are bold.

    Floats are shown with `digits` and sorted by all they have; None and NaN are a dash.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    text: Sequence[int] = (0,)
    best: Sequence[int] = ()
    sortable: bool = False
    digits: int = 1
    title: str = ""
    template: ClassVar = "grid.html"


@dataclass(frozen=True)
class BenchTable:
    """A table of a bench: open below its title if it is `visible`, folded otherwise."""

    table: Table
    template: ClassVar = "bench_table.html"


@dataclass(frozen=True)
class Drawing:
    """A figure, the name of the file it may be stored in, and what `Choice` selects it by."""

    name: str
    figure: Figure
    caption: str
    chosen_by: Mapping[str, int] = field(default_factory=dict)
    template: ClassVar = "drawing.html"

    @property
    def svg(self) -> Markup:
        """The figure in the page's own colours and font."""
        return Markup(style.inline(self.figure, self.name, self.caption))


@dataclass(frozen=True)
class Select:
    """A list to choose one value from."""

    name: str
    label: str
    options: Mapping[int, str]


@dataclass(frozen=True)
class Choice:
    """Drawings of which one is visible at a time, by a value of each list."""

    selects: Sequence[Select]
    drawings: Sequence[Drawing]
    template: ClassVar = "choice.html"


@dataclass(frozen=True)
class Commands:
    """What to type."""

    lines: Sequence[str]
    template: ClassVar = "commands.html"


@dataclass(frozen=True)
class Code:
    """Text whose line breaks and spaces stay as they are."""

    text: str
    template: ClassVar = "code.html"


@dataclass(frozen=True)
class Folded:
    """Parts that unfold by a click on their title."""

    title: str
    parts: Sequence[Grid | Code]
    template: ClassVar = "folded.html"


@dataclass(frozen=True)
class Card:
    """A row of the data: its picture as a data URI, its labels with what is wrong with each."""

    name: str
    picture: str
    labels: Sequence[tuple[str, str]]
    truth: str


@dataclass(frozen=True)
class Gallery:
    """Rows of the data as pictures."""

    cards: Sequence[Card]
    template: ClassVar = "gallery.html"


Part = str | Grid | BenchTable | Drawing | Choice | Commands | Code | Folded | Gallery


class Section:
    """A title and the parts below it; a string is a paragraph."""

    def __init__(self, title: str, *parts: Part) -> None:
        self.title, self.parts = title, parts


@dataclass(frozen=True)
class Page:
    """A title, a lead, and sections; a section without parts is left out."""

    title: str
    lead: str
    sections: Sequence[Section]

    def render(self) -> str:
        """Write the page as HTML that needs no other file."""
        template = _environment().get_template("page.html")
        return template.render(page=self, colours=COLOURS, dark=style.DARK)

    @property
    def drawings(self) -> Iterator[Drawing]:
        """The figures of the page, in its order."""
        for part in (part for section in self.sections for part in section.parts):
            if isinstance(part, Drawing):
                yield part
            elif isinstance(part, Choice):
                yield from part.drawings

    def save_figures(self, folder: Path) -> None:
        """Write each figure as SVG and PNG."""
        for drawing in self.drawings:
            style.save(drawing.figure, folder / drawing.name)


def scores(metrics: Mapping[str, Any]) -> list[float | None]:
    """Return last and best mAP and the groups' last mAP, in the order of SCORES."""
    last = metrics["last"]
    return [last["mAP"], metrics["best"]["mAP"], *(last.get(f"mAP_{name}") for name in NAMES)]


@cache
def _environment() -> Environment:
    folder = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(
        loader=folder,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"written": _written, "exact": _exact, "variable": style.variable}
    return environment


def _empty(cell: object) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _exact(cell: object) -> str | None:
    """Write what a cell is sorted by, where that is not its text."""
    if _empty(cell):
        return ""
    return f"{cell:.6g}" if isinstance(cell, float | int) else None


def _written(cell: object, digits: int) -> str:
    if _empty(cell):
        return "–"
    if isinstance(cell, float):
        return f"{cell:.{digits}f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
