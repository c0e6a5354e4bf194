"""Write a table as Markdown, CSV and LaTeX, or lay it out for a terminal."""

import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import rich.table
from rich.text import Text

from balancemix.bench.scores import GROUPS
from balancemix.bench.table import Mark, Table
from balancemix.errors import InputError, listing, printable
from balancemix.files import write_csv, write_text
from balancemix.manifest import Outputs

SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "–": "--", "±": r"$\pm$", "ε": r"$\epsilon$", "α": r"$\alpha$", "ρ": r"$\rho$", "−": "$-$",
    "<": "$<$", ">": "$>$", "×": r"$\times$",
}  # fmt: skip
MARKDOWN: dict[Mark, str] = {"": "{}", "best": "**{}**", "second": "<u>{}</u>"}
LATEX: dict[Mark, str] = {"": "{}", "best": r"\textbf{{{}}}", "second": r"\underline{{{}}}"}
SCREEN: dict[Mark, str] = {"": "", "best": "bold", "second": "underline"}


def write_tables(folder: Path, tables: Sequence[Table]) -> None:
    """Write each table in every form, but over no file that a person edited or put there."""
    check_tables(folder, tables)
    outputs = Outputs(folder)
    with tempfile.TemporaryDirectory() as name:
        for path in (path for table in tables for path in _write(Path(name), table)):
            # A bench that is killed here finds all of its tables known.
            outputs.write(path.name, partial(shutil.copyfile, path))


def check_tables(folder: Path, tables: Iterable[Table] = ()) -> None:
    """Refuse to write the tables again if a person edited one, or if a bench did not write one.

    A table without a checksum, which an older version may have left, is the bench's own if it holds
    what would be written now, byte for byte.
    """
    outputs = Outputs(folder)
    if edited := outputs.edited():
        raise InputError(
            f"{folder}: edited since the bench wrote them: {listing(edited, 3)}; move them away "
            "and repeat the command"
        )
    with tempfile.TemporaryDirectory() as name:
        made = [path for table in tables for path in _write(Path(name), table)]
        known = outputs.names
        there = [path for path in made if path.name not in known and (folder / path.name).exists()]
        foreign = [p.name for p in there if (folder / p.name).read_bytes() != p.read_bytes()]
    if foreign:
        raise InputError(
            f"{folder}: not known to be written by this bench: {listing(foreign, 3)}; move them "
            "away and repeat the command"
        )


def _write(folder: Path, table: Table) -> list[Path]:
    """Write a table in every form, and return the files."""
    paths = [folder / f"{table.name}.{form}" for form in ("md", "tex", "csv")]
    write_text(paths[0], markdown(table))
    write_text(paths[1], latex(table))
    header, *rows = csv_rows(table)
    write_csv(paths[2], header, rows)
    return paths


def markdown(table: Table) -> str:
    """Write Markdown: the best **bold**, the second <u>underlined</u>."""
    header = [*table.name_headings, *table.headings]
    lines = [header, ["---"] * len(header)]
    for names, cells, _ in table.lines():
        lines.append([*names, *(MARKDOWN[mark].format(cell.text) for cell, mark in cells)])
    body = "".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines
    )
    return f"{table.title}\n\n{body}"


def csv_rows(table: Table) -> list[list[str]]:
    """Write rows for a CSV file: each number with its standard error and its count of seeds."""
    headings = [
        f"{heading}{part}" for heading in table.headings for part in ("", " error", " seeds")
    ]
    rows = [[*table.row_headings, *headings]]
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
    names = table.name_headings
    shape = "l" * len(names) + "|" + "|".join("c" * count for _, count in table.groups)
    lines = [r"\begin{table*}[t]", r"\centering", rf"\begin{{tabular}}{{{shape}}}", r"\toprule"]
    if any(group for group, _ in table.groups):
        over = [rf"\multicolumn{{{count}}}{{c}}{{{escape(name)}}}" for name, count in table.groups]
        lines.append(" & ".join([*[""] * len(names), *over]) + r" \\")
    headings = [*names, *(heading for _, heading in table.columns)]
    lines += [" & ".join(map(escape, headings)) + r" \\", r"\midrule"]
    for i, line in enumerate(table.lines()):
        if i and line.first:
            lines.append(r"\midrule")
        cells = [LATEX[mark].format(escape(cell.text)) for cell, mark in line.cells]
        lines.append(" & ".join([*map(escape, line.names), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{escape(table.title)}}}"]
    return "\n".join([*lines, rf"\label{{table:{table.name}}}", r"\end{table*}", ""])


def terminal(table: Table, width: int) -> rich.table.Table:
    """Lay a table out for a terminal: categories ruled off, and bare numbers if it is narrow."""
    if len(table.columns) * 7 + 20 > width:  # "54.3" and its frame; the file has all groups
        table = table.without(list(GROUPS)[1:])
    # Rules separate the categories; their names need not be printed.
    headings = [name for name in table.name_headings if name != "Category"]
    lines = [line._replace(names=line.names[-len(headings) :]) for line in table.lines()]
    texts = [[*line.names, *(cell.text for cell, _ in line.cells)] for line in lines]
    wide = sum(max(map(len, column)) + 3 for column in zip(*texts, strict=True)) < width
    title = Text(printable(table.title), "table.title")
    screen = rich.table.Table(title=title, title_justify="left", header_style="bold")
    for name in headings:
        screen.add_column(Text(printable(name)), no_wrap=True)
    for name in table.headings:
        screen.add_column(Text(printable(name)), justify="right")
    for i, (names, cells, _) in enumerate(lines):
        numbers = [(cell.text if wide else cell.number, mark) for cell, mark in cells]
        marked = [Text(printable(number), SCREEN[mark]) for number, mark in numbers]
        ends = i + 1 < len(lines) and lines[i + 1].first
        screen.add_row(*(Text(printable(name)) for name in names), *marked, end_section=ends)
    return screen


def escape(words: str) -> str:
    """Make text safe for LaTeX."""
    return re.sub(".", lambda match: SPECIAL.get(match[0], match[0]), words)


def _exact(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"
