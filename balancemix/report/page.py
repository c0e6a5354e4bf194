"""What all pages share: one style in light and dark, tables, figures, the few lines of script."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from balancemix.labels.classes import NAMES
from balancemix.report.figures.style import DARK, FAINT, GRID, INK, PAPER, inline, variable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCORES = ("last mAP", "best", *NAMES)

_STYLE = f"""
:root {{ color-scheme: light dark; --soft: #f2f4f7;
  {"".join(f"{variable(c)}: {c}; " for c in DARK)}
  --ink: var({variable(INK)}); --faint: var({variable(FAINT)}); --line: var({variable(GRID)}); }}
@media (prefers-color-scheme: dark) {{ :root {{ --soft: #1e242b;
  {"".join(f"{variable(c)}: {dark}; " for c, dark in DARK.items())} }} }}
* {{ box-sizing: border-box; }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var({variable(PAPER)}); margin: 0 auto; max-width: 62rem;
  padding: 1.5rem 1rem 4rem; overflow-wrap: break-word; }}
h1 {{ font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }}
h2 {{ font-size: 1.2rem; margin: 2.4rem 0 .6rem; }}
h3 {{ font-size: 1rem; margin: 1.4rem 0 .4rem; }}
p, figcaption {{ max-width: 46rem; }} .lead, figcaption {{ color: var(--faint); margin-top: 0; }}
figcaption {{ font-size: .9rem; }} figure {{ margin: .8rem 0 1.4rem; }}
svg {{ display: block; width: 100%; max-width: 40rem; height: auto; stroke-linejoin: round; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .35rem .8rem .35rem 0; text-align: right;
  border-bottom: 1px solid var(--line); }}
th {{ color: var(--faint); font-weight: 600; vertical-align: bottom; }}
.text, th:first-child, td:first-child {{ text-align: left; }}
td:first-child {{ min-width: 7.5rem; }} td:not(.text), th {{ white-space: nowrap; }}
.best {{ font-weight: 700; }} .second {{ text-decoration: underline; }}
.wide {{ overflow-x: auto; }} .tall {{ max-height: 34rem; overflow: auto; }}
.tall thead {{ position: sticky; top: 0; z-index: 1; background: var({variable(PAPER)}); }}
.paper th, .paper td {{ padding-left: .8rem; }} .paper small {{ color: var(--faint); }}
.paper colgroup ~ colgroup ~ colgroup {{ border-left: 1px solid var(--line); }}
.paper [colspan] {{ text-align: center; }} .paper thead th {{ white-space: normal; }}
.paper tr > :first-child {{ padding-left: 0; text-align: left; position: sticky; left: 0;
  background: var({variable(PAPER)}); }}
.paper [scope=row] {{ color: var(--ink); font-weight: 400; min-width: 7.5rem;
  box-shadow: inset -1px 0 var(--line); }}
.paper [scope=rowgroup] {{ padding-top: .9rem; }}
.paper [scope=rowgroup] span {{ position: sticky; left: 0; }}
th button {{ all: unset; cursor: pointer; }} th button:focus-visible {{ outline: 2px solid; }}
[aria-sort=ascending] button::after {{ content: " ▲"; }}
[aria-sort=descending] button::after {{ content: " ▼"; }}
summary {{ cursor: pointer; color: var(--faint); }} details {{ margin: .5rem 0; }}
.choose {{ display: none; gap: 1rem; flex-wrap: wrap; }} .js .choose {{ display: flex; }}
select {{ font: inherit; max-width: 100%; }} .js .choice:not(.shown) {{ display: none; }}
.rows {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(13.5rem, 1fr));
  gap: 1rem; }}
.row {{ border: 1px solid var(--line); border-radius: .5rem; padding: .7rem; }}
.row img {{ width: 100%; image-rendering: pixelated; border-radius: .25rem; background: #000;
  display: block; margin-bottom: .5rem; }}
.tag {{ display: inline-block; padding: 0 .5rem; margin: 0 .2rem .2rem 0; border-radius: 1rem;
  background: var(--soft); }}
.wrong {{ background: #fde2df; color: #a1260d; text-decoration: line-through; }}
.missing {{ background: #d9f2e3; color: #116329; }} .missing::before {{ content: "+ "; }}
.verdict {{ font-size: .85rem; color: var(--faint); }}
code {{ background: var(--soft); padding: .1rem .3rem; border-radius: .25rem;
  overflow-wrap: anywhere; }}
"""

# Sorting by a click on a head, and one of many figures at a time; without it all is shown.
_SCRIPT = """
document.documentElement.classList.add("js");
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, k) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.onclick = () => {
      const up = head.getAttribute("aria-sort") === "descending" ||
        (!head.hasAttribute("aria-sort") && head.classList.contains("text"));
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = row => row.cells[k].dataset.value ?? row.cells[k].textContent;
      const order = (a, b) => a === "" ? 1 : b === "" ? -1 :
        (up ? 1 : -1) * a.localeCompare(b, "en", { numeric: true });
      const number = (a, b) => isNaN(a) || isNaN(b) || a === "" || b === "" ? order(a, b) :
        (up ? 1 : -1) * (a - b);
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort((a, b) => number(key(a), key(b))));
    };
  });
}
for (const chooser of document.querySelectorAll(".choose")) {
  const selects = [...chooser.querySelectorAll("select")];
  const figures = chooser.parentElement.querySelectorAll(".choice");
  const show = () => figures.forEach(figure => figure.classList.toggle(
    "shown", selects.every(select => figure.dataset[select.name] === select.value)));
  selects.forEach(select => { select.onchange = show; });
  show();
}
"""


def document(title: str, lead: str, body: str) -> str:
    """Put a page together; `lead` and `body` are HTML."""
    script = f"<script>{_SCRIPT}</script>" if "sortable" in body or "choose" in body else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>
<h1>{html.escape(title)}</h1>
<p class="lead">{lead}</p>
{body}
{script}</body></html>
"""


def section(title: str, *parts: str) -> str:
    """Write a section, or nothing where it would be empty."""
    inside = "\n".join(part for part in parts if part)
    return f"<section><h2>{html.escape(title)}</h2>\n{inside}\n</section>\n" if inside else ""


def paragraph(text: str) -> str:
    """Write a paragraph of plain text."""
    return f"<p>{html.escape(text)}</p>"


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    text: Sequence[int] = (0,),
    best: Sequence[int] = (),
    sortable: bool = False,
    digits: int = 1,
) -> str:
    """Lay out rows; columns of `text` stand to the left, rows of `best` in bold.

    Floats are shown with `digits` and sorted by all they have; None and NaN are a dash.
    """
    left = [' class="text"' if k in text else "" for k in range(len(header))]
    heads = "".join(
        f"<th{mark}>{html.escape(name)}</th>" for mark, name in zip(left, header, strict=True)
    )
    lines = []
    for i, row in enumerate(rows):
        cells = "".join(
            f"<td{mark}{_value(cell)}>{_cell(cell, digits)}</td>"
            for mark, cell in zip(left, row, strict=True)
        )
        lines.append(f"<tr>{cells}</tr>" if i not in best else f'<tr class="best">{cells}</tr>')
    kind = ' class="sortable"' if sortable else ""
    tall = " tall" if len(lines) > 24 else ""
    body = "\n".join(lines)
    return (
        f'<div class="wide{tall}"><table{kind}><thead><tr>{heads}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def picture(figure: Figure, name: str, caption: str, marks: str = "") -> str:
    """Put a figure into the page, in the page's own colours and font."""
    drawn = inline(figure, name, caption)
    return f"<figure{marks}>{drawn}\n<figcaption>{html.escape(caption)}</figcaption></figure>"


def listed(calls: Iterable[str]) -> str:
    """List what to type."""
    return "<ul>" + "".join(f"<li><code>{html.escape(c)}</code></li>" for c in calls) + "</ul>"


def scores(metrics: Mapping[str, Any]) -> list[float | None]:
    """Take last and best mAP and the groups' last mAP, as below SCORES."""
    last = metrics["last"]
    return [last["mAP"], metrics["best"]["mAP"], *(last.get(f"mAP_{name}") for name in NAMES)]


def _empty(cell: object) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _value(cell: object) -> str:
    if _empty(cell):
        return ' data-value=""'
    return f' data-value="{cell:.6g}"' if isinstance(cell, float | int) else ""


def _cell(cell: object, digits: int) -> str:
    if _empty(cell):
        return "–"
    if isinstance(cell, float):
        return f"{cell:.{digits}f}"
    return f"{cell:,}" if isinstance(cell, int) else html.escape(str(cell))
