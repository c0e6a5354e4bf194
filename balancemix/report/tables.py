"""The paper's tables in a page: what is shown stands open, the others unfold by their titles."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from itertools import groupby

from balancemix.bench.table import Cell, Mark, Row, Table
from balancemix.report.page import paragraph

TALL = 24  # rows, beyond which a table scrolls by itself


def show(tables: Iterable[Table]) -> str:
    """Lay out tables below one another, those that are `shown` first."""
    said = (
        "Mean ± standard error over the seeds that have ended; the best of a column is bold, the "
        "second underlined, and a dash is what has not run."
    )
    order = sorted(tables, key=lambda table: not table.shown)
    return "\n".join([paragraph(said), *map(_titled, order)])


def lay_out(table: Table) -> str:
    """Write a table: groups of columns under one heading, each category below its name."""
    marked = list(zip(table.rows, table.marks(), strict=True))
    groups = groupby(marked, key=lambda line: line[0].category)
    bodies = "\n".join(_body(table, category, list(lines)) for category, lines in groups)
    tall = " tall" if len(table.rows) > TALL else ""
    spans = "".join(f'<colgroup span="{count}"></colgroup>' for _, count in table.groups)
    return (
        f'<div class="wide{tall}"><table class="paper"><colgroup></colgroup>{spans}\n'
        f"<thead>{_head(table)}</thead>\n{bodies}</table></div>"
    )


def _titled(table: Table) -> str:
    title = html.escape(table.title)
    if table.shown:
        return f"<h3>{title}</h3>{lay_out(table)}"
    return f"<details><summary>{title}</summary>{lay_out(table)}</details>"


def _head(table: Table) -> str:
    """Head the columns; a group that they all have is in the title."""
    corner = html.escape(table.corner[1])
    heads = "".join(f"<th>{_heading(heading)}</th>" for _, heading in table.columns)
    if len(table.groups) == 1:
        return f"<tr><th>{corner}</th>{heads}</tr>"
    over = "".join(
        f'<th scope="colgroup" colspan="{count}">{html.escape(name)}</th>'
        for name, count in table.groups
    )
    return f"<tr><th></th>{over}</tr>\n<tr><th>{corner}</th>{heads}</tr>"


def _heading(text: str) -> str:
    """Let a heading wrap, but not between a number and its sign."""
    return html.escape(text).replace(" %", "&nbsp;%")


def _body(table: Table, category: str, lines: Sequence[tuple[Row, Sequence[Mark]]]) -> str:
    """Write the rows of a category."""
    rows = []
    if table.categorised:
        width, name = 1 + len(table.columns), html.escape(category)
        rows.append(f'<tr><th scope="rowgroup" colspan="{width}"><span>{name}</span></th></tr>')
    for row, marks in lines:
        cells = "".join(map(_cell, row.cells, marks))
        rows.append(f'<tr><th scope="row">{html.escape(row.label)}</th>{cells}</tr>')
    body = "\n".join(rows)
    return f"<tbody>{body}</tbody>"


def _cell(cell: Cell, mark: Mark) -> str:
    """Write a number with its error and note, as `text` of the other forms has them."""
    spread = f"± {cell.spread}" if cell.spread else ""
    more = "".join(f" <small>{html.escape(part)}</small>" for part in (spread, cell.note) if part)
    kind = f' class="{mark}"' if mark else ""
    return f"<td{kind}>{cell.number}{more}</td>"
