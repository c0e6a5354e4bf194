"""Where a bench may write: nothing of anybody else's is lost, no stranger's code is run."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from balancemix.bench.plan import read_bench
from balancemix.cli import main
from balancemix.files import write_json
from balancemix.manifest import Outputs
from balancemix.report import demo_page
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


@pytest.mark.parametrize("name", ["runs", "tables", "failures"])
def test_a_folder_that_only_looks_like_a_bench_is_refused(plan, tmp_path, capsys, name):
    (tmp_path / "out" / name).mkdir(parents=True)
    (tmp_path / "out" / name / "mine.md").write_text("precious")
    assert main(["bench", plan, "--out", "out", "--jobs", "1"]) == 2
    assert f"out: holds other files ({name})" in capsys.readouterr().err
    assert [file.name for file in (tmp_path / "out").rglob("*")] == [name, "mine.md"]


@pytest.fixture
def demo(monkeypatch):
    """Leave out the page, which takes longer than the training."""
    monkeypatch.setattr(demo_page, "learning", lambda curves: Figure())
    monkeypatch.setattr("balancemix.data.formats.builtin.TRAIN", 400)
    monkeypatch.setattr("balancemix.data.formats.builtin.TEST", 100)
    return ["demo", "--epochs", "1", "--out", "runs"]


def test_the_demo_replaces_a_run_of_its_own(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(demo) == 0
    assert main([*demo, "--seed", "3"]) == 0
    assert json.loads((tmp_path / "runs/bce/plan.json").read_bytes())["seed"] == 3
    (tmp_path / "runs/bce/metrics.json").unlink()  # as if it had been stopped
    assert main(demo) == 0
    assert json.loads((tmp_path / "runs/bce/plan.json").read_bytes())["seed"] == 0


@pytest.mark.parametrize("before", [False, True])
def test_the_demo_replaces_no_run_of_a_person_that_is_like_its_own(
    demo, tmp_path, monkeypatch, capsys, before
):
    monkeypatch.chdir(tmp_path)
    if before:
        assert main(demo) == 0
    call = ["train", "digits", "--noise", "mislabel:0.4", "--method", "bce", "--epochs", "1"]
    assert main([*call, "--out", "runs/bce", "--force"]) == 0
    mine = (tmp_path / "runs/bce/metrics.json").read_bytes()
    assert main(demo) == 2
    assert "bce: holds a run that is not the demo's" in capsys.readouterr().err
    assert (tmp_path / "runs/bce/metrics.json").read_bytes() == mine
    assert main([*demo, "--force"]) == 0
    assert (tmp_path / "runs/bce/metrics.json").read_bytes() != mine


def test_the_demo_replaces_no_labels_that_a_person_changed(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(demo) == 0
    data = tmp_path / "runs/seed-0/digits.npz"
    store = tmp_path / "runs/seed-0/digits.npz.balancemix"
    assert (store / "review.sqlite").is_file()  # what the review asks about
    (store / "decisions.csv").write_text("image,class,verdict\n0001.jpg,3,present\n")
    with data.open("ab") as file:
        file.write(b"mine")
    mine = data.read_bytes()
    assert main(demo) == 2
    assert "digits.npz: is not as the demo wrote it" in capsys.readouterr().err
    assert data.read_bytes() == mine
    assert main([*demo, "--force"]) == 0
    assert data.read_bytes() != mine
    assert (store / "decisions.csv").exists()


def test_tables_without_checksums_are_replaced_only_if_the_bench_made_them(plan, tmp_path, capsys):
    call = ["bench", plan, "--out", "out", "--jobs", "1"]
    assert main(call) == 0
    (tmp_path / "out/tables/.outputs.json").unlink()  # as an older version left them
    assert main([*call, "--tables"]) == 0  # the same, byte for byte
    assert (tmp_path / "out/tables/.outputs.json").exists()
    (tmp_path / "out/tables/.outputs.json").unlink()
    table = next((tmp_path / "out/tables").glob("*.csv"))
    table.write_text("my own")
    capsys.readouterr()
    for more in ([], ["--tables"]):
        assert main([*call, *more]) == 2
        said = capsys.readouterr().err
        assert f"not known to be written by this bench: {table.name}; move them away" in said
    assert table.read_text() == "my own"


def test_a_bench_that_is_stopped_while_it_writes_tables_knows_them(
    plan, tmp_path, capsys, monkeypatch
):
    call = ["bench", plan, "--out", "out", "--jobs", "1"]
    remember, left = Outputs._write, [3]

    def stopped(self, entries):
        left[0] -= 1
        if not left[0]:
            raise OSError(28, "No space left on device")
        remember(self, entries)

    with monkeypatch.context() as patch:
        patch.setattr(Outputs, "_write", stopped)
        assert main(call) == 2
    assert len(list((tmp_path / "out" / "tables").glob("*.*"))) > 0
    with (tmp_path / "plan.toml").open("a") as text:
        text.write('[[methods]]\nname = "mixup"\n')  # the tables will differ
    assert main(call) == 0


def test_a_table_that_a_person_put_among_the_bench_s_is_not_replaced(plan, tmp_path, capsys):
    call = ["bench", plan, "--out", "out", "--jobs", "1"]
    assert main(call) == 0
    outputs = Outputs(tmp_path / "out/tables")
    known, table = outputs._read(), next((tmp_path / "out/tables").glob("*.csv"))
    outputs._write({name: sums for name, sums in known.items() if name != table.name})
    table.write_text("my own")
    assert main([*call, "--tables"]) == 2
    assert f"not known to be written by this bench: {table.name}" in capsys.readouterr().err
    assert table.read_text() == "my own"


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
    write_json(tmp_path / "out" / "bench.json", read_bench(plan).tree())
    tree = {"method": {"name": "evil_method:X"}, "data": {"path": "tiny.npz"}}
    (run / "plan.json").write_text(json.dumps(tree))
    assert main(["bench", plan, "--out", "out", "--jobs", "1"]) == 1
    assert "cannot resume with another plan" in capsys.readouterr().err
    assert not (tmp_path / "executed").exists()
