"""Where a bench may write: nothing of anybody else's is lost, no stranger's code is run."""

import json

import numpy as np
import pytest

from balancemix.cli import main
from tests.bench.plans import PLAN
from tests.conftest import tiny_arrays


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "tiny.npz", **tiny_arrays())
    text = PLAN.split('[[methods]]\nname = "balancemix"')[0]
    (tmp_path / "plan.toml").write_text(text.replace(', "mislabel:0.3"', ""))
    return "plan.toml"


@pytest.mark.parametrize("call", [["bench", "plan.toml"], ["demo"]])
def test_a_directory_with_other_files_is_refused(plan, tmp_path, capsys, call):
    assert main([*call, "--out", "."]) == 2
    assert "holds other files (plan.toml, tiny.npz)" in capsys.readouterr().err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["plan.toml", "tiny.npz"]
    assert main([*call, "--out", "plan.toml"]) == 2
    assert "plan.toml: is a file" in capsys.readouterr().err


def test_the_demo_replaces_no_run_but_its_own(plan, tmp_path, capsys):
    call = ["train", "tiny.npz", "--epochs", "1", "--method", "bce", "--out", "runs/bce"]
    assert main([*call, "--set", "model.hidden=4"]) == 0
    before = (tmp_path / "runs" / "bce" / "model.safetensors").read_bytes()
    assert main(["demo", "--out", "runs"]) == 2
    assert "holds a run that is not the demo's" in capsys.readouterr().err
    assert (tmp_path / "runs" / "bce" / "model.safetensors").read_bytes() == before


def test_an_edited_table_is_not_replaced(plan, tmp_path, capsys):
    call = ["bench", plan, "--out", "out", "--jobs", "1"]
    assert main(call) == 0
    assert main(call) == 0  # as they were left, tables are written again
    table = next((tmp_path / "out" / "tables").glob("*.md"))
    table.write_text(table.read_text() + "my remark")
    for more in ([], ["--tables"]):
        assert main([*call, *more]) == 2
        said = capsys.readouterr().err
        assert f"edited since the bench wrote them: {table.name}; move them away" in said
    assert table.read_text().endswith("my remark")


def test_a_stranger_s_unfinished_run_runs_no_code(plan, tmp_path, capsys):
    (tmp_path / "evil_method.py").write_text("open('executed', 'w').close()")
    run = tmp_path / "out" / "runs" / "bce-none-0"
    run.mkdir(parents=True)
    tree = {"method": {"name": "evil_method:X"}, "data": {"path": "tiny.npz"}}
    (run / "plan.json").write_text(json.dumps(tree))
    assert main(["bench", plan, "--out", "out", "--jobs", "1"]) == 1
    assert "cannot resume with another plan" in capsys.readouterr().err
    assert not (tmp_path / "executed").exists()
