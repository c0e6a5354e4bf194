"""Scores that are not defined: null in files, NaN in the program, a dash on pages and in tables."""

import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from balancemix.bench.layouts import make_tables
from balancemix.bench.scores import read_results
from balancemix.cli import main
from balancemix.run import Run
from tests.conftest import tiny_arrays
from tests.page import Page, planned

SMALL = ["--epochs", "2", "--batch-size", "16", "--set", "model.hidden=8"]


def strict(text: str) -> dict:
    """Read JSON as the standard has it, without NaN."""

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """Train on data without any positive in its test rows."""
    folder = tmp_path_factory.mktemp("undefined")
    arrays = tiny_arrays(rows=48, classes=3, width=6)
    arrays["labels"][arrays["split"] != "train"] = 0
    np.savez(folder / "tiny.npz", **arrays)
    call = ["train", str(folder / "tiny.npz"), "--noise", "mislabel:0.3", *SMALL]
    assert main([*call, "--out", str(folder / "run")]) == 0
    return folder / "run"


def test_files_hold_null_which_is_read_back_as_nan(run):
    metrics = strict((run / "metrics.json").read_text())
    assert metrics["last"]["mAP"] is None
    lines = [strict(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert [line["mAP"] for line in lines] == [None, None]
    assert math.isnan(Run.open(run).metrics["last"]["mAP"])
    assert [math.isnan(line["mAP"]) for line in Run.open(run).log] == [True, True]


def test_a_run_resumed_with_undefined_scores_ends_the_same(run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / "metrics.json").unlink()
    assert main(["train", "--resume", "--out", str(copy)]) == 0
    assert (copy / "metrics.json").read_bytes() == (run / "metrics.json").read_bytes()


def test_its_page_has_dashes(run, capsys):
    assert main(["report", str(run)]) == 0
    text = (run / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.tables["Results"][1][:2] == ["–", "–"]
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)
    assert "no class has a positive" in text


@pytest.mark.parametrize("call", [["evaluate", "--per-class"], ["audit"]])
def test_json_that_is_printed_has_no_nan(run, call, capsys):
    capsys.readouterr()
    assert main([call[0], str(run), *call[1:], "--json"]) == 0
    strict(capsys.readouterr().out)


def test_what_is_printed_for_people_has_dashes(run, tmp_path, capsys):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    capsys.readouterr()
    assert main(["train", "--resume", "--out", str(copy)]) == 0
    printed = capsys.readouterr().out
    assert "│ balancemix │        – │    – │" in printed
    assert "nan" not in printed


def test_a_bench_of_such_runs_has_dashes_and_a_page(run, tmp_path):
    methods = [{"name": "balancemix", "label": "BalanceMix"}, {"name": "bce", "label": "BCE"}]
    tables = ["paper", "ablation", "ranking"]
    plan = planned(data=["tiny.npz"], noises=["none"], methods=methods, tables=tables)
    (tmp_path / "bench.json").write_text(json.dumps(plan.tree()))
    shutil.copytree(run, tmp_path / "runs" / "balancemix-none-0")
    for table in make_tables(read_results(plan, tmp_path / "runs")):
        assert {cell.text for row in table.rows for cell in row.cells} == {"–"}
    assert main(["report", str(tmp_path)]) == 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)


def test_what_a_stranger_s_metrics_say_is_escaped(run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    metrics = json.loads((copy / "metrics.json").read_text())
    metrics["epochs"] = metrics["best"]["epoch"] = "<script>alert(1)</script>"
    (copy / "metrics.json").write_text(json.dumps(metrics))
    (copy / "checksums.json").unlink()
    assert main(["report", str(copy)]) == 0
    assert "<script>alert" not in (copy / "report.html").read_text(encoding="utf-8")
