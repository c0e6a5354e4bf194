"""A bench with a ledger: what it knows is not trained, and tables need no runs."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from balancemix.bench import runner
from balancemix.bench.finished import Finished
from balancemix.bench.ledger import Ledger
from balancemix.bench.plan import jobs, read_bench
from balancemix.bench.progress import BenchProgress
from balancemix.cli import main
from tests.bench.plans import PLAN
from tests.conftest import tiny_arrays

PATHS = ("plan.toml", "tiny.npz", "ledger.jsonl")
CALL = ["bench", "plan.toml", "--jobs", "1", "--ledger", "ledger.jsonl", "--out"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Run a small plan with a ledger, once for all tests."""
    folder = tmp_path_factory.mktemp("bench")
    np.savez(folder / "tiny.npz", **tiny_arrays(rows=48, classes=3, width=6))
    (folder / "plan.toml").write_text(PLAN)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([*CALL, "out"]) == 0
    return folder


@pytest.fixture
def copy(whole, tmp_path, monkeypatch) -> Path:
    """Go to a folder with the plan, its data and the ledger, but no run."""
    for name in PATHS:
        shutil.copy(whole / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def trained(monkeypatch) -> list[str]:
    """Note the runs that would be trained, and train none."""
    names: list[str] = []

    def note(tasks, at_once, progress):
        names.extend(task.name for task in tasks)

    monkeypatch.setattr(runner, "train_all", note)
    return names


def lines(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()]


def tables(out: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((out / "tables").iterdir())}


def test_every_run_has_a_line_with_its_settings_and_scores(whole):
    entered = lines(whole)
    assert len(entered) == 4
    for line in entered:
        assert (line["bench"], line["data"]) == ("plan", "tiny")
        name = "bce" if line["label"] == "bce" else "balancemix-w-o-min"
        noise = line["plan"]["noise"].replace(":", "-")
        run = whole / "out" / "runs" / f"{name}-{noise}-0"
        metrics = json.loads((run / "metrics.json").read_text())
        assert line["last"]["mAP"] == pytest.approx(metrics["last"]["mAP"], abs=1e-4)
        assert line["best"]["mAP_few"] == pytest.approx(metrics["best"]["mAP_few"], abs=1e-4)
        classes = json.loads((run / "per_class.json").read_text())["classes"]
        assert line["class_ap"] == [pytest.approx(each["AP"], abs=5e-3) for each in classes]
        assert line["seconds"]["total"] >= line["seconds"]["epochs"] >= 0
        assert set(line["versions"]) == {"balancemix", "torch", "numpy", "python"}
        plan = json.loads((run / "plan.json").read_text())
        assert line["plan"]["method"] == plan["method"]
        assert line["plan"]["train"]["lr"] == 0.01
    assert str(whole) not in (whole / "ledger.jsonl").read_text()


def test_what_has_a_line_is_not_trained_and_tables_need_no_runs(whole, copy, trained):
    before = (copy / "ledger.jsonl").read_bytes()
    assert main([*CALL, "elsewhere"]) == 0
    assert trained == []
    assert not (copy / "elsewhere" / "runs").exists()
    assert tables(copy / "elsewhere") == tables(whole / "out")
    assert (copy / "ledger.jsonl").read_bytes() == before


def test_without_the_data_tables_are_made_by_its_name(whole, copy):
    (copy / "tiny.npz").unlink()
    assert main([*CALL, "out", "--tables"]) == 0
    assert tables(copy / "out") == tables(whole / "out")


def test_data_is_known_by_its_content_not_by_its_path(copy, trained):
    (copy / "sets").mkdir()
    shutil.move("tiny.npz", "sets/moved.npz")
    assert main([*CALL, "out", "--data", "sets/moved.npz"]) == 0
    assert trained == []


@pytest.mark.parametrize(
    "part", ["features", "labels", "classes", "split", "truth", "verified", "unknown"]
)
def test_changed_data_is_trained_again(copy, trained, part):
    arrays = tiny_arrays(rows=48, classes=3, width=6)
    if part == "features":
        arrays[part][-1, 0] += 1
    elif part == "labels":
        arrays[part][0, -1] ^= 1
    elif part == "unknown":
        arrays["labels"] = arrays["labels"].astype(np.float32)
        arrays["labels"][0, -1] = np.nan
    elif part in ("truth", "verified"):
        arrays[part] = arrays["labels"].copy()
        arrays[part][0, -1] ^= 1
    else:
        arrays[part] = arrays[part].copy()
        arrays[part][0] = {"classes": "cx", "split": "test"}[part]
    np.savez("tiny.npz", **arrays)
    assert main([*CALL, "out"]) == 0
    assert len(trained) == 4


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("warmup = 1", "warmup = 2", 2),
        ("batch_size = 16", "batch_size = 8", 4),
        ("seeds = [0]", "seeds = [0, 1]", 4),
        ('"mislabel:0.3"', '"mislabel:0.2"', 2),
        ("epochs = 4", "epochs = 4\ntrack = 'tensorboard'", 0),
        ("minority = false", "minority = false, alpha = 4", 0),  # its default
        ('label = "BalanceMix', 'label = "Ours', 0),
    ],
)
def test_other_settings_are_other_runs(copy, trained, old, new, count):
    (copy / "plan.toml").write_text(PLAN.replace(old, new))
    assert main([*CALL, "out"]) == 0
    assert len(trained) == count


def test_a_changed_default_is_another_run_and_a_new_setting_is_not(copy):
    job = next(job for job in jobs(read_bench("plan.toml")) if job.variant.name == "bce")
    assert find(copy, job) is not None
    entered = lines(copy)
    for line in entered:
        del line["plan"]["train"]["ema"]  # as if written before there was such a setting
        del line["checksum"]  # or checksums
    rewrite(copy, entered)
    assert find(copy, job) is not None
    for line in entered:
        line["plan"]["train"]["lr"] = 0.02  # the default of then
    rewrite(copy, entered)
    assert find(copy, job) is None
    for line in entered:
        line["plan"]["method"] = {"name": "gone"}
    rewrite(copy, entered)
    assert find(copy, job) is None


def find(folder, job):
    return Finished(Ledger(folder / "ledger.jsonl"), "plan").find(job)


def rewrite(folder, entered):
    (folder / "ledger.jsonl").write_text("".join(json.dumps(line) + "\n" for line in entered))


def test_finished_runs_are_entered_without_training(whole, copy, trained):
    shutil.copytree(whole / "out", copy / "out")
    (copy / "ledger.jsonl").unlink()
    for more in ([], ["--tables"]):
        assert main([*CALL, "out", *more]) == 0
    assert trained == []
    entered = lines(copy)
    for one, other in zip(entered, lines(whole), strict=True):
        assert one["versions"] == {}
        assert one["seconds"]["total"] is None
        for name in ("plan", "fingerprint", "last", "best", "class_ap"):
            assert one[name] == other[name]


def test_a_run_of_other_data_or_settings_is_not_entered(whole, copy, trained, capsys):
    shutil.copytree(whole / "out", copy / "out")
    (copy / "ledger.jsonl").unlink()
    arrays = tiny_arrays(rows=48, classes=3, width=6)
    changed = arrays["features"] + 1
    run = Path("out") / "runs" / "bce-none-0"
    for other in ({"features": changed}, {"verified": arrays["labels"]}):
        np.savez("tiny.npz", **(arrays | other))
        assert main([*CALL, "out"]) == 2
        said = capsys.readouterr().err
        assert f"{run}: was trained on other data than tiny.npz is now; delete {run} and" in said
    shutil.copy(whole / "tiny.npz", "tiny.npz")
    plan = json.loads((run / "plan.json").read_text())
    plan["train"]["lr"] = 0.5
    (run / "plan.json").write_text(json.dumps(plan))
    (run / "checksums.json").unlink()
    assert main([*CALL, "out"]) == 2
    said = capsys.readouterr().err
    assert f"{run}: was trained with another plan (train.lr was 0.5, is 0.01); delete {run}" in said
    assert not (copy / "ledger.jsonl").exists()


def test_killed_before_a_line_is_written_nothing_is_trained_twice(whole, copy, monkeypatch):
    (copy / "ledger.jsonl").unlink()

    def stop(self, name, metrics):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(BenchProgress, "ended", stop)
        assert main([*CALL, "out"]) == 130
    assert not (copy / "ledger.jsonl").exists()
    (done,) = (copy / "out" / "runs").glob("*/metrics.json")
    ended = done.stat().st_mtime_ns
    assert main([*CALL, "out"]) == 0
    assert done.stat().st_mtime_ns == ended
    assert len(lines(copy)) == 4
    assert tables(copy / "out") == tables(whole / "out")


def test_a_method_of_somebody_else_is_left_out(copy, monkeypatch):
    (copy / "mine.py").write_text("from balancemix import Method\nclass Mine(Method): pass\n")
    (copy / "plan.toml").write_text(PLAN.replace('name = "bce"', 'name = "mine:Mine"'))
    monkeypatch.syspath_prepend(copy)
    assert main([*CALL, "out", "--only", "mine:Mine"]) == 0
    assert len(lines(copy)) == 4


def test_the_choice_of_auto_is_entered(copy):
    text = (
        PLAN.split("[[methods]]")[0].replace(', "mislabel:0.3"', "")
        + """
[[methods]]
name = "auto"
settings = { candidates = ["kernel-ridge", "bce"] }
"""
    )
    (copy / "plan.toml").write_text(text)
    assert main([*CALL, "out"]) == 0
    *others, line = lines(copy)
    choice = json.loads((copy / "out" / "runs" / "auto-none-0" / "auto.json").read_text())
    assert line["chosen"] == choice["chosen"]
    assert line["candidates"] == pytest.approx(choice["scores"], abs=1e-4)
    assert line["plan"]["method"]["name"] == "auto"
    assert {other["chosen"] for other in others} == {""}


def test_a_damaged_ledger_is_refused_before_anything_is_written(copy, capsys):
    with (copy / "ledger.jsonl").open("a") as ledger:
        ledger.write("x\n")
    assert main([*CALL, "out"]) == 2
    assert "ledger.jsonl, line 5: is not an entry of a ledger" in capsys.readouterr().err
    assert not (copy / "out").exists()
