"""A page: a template, its figures and its other facts, rendered into one HTML file."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from balancemix.errors import counted
from balancemix.manifest import Outputs
from balancemix.report.cards import LOOKS, SIGNS
from balancemix.report.figures import style

COLOURS = {"ink": style.INK, "faint": style.FAINT, "line": style.GRID, "paper": style.PAPER}


@dataclass(frozen=True)
class Drawing:
    """A figure, its name as a file and on its page, and the caption below it."""

    name: str
    figure: Figure
    caption: str

    @property
    def svg(self) -> Markup:
        """The figure in the page's colours and font."""
        return Markup(style.inline(self.figure, self.name, self.caption))


@dataclass(frozen=True)
class Page:
    """What the template `kind`.html shows: a title, figures in order, and other facts."""

    kind: str
    title: str
    drawings: Sequence[Drawing]
    facts: Mapping[str, Any]

    def render(self) -> str:
        """Write the page as HTML that needs no other file."""
        template = environment().get_template(f"{self.kind}.html")
        drawings = {drawing.name: drawing for drawing in self.drawings}
        return template.render(self.facts, title=self.title, drawings=drawings)

    def save_figures(self, folder: Path, *, force: bool = False) -> None:
        """Write each figure as SVG and PNG; those that a person changed only with `force`."""
        outputs = Outputs(folder)
        for drawing in self.drawings:
            for kind in style.KINDS:
                outputs.check_output(folder / f"{drawing.name}.{kind}", force=force)
        for drawing in self.drawings:
            for path in style.save(drawing.figure, folder / drawing.name):
                outputs.remember(path)


@cache
def environment() -> Environment:
    """Set up Jinja: all text is escaped, and a name without a value is an error."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "counted": counted,
        "written": _written,
        "percent": _percent,
        "exact": _exact,
        "variable": style.variable,
    }
    made.globals |= {"colours": COLOURS, "dark": style.DARK, "signs": SIGNS, "looks": LOOKS}
    return made


def _empty(cell: object) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _exact(cell: object) -> str | None:
    """Write what a cell is sorted by, if that is not its text."""
    if _empty(cell):
        return ""
    return f"{cell:.6g}" if isinstance(cell, float | int) else None


def _written(cell: object, digits: int) -> str:
    if _empty(cell):
        return "–"
    if isinstance(cell, float):
        return f"{cell:.{digits}f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _percent(share: float) -> str:
    return "–" if _empty(share) else f"{share:.1%}"
