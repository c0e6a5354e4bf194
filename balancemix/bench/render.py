"""Write a table as Markdown, CSV and LaTeX, or as plain text for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from balancemix.bench.table import Cell, Mark, Table
from balancemix.files import write_csv, write_text

SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "–": "--", "±": r"$\pm$", "ε": r"$\epsilon$", "α": r"$\alpha$", "ρ": r"$\rho$", "−": "$-$",
    "<": "$<$", ">": "$>$", "×": r"$\times$",
}  # fmt: skip


def write_tables(folder: Path, tables: Iterable[Table]) -> None:
    """Write each table in every form."""
    for table in tables:
        write_text(folder / f"{table.name}.md", markdown(table))
        write_text(folder / f"{table.name}.tex", latex(table))
        header, *rows = csv_rows(table)
        write_csv(folder / f"{table.name}.csv", header, rows)


def plain(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows as text, without marks."""
    header = [*_corner(table), *_headings(table)]
    return header, [
        [*_names(table, i), *(text(cell) for cell in row.cells)] for i, row in enumerate(table.rows)
    ]


def markdown(table: Table) -> str:
    """Write Markdown: the best **bold**, the second <u>underlined</u>."""
    header, rows = plain(table)
    lines = [header, ["---"] * len(header)]
    names = len(_corner(table))
    form: dict[Mark, str] = {"": "{}", "best": "**{}**", "second": "<u>{}</u>"}
    for row, marks in zip(rows, table.marks(), strict=True):
        cells = [form[mark].format(cell) for mark, cell in zip(marks, row[names:], strict=True)]
        lines.append([*row[:names], *cells])
    body = "".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines
    )
    return f"{table.title}\n\n{body}"


def csv_rows(table: Table) -> list[list[str]]:
    """Write rows for a CSV file: each number with its standard error and its count of seeds."""
    headings = [
        f"{heading}{what}" for heading in _headings(table) for what in ("", " error", " seeds")
    ]
    rows = [[*table.corner, *headings]]
    for row in table.rows:
        cells = [
            part
            for cell in row.cells
            for part in (_exact(cell.mean), _exact(cell.error), str(len(cell.values)))
        ]
        rows.append([row.category, row.label, *cells])
    return rows


def latex(table: Table) -> str:
    """Write LaTeX for booktabs, the groups of columns under one heading, the categories ruled off.

    >>> escape("40 % & more")
    '40 \\\\% \\\\& more'
    """
    corner = _corner(table)
    shape = "l" * len(corner) + "|" + "|".join("c" * count for _, count in table.groups)
    lines = [r"\begin{table*}[t]", r"\centering", rf"\begin{{tabular}}{{{shape}}}", r"\toprule"]
    if any(name for name, _ in table.groups):
        over = [rf"\multicolumn{{{count}}}{{c}}{{{escape(name)}}}" for name, count in table.groups]
        lines.append(" & ".join([*[""] * len(corner), *over]) + r" \\")
    heads = [*corner, *(heading for _, heading in table.columns)]
    lines += [" & ".join(map(escape, heads)) + r" \\", r"\midrule"]
    form: dict[Mark, str] = {"": "{}", "best": r"\textbf{{{}}}", "second": r"\underline{{{}}}"}
    for i, (row, marks) in enumerate(zip(table.rows, table.marks(), strict=True)):
        if i and row.category != table.rows[i - 1].category:
            lines.append(r"\midrule")
        cells = [
            form[mark].format(escape(text(cell)))
            for mark, cell in zip(marks, row.cells, strict=True)
        ]
        lines.append(" & ".join([*map(escape, _names(table, i)), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{escape(table.title)}}}"]
    return "\n".join([*lines, rf"\label{{table:{table.name}}}", r"\end{table*}", ""])


def escape(words: str) -> str:
    """Make text safe for LaTeX."""
    return re.sub(".", lambda found: SPECIAL.get(found[0], found[0]), words)


def text(cell: Cell) -> str:
    """Write a cell: mean ± standard error, and its note.

    >>> text(Cell((80.0, 82.0), "(+1.0)")), text(Cell())
    ('81.0 ± 1.0 (+1.0)', '–')
    """
    number = f"{cell.number} ± {cell.spread}" if cell.spread else cell.number
    return f"{number} {cell.note}" if cell.note else number


def _headings(table: Table) -> list[str]:
    """Head each column by its group and itself; a group that they all have is not repeated."""
    if len({group for group, _ in table.columns}) == 1:
        return [heading for _, heading in table.columns]
    return [f"{group} {heading}".strip() for group, heading in table.columns]


def _corner(table: Table) -> Sequence[str]:
    """Leave out the categories where there are none."""
    return table.corner if table.categorised else table.corner[1:]


def _names(table: Table, i: int) -> list[str]:
    """Name a row, its category only where a new one begins."""
    row = table.rows[i]
    if len(_corner(table)) == 1:
        return [row.label]
    again = i > 0 and table.rows[i - 1].category == row.category
    return ["" if again else row.category, row.label]


def _exact(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"
