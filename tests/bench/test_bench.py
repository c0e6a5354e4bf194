"""Bench: runs side by side that survive failures and interruptions."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from balancemix.bench.plan import read_bench
from balancemix.bench.progress import BenchProgress
from balancemix.bench.runner import remember
from balancemix.cli import main
from tests.bench.plans import PLAN
from tests.conftest import ROOT, tiny_arrays

ONE = ["--jobs", "1"]
BAD = """
import os
from balancemix import Method

class Broken(Method):
    def batch_loss(self, model, batch):
        raise RuntimeError("the loss is lost")

class Fatal(Method):
    def batch_loss(self, model, batch):
        os._exit(9)
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Run a small plan without any interruption, once for all tests."""
    folder = tmp_path_factory.mktemp("bench")
    np.savez(folder / "tiny.npz", **tiny_arrays(rows=48, classes=3, width=6))
    (folder / "plan.toml").write_text(PLAN.replace("tiny.npz", str(folder / "tiny.npz")))
    assert main(["bench", str(folder / "plan.toml"), "--out", str(folder / "out"), *ONE]) == 0
    return folder


def test_reading_a_bench_imports_no_method_of_a_stranger(whole, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    shutil.copytree(whole / "out", out)
    (tmp_path / "evilmod.py").write_text("open('imported', 'w').close()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    tree = json.loads((out / "bench.json").read_text())
    tree["methods"].append({**tree["methods"][0], "name": "evilmod:X", "label": "Evil"})
    (out / "bench.json").write_text(json.dumps(tree))
    assert main(["report", str(out)]) == 0
    assert "Evil" in (out / "report.html").read_text()
    more = (whole / "plan.toml").read_text() + '[[methods]]\nname = "evilmod:X"\nlabel = "Evil"\n'
    (tmp_path / "more.toml").write_text(more)
    for plan in (str(whole / "plan.toml"), "more.toml"):
        main(["bench", plan, "--out", str(out), "--tables"])
    assert not (tmp_path / "imported").exists()


def read_tables(out: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((out / "tables").glob("[!.]*"))}


def times(out: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in out.glob("runs/*/metrics.json")}


def test_its_runs_are_those_of_train(whole, tmp_path):
    flags = ["--epochs", "4", "--batch-size", "16", "--set", "model.hidden=8", "--workers", "0"]
    noisy = ["--method", "bce", "--noise", "mislabel:0.3"]
    call = ["train", str(whole / "tiny.npz"), *noisy, *flags, "--out", str(tmp_path / "alone")]
    assert main(call) == 0
    pair = [tmp_path / "alone", whole / "out" / "runs" / "bce-mislabel-0.3-0"]
    assert {path.name for path in pair[0].iterdir()} == {path.name for path in pair[1].iterdir()}
    for name, part in (("plan.json", None), ("noise.json", None), ("metrics.json", "last")):
        one, other = (json.loads((run / name).read_text()) for run in pair)
        assert (one[part] == other[part]) if part else (one == other)


def test_nothing_is_repeated_and_another_plan_is_refused(whole, capsys):
    ended = times(whole / "out")
    rows, noises = ("bce", "balancemix-w-o-min"), ("none", "mislabel-0.3")
    assert set(ended) == {f"{row}-{noise}-0" for row in rows for noise in noises}
    call = ["bench", str(whole / "plan.toml"), "--out", str(whole / "out")]
    assert main(call) == 0
    assert "Last mAP, all classes, tiny" in capsys.readouterr().out
    assert times(whole / "out") == ended
    other = whole / "other.toml"
    other.write_text((whole / "plan.toml").read_text().replace("minority = false, ", ""))
    assert main(["bench", str(other), "--out", str(whole / "out")]) == 2
    said = capsys.readouterr().err
    assert "holds the runs of another plan (BalanceMix w/o Min.: settings was " in said
    assert json.loads((whole / "out" / "bench.json").read_text())["seeds"] == [0]


def test_what_fails_is_reported_and_the_rest_ends(whole, tmp_path, monkeypatch, capsys):
    shutil.copytree(whole / "out", tmp_path / "out")
    (tmp_path / "bad_methods.py").write_text(BAD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    more = (whole / "plan.toml").read_text()
    for name in ("bad_methods:Broken", "bad_methods:Fatal", "asl"):
        label = name.split(":")[-1]
        more += f'[[methods]]\nname = "{name}"\nlabel = "{label}"\nnoises = ["none"]\n'
    (tmp_path / "more.toml").write_text(more)
    assert main(["bench", "more.toml", "--out", "out", *ONE]) == 1
    said = capsys.readouterr().err
    assert "failed: broken-none-0: RuntimeError: the loss is lost" in said
    assert "failed: fatal-none-0: its process ended with exit code 9" in said
    assert "RuntimeError" in (tmp_path / "out" / "failures" / "broken-none-0.txt").read_text()
    before, after = times(whole / "out"), times(tmp_path / "out")
    assert set(after) - set(before) == {"asl-none-0"}
    overview = (tmp_path / "out" / "tables" / "overview-last.md").read_text()
    assert "| Broken | – | – |" in overview


def test_advice_on_a_damaged_run_is_what_a_bench_can_do(whole, tmp_path, capsys):
    shutil.copytree(whole / "out", tmp_path / "out")
    run = tmp_path / "out" / "runs" / "bce-none-0"
    call = ["bench", str(whole / "plan.toml"), "--out", str(tmp_path / "out"), *ONE]
    for content in ("{", "[]", '{"last": 3, "best": {}}'):
        (run / "metrics.json").write_text(content)
        assert main([*call, "--tables"]) == 2
        said = capsys.readouterr().err
        assert said.rstrip().endswith(f"delete {run} and repeat the bench to train it again")
        assert "--force" not in said
    (run / "metrics.json").unlink()
    for name in ("checkpoint.pt", "checkpoint.previous.pt"):
        (run / name).write_text("x")
    assert main(call) == 1
    said = capsys.readouterr().err
    assert f"delete {run} and repeat the bench to train it again" in said
    assert "--force" not in said
    (tmp_path / "out" / "bench.json").write_text("[")
    assert main(["report", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("bench.json") == 1


def test_stopped_in_the_middle_it_ends_with_the_same_tables(whole, tmp_path, monkeypatch, capsys):
    call = ["bench", str(whole / "plan.toml"), "--out", str(tmp_path), *ONE]

    def stop(self, name, metrics):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(BenchProgress, "ended", stop)
        assert main(call) == 130
    assert "the same command continues" in capsys.readouterr().err
    assert len(times(tmp_path)) < 4
    assert main(call) == 0
    assert read_tables(tmp_path) == read_tables(whole / "out")


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_killed_in_the_middle_it_ends_with_the_same_tables(whole, tmp_path, blow):
    call = ["bench", str(whole / "plan.toml"), "--out", str(tmp_path), *ONE]
    root = str(ROOT)
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-m", "balancemix", *call],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        # In the background of a shell it is ignored, and so it would be by the child.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    begun = tmp_path / "runs" / "bce-none-0" / "checkpoint.pt"
    while not begun.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(blow)
    process.communicate()  # the pipe ends with its last writer: a worker that has heard of it
    assert process.returncode == (130 if blow == signal.SIGINT else -blow)
    if len(times(tmp_path)) == 4:
        pytest.skip("on this machine all was over before the blow fell")
    assert main(call) == 0
    assert read_tables(tmp_path) == read_tables(whole / "out")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "name a PLAN"),
        (["quik"], "did you mean 'quick'?"),
        (["paper-tables"], "paper-tables names no data; name it with --data"),
        (["paper-tables", "--data", "no.npz"], "data 'no.npz': not found"),
        (["plan.toml", "--seeds", "a"], "--seeds a: write whole numbers as 0,1,2"),
        (["plan.toml", "--paper", "cooc"], "paper = 'cooc': no such table; did you mean 'coco'?"),
        (["plan.toml", "--jobs", "0"], "--jobs must be at least 1"),
        (
            ["plan.toml", "--only", "bec"],
            "--only bec: no such method in the plan; did you mean 'bce'?",
        ),
    ],
)
def test_wrong_arguments_are_refused_and_leave_nothing(tmp_path, monkeypatch, argv, said, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    assert main(["bench", *argv]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "bench").exists()


def test_the_paper_s_numbers_are_chosen_by_a_flag(whole, tmp_path, monkeypatch):
    monkeypatch.chdir(whole)
    text = PLAN.replace('name = "bce"', 'name = "bce"\nlabel = "BCE Loss"').replace(
        "seeds = [0]", 'seeds = [0]\ntables = ["beside"]'
    )
    (tmp_path / "plan.toml").write_text(text)
    call = ["bench", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "new"), "--tables"]
    runs = tmp_path / "new" / "runs"
    (tmp_path / "new").mkdir()
    remember(tmp_path / "new", read_bench(call[1]))
    shutil.copytree(whole / "out" / "runs" / "bce-none-0", runs / "bce-loss-none-0")
    assert main([*call, "--paper", "deepfashion"]) == 0
    assert "| 75.2 |" in (tmp_path / "new" / "tables" / "beside-all.md").read_text()
