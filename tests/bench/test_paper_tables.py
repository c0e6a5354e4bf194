"""Tables: their arithmetic by hand, their forms, and the paper's numbers through our layouts."""

import csv
import math
import re

import pytest

from balancemix.bench.layouts import make_tables
from balancemix.bench.paper import paper_numbers, paper_scores, spearman, versus_paper_tables
from balancemix.bench.plan import BenchPlan, read_bench
from balancemix.bench.ranking import area, rank, rank_methods, ranking_table
from balancemix.bench.render import csv_rows, latex, markdown, write_tables
from balancemix.bench.scores import read_results
from balancemix.bench.table import Cell, Row, Table
from balancemix.errors import InputError
from balancemix.plan.settings import read_into
from tests.conftest import pretend


def plan_of(**changes) -> BenchPlan:
    tree = {
        "data": ["a.npz"],
        "noises": ["none", "mislabel:0.4"],
        "seeds": [0, 1, 2],
        "methods": [
            {"name": "bce", "label": "BCE", "category": "Default"},
            {"name": "asl", "label": "ASL", "category": "Noisy Labels"},
            {"name": "mixup", "label": "Mixup", "category": "Default"},
        ],
    }
    return read_into(BenchPlan, {**tree, **changes})


def named(tables: list[Table], name: str) -> Table:
    return next(table for table in tables if table.name == name)


def row(table: Table, label: str) -> Row:
    return next(row for row in table.rows if row.label == label)


def test_a_cell_is_a_mean_and_its_standard_error():
    cell = Cell((50.0, 52.0, 57.0))
    assert cell.mean == 53.0
    assert cell.error == pytest.approx(math.sqrt((9 + 1 + 16) / 2) / math.sqrt(3))
    assert (cell.number, cell.spread) == ("53.0", "2.1")
    assert (Cell((3.0,)).error, Cell().mean, Cell().number) == (None, None, "–")


def test_best_and_second_are_by_what_is_written_and_equals_share():
    values = [(88.41, 1), (88.38, 2), (87.0, None), (85.0, 2)]
    rows = [
        Row("", str(i), (Cell((a,)), Cell((b,) if b else ()))) for i, (a, b) in enumerate(values)
    ]
    table = Table("t", "T", (("", "x"), ("", "y")), tuple(rows))
    assert table.marks() == [["best", "second"], ["best", "best"], ["second", ""], ["", "best"]]


def test_ranks_and_spearman_by_hand():
    assert rank({"a": 3, "b": 1, "c": 2}) == {"a": 1, "b": 3, "c": 2}
    assert spearman([(1, 1), (2, 2), (3, 4), (4, 3)]) == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert spearman([(1, 3), (2, 2), (3, 1)]) == -1
    # Equals have their mean rank: 1.5, 1.5, 3 against 1, 2, 3.
    assert spearman([(2, 3), (2, 2), (1, 1)]) == pytest.approx(1.5 / math.sqrt(1.5 * 2))
    assert spearman([(1, 1), (1, 2), (1, 3)]) is None


def test_a_table_of_the_paper_s_layout_by_hand(tmp_path):
    plan = plan_of()
    scores = {"BCE": (50.0, 30.0), "ASL": (54.0, 45.0), "Mixup": (52.0, 35.0)}

    def score(job, group):
        if (job.variant.label, job.noise, job.seed) == ("ASL", "mislabel:0.4", 2):
            return None  # this run has not ended
        if group == "Many":
            return None  # no class is that frequent
        return scores[job.variant.label][job.noise != "none"] + job.seed - (group == "Few")

    pretend(tmp_path, plan, score)
    tables = make_tables(read_results(plan, tmp_path))
    names = ["overview-last", "overview-best", "mislabel-last", "mislabel-best"]
    assert [table.name for table in tables] == names
    table = named(tables, "mislabel-last")
    assert table.columns == tuple(
        (group, level) for group in ("All", "Medium", "Few") for level in ("0 %", "40 %")
    )
    assert [line.label for line in table.rows] == ["BCE", "Mixup", "ASL"]  # by category
    assert row(table, "BCE").cells[0].mean == 51.0
    assert row(table, "ASL").cells[1].values == (45.0, 46.0)
    assert row(table, "ASL").cells[5].mean == 44.5
    assert row(named(tables, "mislabel-best"), "BCE").cells[0].mean == 52.0
    text = markdown(table)
    assert "| Category | Method | All 0 % | All 40 % |" in text
    assert "| Default | BCE | 51.0 ± 0.6 | 31.0 ± 0.6 |" in text
    assert "|  | Mixup | <u>53.0 ± 0.6</u> | <u>36.0 ± 0.6</u> |" in text
    assert "| Noisy Labels | ASL | **55.0 ± 0.6** | **45.5 ± 0.5** |" in text
    assert csv_rows(table)[1][:5] == ["Default", "BCE", "51", "0.57735", "3"]


def test_what_has_not_run_is_a_dash(tmp_path):
    plan = plan_of()
    nothing = make_tables(read_results(plan, tmp_path))
    assert len(nothing) == 4
    assert "| Default | BCE | – | – |" in markdown(named(nothing, "overview-last"))
    pretend(tmp_path, plan, lambda job, group: 50.0 if job.noise == "none" else None)
    text = markdown(named(make_tables(read_results(plan, tmp_path)), "overview-last"))
    assert "| Noisy Labels | ASL | **50.0 ± 0.0** | – |" in text


def test_latex_is_balanced_and_escaped(tmp_path):
    methods = [
        {"name": "bce", "label": r"50 % & a_b {c} \d", "category": "#1 ~ $x$ ^"},
        {"name": "asl", "label": "ASL", "category": "Noisy Labels"},
    ]
    plan = plan_of(methods=methods, noises=["none", "flip:0.1,0.3", "single"])
    pretend(tmp_path, plan, lambda job, group: 40.0 + job.seed)
    for table in make_tables(read_results(plan, tmp_path)):
        text = latex(table)
        bare = re.sub(r"\\[\\{}%&#_$]", "", text)
        assert bare.count("{") == bare.count("}")
        assert bare.count("$") % 2 == 0
        assert not re.search(r"[%#_^~](?!.*label)", bare.replace(r"\label{table:", ""))
        lines = [line for line in text.splitlines() if line.endswith(r"\\")]
        columns = 2 + len(table.columns)
        for line in lines[1:]:
            assert len(re.split(r"(?<!\\)&", line)) == columns
        for name in ("table*", "tabular"):
            assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") == 1
        assert r"\textbf{" in text
        assert r"\midrule" in text


def test_files_are_written_in_every_form(tmp_path):
    plan = plan_of()
    pretend(tmp_path / "runs", plan, lambda job, group: 40.0)
    tables = make_tables(read_results(plan, tmp_path / "runs"))
    write_tables(tmp_path / "tables", tables)
    for table in tables:
        for form in ("md", "csv", "tex"):
            assert (tmp_path / "tables" / f"{table.name}.{form}").stat().st_size
    with (tmp_path / "tables" / "overview-last.csv").open(newline="") as lines:
        assert {len(line) for line in csv.reader(lines)} == {2 + 3 * 2}


def test_the_paper_s_numbers_come_out_as_the_paper_s_tables(tmp_path):
    """Runs that score what the paper printed give its marks, its order and ρ = 1."""
    theirs, plan = paper_scores("coco"), read_bench("paper-tables")
    plan.data = ["coco.npz"]

    def score(job, group):
        noise = plan.versus_paper.get(job.noise, job.noise)
        return theirs.get(job.variant.label, {}).get((noise, group))

    pretend(tmp_path, plan, score)
    tables = make_tables(read_results(plan, tmp_path))
    text = latex(named(tables, "mislabel-last"))
    ours = next(line for line in text.splitlines() if "BalanceMix" in line)
    assert ours.count(r"\textbf") == 11  # of 12: ASL leads the medium-shot classes without noise
    assert r"\underline{86.1 $\pm$ 0.0}" in ours
    rhos = named(tables, "spearman")
    assert all(cell.mean == pytest.approx(1) for line in rhos.rows for cell in line.cells)
    assert rhos.columns[3] == ("", "Flip 10 % (paper Flip 20 %)")
    beside = named(tables, "beside-all")
    first = [line for line in beside.rows if line.category == "Clean" and line.label == "ASL"]
    assert [cell.mean for cell in first[0].cells] == [85.0, 85.0, 2, 2]
    ranking = named(tables, "ranking")
    best = row(ranking, "BalanceMix")
    assert [cell.mean for cell in best.cells] == [1] * 7  # first everywhere: the whole pentagon
    assert [cell.mean for cell in row(ranking, "BCE Loss").cells][:5] == [4, 7, 7, 5, 6]
    assert row(ranking, "Focal").cells[0].values == ()
    own = named(tables, "ranking-paper")
    assert [line.label for line in own.rows] == list(theirs)
    areas = {line.label: line.cells[5].mean for line in own.rows}
    order = sorted(areas, key=areas.get, reverse=True)
    # A comment in the paper's source has this order, then without T-estimator.
    named_there = ["BalanceMix", "ASL", "LL-Ct", "Co-teaching", "LL-R", "BCE Loss"]
    assert [label for label in order if label != "T-estimator"] == named_there


def test_pentagons_by_hand():
    assert area([1] * 5, 3) == pytest.approx(1)
    assert area([3] * 5, 3) == pytest.approx(1 / 9)
    # Radii 1, 1/2, 1, 1/2, 1 of two methods: products 1/2 four times and 1 once, of five.
    assert area([1, 2, 1, 2, 1], 2) == pytest.approx(3 / 5)


def test_ranks_are_added_up_over_data_and_ranked_again():
    def scored(*values):
        return {name: {("none", "All"): value} for name, value in zip("abc", values, strict=True)}

    sets = [scored(3.0, 2.0, 1.0), scored(1.0, 3.0, 2.0)]
    assert rank_methods(sets, ["none"], "Clean") == {"a": 2, "b": 1, "c": 3}
    assert rank_methods([{"a": {("none", "All"): 1.0}, "b": {}}], ["none"], "Clean") == {"a": 1}
    lacking = ranking_table([{"a": {("none", "All"): 1.0}}], ["none"], {"a": "", "b": ""})
    assert [cell.number for cell in row(lacking, "a").cells] == ["1", "–", "–", "–", "–", "–", "–"]


def test_the_ablation_has_gains_and_means_by_hand(tmp_path):
    methods = [
        {"name": "bce", "label": "Default"},
        {"name": "mixup", "label": "+ Random"},
        {"name": "balancemix", "label": "+ Minority", "over": "Default"},
    ]
    plan = plan_of(methods=methods, tables=["ablation"], seeds=[0, 1])
    scores = {"Default": (80.0, 60.0), "+ Random": (81.0, 64.0), "+ Minority": (82.0, 70.0)}

    def score(job, group):
        return scores[job.variant.label][job.noise != "none"] + job.seed

    pretend(tmp_path, plan, score)
    text = markdown(named(make_tables(read_results(plan, tmp_path)), "ablation-last"))
    assert "| Component | Clean | Mislabel 40 % | Overall |" in text
    assert "| Default | 80.5 ± 0.5 | 60.5 ± 0.5 | 70.5 ± 0.5 |" in text
    random = ("81.5 ± 0.5 (+1.0)", "64.5 ± 0.5 (+4.0)", "73.0 ± 0.5 (+2.5)")
    assert f"| + Random | {' | '.join(f'<u>{cell}</u>' for cell in random)} |" in text
    minority = ("82.5 ± 0.5 (+2.0)", "70.5 ± 0.5 (+10.0)", "76.5 ± 0.5 (+6.0)")
    assert f"| + Minority | {' | '.join(f'**{cell}**' for cell in minority)} |" in text


def test_the_selection_is_read_at_a_quarter_half_and_the_end(tmp_path):
    methods = [{"name": "bce", "label": "BCE"}, {"name": "balancemix", "label": "BalanceMix"}]
    plan = plan_of(methods=methods, tables=["selection"], seeds=[0], paper="coco")

    def selection(job, epoch):
        if job.variant.label == "BCE":
            return {"clean_precision": 0.97, "clean_recall": 1.0}
        return {"clean_precision": 0.9 + epoch / 100, "clean_recall": 0.8, "relabel_accuracy": 0.7}

    pretend(tmp_path, plan, lambda job, group: 50.0, selection)
    table = named(make_tables(read_results(plan, tmp_path)), "selection")
    assert [heading for _, heading in table.columns][:3] == ["Precision", "Recall", "Re-labelled"]
    found = [(line.category, line.label, line.cells[0].number) for line in table.rows]
    assert found == [
        ("Mislabel 40 %, BalanceMix", "25 %", "91.0"),
        ("Mislabel 40 %, BalanceMix", "50 %", "93.0"),
        ("Mislabel 40 %, BalanceMix", "100 %", "97.0"),
        ("Mislabel 40 %, paper", "25 %", "96.1"),
        ("Mislabel 40 %, paper", "50 %", "95.5"),
        ("Mislabel 40 %, paper", "100 %", "94.5"),
    ]


def test_the_search_has_a_table_of_each_grid_with_the_paper_s_column(tmp_path):
    plan = read_bench("search")
    plan.data = ["coco.npz"]
    pretend(tmp_path, plan, lambda job, group: 40.0 + job.plan.method.alpha)
    tables = make_tables(read_results(plan, tmp_path))
    assert len(tables) == 6
    alpha = named(tables, "search-alpha-mislabelling-last")
    assert [line.label for line in alpha.rows] == [f"alpha {a}.0" for a in (1, 2, 4, 8)]
    assert alpha.columns[-1] == ("Paper", "40 %")
    assert [cell.mean for cell in row(alpha, "alpha 8.0").cells] == [48, 48, 48, 48, 81.3]
    assert "held-out rows" in alpha.title


def test_several_data_have_tables_of_their_own(tmp_path):
    plan = plan_of(data=["a.npz", "b.npz"], tables=["paper", "ranking"])
    pretend(tmp_path, plan, lambda job, group: 50.0 if job.data == "a.npz" else 60.0)
    tables = make_tables(read_results(plan, tmp_path))
    assert row(named(tables, "overview-last-b"), "BCE").cells[0].mean == 60.0
    assert row(named(tables, "overview-last-a"), "BCE").cells[0].mean == 50.0


def test_the_paper_s_numbers_are_whole():
    for table in ("coco", "voc"):
        assert len(paper_scores(table)) == 7
        groups = 4 if table == "coco" else 3
        assert {len(scores) for scores in paper_scores(table).values()} == {6 * groups}
        assert set(paper_numbers()["error"][table]) < set(paper_scores(table))
    with pytest.raises(InputError, match="did you mean 'coco'"):
        paper_scores("coko")
    assert versus_paper_tables({}, paper_scores("coco"), {"none": "none"}) == []
