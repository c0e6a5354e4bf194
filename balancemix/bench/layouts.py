"""The layouts: the paper's tables by name, each made from results and leaving gaps where runs are.

paper      Tables 1 to 3: methods by category, groups of classes × rates of a noise; and one of all
ranking    the figure of five perspectives
beside     ours beside the paper's numbers
ablation   Table 4: components with their gain, and the mean over all noises
selection  Appendix G.3: quality of selecting and re-labelling over the training
search     Appendix E: a table for each category, a row for each value
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from balancemix.bench.paper import beside_tables, paper_numbers, paper_scores
from balancemix.bench.plan import BenchPlan, Layout, Variant, data_slug, slug
from balancemix.bench.rank_table import ranking_table
from balancemix.bench.scores import GROUPS, Results, When, heading, level, read_results
from balancemix.bench.table import Cell, Row, Table
from balancemix.labels import noise

BOTH: tuple[When, ...] = ("last", "best")
QUALITY = {  # heading: key in the log, and in the paper's numbers
    "Precision": ("clean_precision", "precision"),
    "Recall": ("clean_recall", "recall"),
    "Re-labelled": ("relabel_proportion", "proportion"),
    "Accuracy": ("relabel_accuracy", "accuracy"),
    "Flipped": ("flip_proportion", ""),
    "Flips right": ("flip_accuracy", ""),
}
PROGRESS = (25, 50, 100)  # percent of the epochs


def make_tables(plan: BenchPlan, runs: Path) -> list[Table]:
    """Make the tables that a plan asks for."""
    results = read_results(plan, runs)
    return [
        table.without_empty(list(GROUPS)[1:])
        for layout in dict.fromkeys(plan.tables)
        for table in LAYOUTS[layout](results)
    ]


def by_category(rows: list[Variant]) -> list[Variant]:
    """Bring the rows of a category together, categories in the order of their first row."""
    order = list(dict.fromkeys(row.category for row in rows))
    return sorted(rows, key=lambda row: order.index(row.category))


def paper(results: Results) -> list[Table]:
    """Make a table of all noises, and for each kind of noise one by rate and group."""
    plan, tables = results.plan, list[Table]()
    kinds = list(dict.fromkeys(noise.parse(text).kind for text in plan.noises))
    for data in plan.data:
        for when in BOTH:
            columns = [("All", text, heading(text)) for text in plan.noises]
            title = f"{when.capitalize()} mAP, all classes, {_of(data, plan)}"
            name = f"overview-{when}{_tail(data, plan)}"
            tables.append(_scores(results, plan.methods, data, when, columns, name, title, True))
        for kind in kinds:
            if kind == "none" and len(kinds) > 1:
                continue  # it is the first column of the others
            levels = [text for text in plan.noises if noise.parse(text).kind == kind]
            rated = noise.KINDS[kind] > 0
            levels = [text for text in plan.noises if rated and text == "none"] + levels
            for when in BOTH:
                columns = [(group, text, level(text)) for group in GROUPS for text in levels]
                title = f"{when.capitalize()} mAP, {kind}, {_of(data, plan)}"
                name = f"{kind}-{when}{_tail(data, plan)}"
                tables.append(_scores(results, plan.methods, data, when, columns, name, title))
    return tables


def ranking(results: Results) -> list[Table]:
    """Rank the methods, and the paper's own by the same rule."""
    plan = results.plan
    categories = {row.label: row.category for row in by_category(plan.methods)}
    tables = [ranking_table([results.means(data) for data in plan.data], plan.noises, categories)]
    if plan.paper:
        sets = [paper_scores(name) for name in ("coco", "voc")]  # as the paper's figure adds them
        noises = [plan.beside.get(text, text) for text in plan.noises]
        known = {label: category for label, category in categories.items() if label in sets[0]}
        title = "Ranks and area by the paper's own numbers, COCO and VOC together"
        tables.append(ranking_table(sets, noises, known, "ranking-paper", title))
    return tables


def beside(results: Results) -> list[Table]:
    """Put ours beside the paper's, for each data."""
    plan = results.plan
    if not plan.paper:
        return []
    theirs = paper_scores(plan.paper)
    noises = {text: plan.beside.get(text, text) for text in plan.noises}
    return [
        table
        for data in plan.data
        for table in beside_tables(results.means(data), theirs, noises, _tail(data, plan))
    ]


def ablation(results: Results) -> list[Table]:
    """Add one component after another: mAP and gain over the row above, or over another one."""
    plan, tables = results.plan, list[Table]()
    for data in plan.data:
        for when in BOTH:
            cells = {
                row.label: [
                    *(results.scores(row, text, data, when, "All") for text in plan.noises),
                    results.overall(row, plan.noises, data, when),
                ]
                for row in plan.methods
            }
            rows = []
            for i, row in enumerate(plan.methods):
                base = row.over or (plan.methods[i - 1].label if i else "")
                noted = tuple(map(_gain, cells[row.label], cells[base])) if base else None
                rows.append(Row(row.category, row.label, noted or tuple(cells[row.label])))
            columns = (*(("", heading(text)) for text in plan.noises), ("", "Overall"))
            title = f"{when.capitalize()} mAP by component (gain), {_of(data, plan)}"
            name, corner = f"ablation-{when}{_tail(data, plan)}", ("Category", "Component")
            shown = when == "last"
            tables.append(Table(name, title, columns, tuple(rows), corner, shown=shown))
    return tables


def selection(results: Results) -> list[Table]:
    """Say how good the label-wise management is at a quarter, half and the end of the training.

    The paper's columns of each noise are rows here: so many numbers abreast are hard to read.
    """
    plan, tables = results.plan, list[Table]()
    theirs = paper_numbers()["selection"].get(plan.paper, {})
    for data in plan.data:
        rows, doubting = list[Row](), [row for row in plan.methods if results.selects(row, data)]
        for text in plan.noises if doubting else ():
            if noise.parse(text).kind == "none":
                continue
            for row in doubting:
                for share in PROGRESS:
                    keys = (key for key, _ in QUALITY.values())
                    found = (results.selection(row, text, data, share / 100, key) for key in keys)
                    rows.append(Row(f"{heading(text)}, {row.label}", _share(share), tuple(found)))
            for share in PROGRESS if text in theirs else ():
                numbers = theirs[text][str(share)]
                known = (numbers.get(key) for _, key in QUALITY.values())
                cells = tuple(Cell(() if value is None else (value,)) for value in known)
                rows.append(Row(f"{heading(text)}, paper", _share(share), cells))
        if rows:
            name, corner = f"selection{_tail(data, plan)}", ("Noise, method", "Epochs")
            title = f"Selected and re-labelled labels, in %, {_of(data, plan)}"
            columns = tuple(("", what) for what in QUALITY)
            few = len(rows) <= 12
            tables.append(Table(name, title, columns, tuple(rows), corner, "none", few))
    return tables


def search(results: Results) -> list[Table]:
    """Make a table of each category: a row for each value that was tried."""
    plan, tables = results.plan, list[Table]()
    theirs = paper_scores(plan.paper) if plan.paper else {}
    for category in dict.fromkeys(row.category for row in plan.methods):
        rows = [row for row in plan.methods if row.category == category]
        noises = [text for text in plan.noises if any(text in plan.noises_of(row) for row in rows)]
        for data in plan.data:
            for when in BOTH:
                columns = [(group, text, level(text)) for group in GROUPS for text in noises]
                where = plan.settings.get("data", {}).get("score", "test")
                title = f"{when.capitalize()} mAP on {where} rows, {category}, {_of(data, plan)}"
                name = f"search-{slug(category)}-{when}{_tail(data, plan)}"
                table = _scores(results, rows, data, when, columns, name, title, when == "last")
                if when == "last":
                    table = _with_paper(table, theirs, noises)
                tables.append(table)
    return tables


LAYOUTS: dict[Layout, Callable[[Results], list[Table]]] = {
    "paper": paper,
    "ranking": ranking,
    "beside": beside,
    "ablation": ablation,
    "selection": selection,
    "search": search,
}


def _scores(
    results: Results,
    rows: list[Variant],
    data: str,
    when: When,
    columns: list[tuple[str, str, str]],
    name: str,
    title: str,
    shown: bool = False,
) -> Table:
    """Lay out scores; a column is a group of classes, a noise and a heading."""
    lines = tuple(
        Row(
            row.category,
            row.label,
            tuple(results.scores(row, text, data, when, group) for group, text, _ in columns),
        )
        for row in by_category(rows)
    )
    heads = tuple((group, head) for group, _, head in columns)
    return Table(name, title, heads, lines, shown=shown and when == "last")


def _with_paper(table: Table, theirs: dict[str, dict[tuple[str, str], float]],
                noises: list[str]) -> Table:  # fmt: skip
    """Add the paper's mAP of all classes behind ours."""
    rows = []
    for row in table.rows:
        found = [theirs.get(row.label, {}).get((text, "All")) for text in noises]
        cells = tuple(Cell((value,) if value is not None else ()) for value in found)
        rows.append(Row(row.category, row.label, row.cells + cells))
    columns = (*table.columns, *(("Paper", level(text)) for text in noises))
    return Table(table.name, table.title, columns, tuple(rows), table.corner, shown=table.shown)


def _share(percent: int) -> str:
    return f"{percent} %"


def _gain(cell: Cell, base: Cell) -> Cell:
    if cell.mean is None or base.mean is None:
        return cell
    return Cell(cell.values, f"({cell.mean - base.mean:+.1f})", cell.digits)


def _of(data: str, plan: BenchPlan) -> str:
    return f"{data_slug(data)}, {plan.settings.get('train', {}).get('epochs', 30)} epochs"


def _tail(data: str, plan: BenchPlan) -> str:
    """Name files by their data where there are several."""
    return f"-{data_slug(data)}" if len(plan.data) > 1 else ""
