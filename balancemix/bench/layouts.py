"""The layouts: the paper's tables by name, with a dash where a run is missing.

paper         Tables 1 to 3: methods by category, groups × rates of a noise; and one of all noises
ranking       the figure of five perspectives
versus_paper  our numbers beside the paper's
ablation      Table 4: components with their gain, and the mean over all noises
selection     Appendix G.3: quality of selecting and re-labelling over the training
search        Appendix E: a table for each category, a row for each value
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from balancemix.bench.paper import paper_numbers, paper_scores, versus_paper_tables
from balancemix.bench.plan import BenchPlan, Layout, Variant, data_slug, slug
from balancemix.bench.ranking import ranking_table
from balancemix.bench.scores import Results, When, heading, level
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


class Column(NamedTuple):
    """A column: its group, its heading, and the function from a row's label to its cell."""

    group: str
    heading: str
    cell: Callable[[str], Cell]


def make_tables(results: Results) -> list[Table]:
    """Make the tables that the plan lists."""
    layouts = dict.fromkeys(results.plan.tables)
    return [table for layout in layouts for table in LAYOUTS[layout](results)]


def by_category(rows: list[Variant]) -> list[Variant]:
    """Sort rows by category, the categories in the order of their first rows."""
    order = list(dict.fromkeys(row.category for row in rows))
    return sorted(rows, key=lambda row: order.index(row.category))


def paper(results: Results) -> Iterator[Table]:
    """Make a table of all noises, and for each kind of noise one by rate and group."""
    plan = results.plan
    kinds = {text: noise.parse(text).kind for text in plan.noises}
    rows = by_category(plan.methods)
    for data in plan.data:
        for when in BOTH:
            columns = _overview(results, data, when)
            table = _scores(results, data, when, "overview", ", all classes", columns, rows)
            yield replace(table, visible=when == "last")
        for kind in dict.fromkeys(kinds.values()):
            if kind == "none" and len(set(kinds.values())) > 1:
                continue  # it is the first column of the others
            levels = [text for text in plan.noises if kinds[text] == kind]
            if any(noise.KINDS[part] > 0 for part in kind.split("+")):
                levels = [text for text in plan.noises if text == "none"] + levels
            for when in BOTH:
                columns = _by_group(results, data, when, levels)
                yield _scores(results, data, when, kind, f", {kind}", columns, rows)


def ranking(results: Results) -> Iterator[Table]:
    """Rank the methods, and by the same rule those of the paper."""
    plan = results.plan
    categories = {row.label: row.category for row in by_category(plan.methods)}
    yield ranking_table([results.means(data) for data in plan.data], plan.noises, categories)
    if plan.paper:
        sets = [paper_scores(name) for name in ("coco", "voc")]  # as the paper's figure adds them
        noises = [plan.versus_paper.get(text, text) for text in plan.noises]
        known = {label: category for label, category in categories.items() if label in sets[0]}
        title = "Ranks and area by the paper's own numbers, COCO and VOC together"
        yield ranking_table(sets, noises, known, "ranking-paper", title)


def versus_paper(results: Results) -> Iterator[Table]:
    """Compare our numbers with the paper's, for each data set."""
    plan = results.plan
    noises = {text: plan.versus_paper.get(text, text) for text in plan.noises}
    for data in plan.data if plan.paper else ():
        ours, tail = results.means(data), _tail(data, plan)
        yield from versus_paper_tables(ours, paper_scores(plan.paper), noises, tail)


def ablation(results: Results) -> Iterator[Table]:
    """Add one component after another: mAP and gain over the row above, or over another one."""
    plan = results.plan
    above = [""] + [row.label for row in plan.methods]
    base = {row.label: row.over or up for row, up in zip(plan.methods, above, strict=False)}
    for data in plan.data:
        for when in BOTH:
            overall = Column("", "Overall", partial(results.overall, data=data, when=when))
            columns = [
                column._replace(group="", cell=partial(_gain, column.cell, base))
                for column in (*_overview(results, data, when), overall)
            ]
            title = " by component (gain)"
            table = _scores(results, data, when, "ablation", title, columns, plan.methods)
            headings = ("Category", "Component")
            yield replace(table, row_headings=headings, visible=when == "last")


def selection(results: Results) -> Iterator[Table]:
    """Show how good the label-wise management is at a quarter, half and the end of the training.

    The paper has columns for each noise; rows are easier to read.
    """
    plan = results.plan
    printed = paper_numbers()["selection"].get(plan.paper, {})
    noisy = [text for text in plan.noises if noise.parse(text).kind != "none"]
    for data in plan.data:
        rows = list[Row]()
        methods = [row.label for row in plan.methods if results.selects(row.label, data)]
        for text in noisy if methods else ():
            for label in methods:
                for share in PROGRESS:
                    cells = (
                        results.selection(label, text, data, share / 100, key)
                        for key, _ in QUALITY.values()
                    )
                    rows.append(Row(f"{heading(text)}, {label}", f"{share} %", tuple(cells)))
            for share in PROGRESS if text in printed else ():
                numbers = printed[text][str(share)]
                cells = (Cell.of(numbers.get(key)) for _, key in QUALITY.values())
                rows.append(Row(f"{heading(text)}, paper", f"{share} %", tuple(cells)))
        if rows:
            name, headings = f"selection{_tail(data, plan)}", ("Noise, method", "Epochs")
            title = f"Selected and re-labelled labels, in %, {_of(data, plan)}"
            columns = tuple(("", name) for name in QUALITY)
            few = len(rows) <= 12
            yield Table(name, title, columns, tuple(rows), headings, False, visible=few)


def search(results: Results) -> Iterator[Table]:
    """Make a table of each category: a row for each value that was tried."""
    plan = results.plan
    printed = paper_scores(plan.paper) if plan.paper else {}
    where = plan.settings.get("data", {}).get("score", "test")

    def paper_cell(label: str, text: str) -> Cell:
        return Cell.of(printed.get(label, {}).get((text, "All")))

    for category in dict.fromkeys(row.category for row in plan.methods):
        rows = [row for row in plan.methods if row.category == category]
        noises = [text for text in plan.noises if any(text in plan.noises_of(row) for row in rows)]
        paper = [Column("Paper", level(text), partial(paper_cell, text=text)) for text in noises]
        name, title = f"search-{slug(category)}", f" on {where} rows, {category}"
        for data in plan.data:
            last, best = (_by_group(results, data, when, noises) for when in BOTH)
            table = _scores(results, data, "last", name, title, [*last, *paper], rows)
            yield replace(table, visible=True)
            yield _scores(results, data, "best", name, title, best, rows)


LAYOUTS: dict[Layout, Callable[[Results], Iterator[Table]]] = {
    "paper": paper,
    "ranking": ranking,
    "versus_paper": versus_paper,
    "ablation": ablation,
    "selection": selection,
    "search": search,
}


def _scores(
    results: Results,
    data: str,
    when: When,
    name: str,
    title: str,
    columns: Iterable[Column],
    rows: Iterable[Variant],
) -> Table:
    """Fill the columns for some rows; complete the name and the title."""
    columns = tuple(columns)
    return Table(
        f"{name}-{when}{_tail(data, results.plan)}",
        f"{when.capitalize()} mAP{title}, {_of(data, results.plan)}",
        tuple((column.group, column.heading) for column in columns),
        tuple(
            Row(row.category, row.label, tuple(column.cell(row.label) for column in columns))
            for row in rows
        ),
    )


def _overview(results: Results, data: str, when: When) -> list[Column]:
    """Make a column of each noise, all classes together."""
    return [
        Column("All", heading(text), partial(results.score, noise=text, data=data, when=when))
        for text in results.plan.noises
    ]


def _by_group(results: Results, data: str, when: When, noises: Iterable[str]) -> list[Column]:
    """Make the columns of each group of classes, one for each noise by its rate."""
    noises = list(noises)
    return [
        Column(
            group,
            level(text),
            partial(results.score, noise=text, data=data, when=when, group=group),
        )
        for group in results.groups(data)
        for text in noises
    ]


def _gain(cell: Callable[[str], Cell], base: Mapping[str, str], label: str) -> Cell:
    """Note by how much a row's mean exceeds that of its base."""
    ours, other = cell(label), cell(base[label])
    if ours.mean is None or other.mean is None:
        return ours
    return replace(ours, note=f"({ours.mean - other.mean:+.1f})")


def _of(data: str, plan: BenchPlan) -> str:
    return f"{data_slug(data)}, {plan.settings.get('train', {}).get('epochs', 30)} epochs"


def _tail(data: str, plan: BenchPlan) -> str:
    """End the names of files by the data if there are several."""
    return f"-{data_slug(data)}" if len(plan.data) > 1 else ""
