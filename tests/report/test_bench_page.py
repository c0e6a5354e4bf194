"""The page of a bench: by its plan, with the numbers of its tables and the labels of its rows."""

import json
from pathlib import Path
from typing import Any

import pytest

from balancemix.bench.layouts import make_tables
from balancemix.report import bench_page
from balancemix.report.figures.style import colours
from tests.conftest import pretend
from tests.page import Page, planned


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> Path:
    """Pretend a bench of ten methods on two data, with all runs finished but two."""
    folder = tmp_path_factory.mktemp("bench")
    labels = ["BCE <Loss>", "BCE + Mixup", *(f"Focal {k}" for k in range(7)), "BalanceMix"]
    names = ["bce", "mixup", *["focal"] * 7, "balancemix"]
    categories = ["Default"] * 2 + ["Imbalance"] * 7 + ["Proposed"]
    keys = ("name", "label", "category")
    rows: list[dict[str, Any]] = [
        dict(zip(keys, row, strict=True)) for row in zip(names, labels, categories, strict=True)
    ]
    for k, row in enumerate(rows[2:9]):
        row["settings"] = {"gamma": 1.0 + k}
    plan = planned(
        data=["sets/a.npz", "sets/b.npz"],
        noises=["none", "mislabel:0.4", "flip:0.1", "single"],
        seeds=[0, 1, 2],
        tables=["paper", "ranking", "selection"],
        methods=rows,
    )

    def score(job, group):
        if (job.variant.label, job.noise, job.seed) == ("BCE + Mixup", "single", 2):
            return None
        place, data = labels.index(job.variant.label), plan.data.index(job.data)
        level = 60 - 9 * plan.noises.index(job.noise) + (3 * place) % 7 - 4 * (group == "Few")
        return level + 1.3 * data * place + 0.7 * job.seed

    pretend(folder / "runs", plan, score)
    (folder / "bench.json").write_text(json.dumps(plan.tree()))
    return folder


@pytest.fixture(scope="module")
def text(wide) -> str:
    return bench_page.make_page(wide).render()


def test_the_numbers_of_the_page_are_those_of_the_tables(wide, text):
    page = Page(text)
    tables = make_tables(bench_page.read(wide))
    assert len(tables) == 2 * (2 + 3 * 2) + 1
    for table in tables:
        lines = []
        for row, marks in zip(table.rows, table.marks(), strict=True):
            cells = zip(row.cells, marks, strict=True)
            marked = [f"{mark}:{cell.text}" if mark else cell.text for cell, mark in cells]
            lines.append([row.label, *marked])
        shown = page.tables[table.title]
        assert [line for line in shown if len(line) == len(lines[0])][-len(lines) :] == lines
        names = [line[0] for line in shown if len(line) == 1]
        assert names == ["Default", "Imbalance", "Proposed"]
    assert page.tags.count("details") == len([table for table in tables if not table.visible]) + 1


def test_many_tables_fold_and_groups_of_columns_have_one_heading(text):
    assert "<h3>Last mAP, all classes, a, 30 epochs</h3>" in text
    assert "<details><summary>Last mAP, mislabel, a, 30 epochs</summary>" in text
    over = Page(text).tables["Last mAP, mislabel, a, 30 epochs"][0]
    assert over == ["", "All", "Many", "Medium", "Few"]
    assert '<th scope="colgroup" colspan="2">All</th>' in text


def test_the_figures_of_several_data(wide):
    from matplotlib.text import Text

    drawn = {d.name: d.figure for d in bench_page.make_page(wide).drawings}
    noises = ("none", "mislabel-0.4", "flip-0.1", "single")
    assert list(drawn) == ["pentagons", *(f"learning-{n}-{d}" for d in "ab" for n in noises)]
    said = [text.get_text() for text in drawn["learning-none-b"].findobj(Text)]
    results = bench_page.read(wide)
    cell = results.score(results.plan.methods[0].label, "none", "sets/b.npz", "last", "All")
    assert f"BCE <Loss> {cell.number} ({cell.mean + 1:.1f})" in said
    assert "others" in said
    pentagon = "\n".join(text.get_text() for text in drawn["pentagons"].findobj(Text))
    assert "BCE + Mixup" in pentagon


def test_of_many_curves_the_first_the_last_and_the_best_are_coloured(wide, text):
    rows = bench_page.read(wide).plan.methods
    curves = {row.label: [0.0, 50.0 - k] for k, row in enumerate(rows)}
    told = ["BCE <Loss>", "BCE + Mixup", "BalanceMix", "Focal 0", "Focal 1", "Focal 2"]
    assert bench_page.notable_methods(rows, curves) == told
    few = dict(list(curves.items())[:8])
    assert bench_page.notable_methods(rows, few) == list(few)
    lines = bench_page.row_lines(rows)
    assert len(set(lines.values())) == len(rows)
    assert lines["BalanceMix"] == colours(["balancemix"])["balancemix"]
    assert "In grey: Focal" in text


def test_unfinished_runs_are_counted_and_a_dash(text):
    assert "238 of 240 runs have finished: 10 methods, 4 noises, 3 seeds; data a, b." in text
    runs = {line[0]: line for line in Page(text).tables["Runs"]}
    assert len(runs) == 1 + 240
    assert runs["bce-mixup-single-2-b"][1:] == ["BCE + Mixup", "single", "2", *["–"] * 6]
    assert runs["bce-loss-none-0"][4] == "60.0"


@pytest.mark.parametrize(
    ("data", "rows"), [({}, "test"), ({"score": "held-out"}, "held-out training")]
)
def test_a_curve_says_which_rows_were_scored(tmp_path, data, rows):
    plan = planned(data=["a.npz"], methods=[{"name": "bce"}], settings={"data": data})
    pretend(tmp_path / "runs", plan, lambda job, group: 50.0)
    (tmp_path / "bench.json").write_text(json.dumps(plan.tree()))
    captions = [drawn.caption for drawn in bench_page.learned(bench_page.read(tmp_path))]
    assert captions[0].startswith(f"Clean: mAP on {rows} rows after each epoch")
