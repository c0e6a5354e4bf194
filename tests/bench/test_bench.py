"""Bench: plans, jobs, and runs side by side that survive failures and interruptions."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from balancemix.bench.paper import paper_scores
from balancemix.bench.plan import BenchPlan, distinct, jobs, read_bench
from balancemix.bench.progress import BenchProgress
from balancemix.bench.runner import grown, remember
from balancemix.cli import main
from balancemix.errors import InputError
from balancemix.methods import METHODS
from balancemix.plan.settings import read_into
from balancemix.plan.shipped import bench_plans, summary
from tests.conftest import ROOT, tiny_arrays

PLAN = """
data = ["tiny.npz"]
noises = ["none", "mislabel:0.3"]
seeds = [0]
[settings.train]
epochs = 4
batch_size = 16
[settings.model]
hidden = 8
[[methods]]
name = "bce"
category = "Default"
[[methods]]
name = "balancemix"
label = "BalanceMix w/o Min."
category = "Proposed"
settings = { minority = false, warmup = 1 }
"""
ONE = ["--jobs", "1"]
PLANS = sorted((ROOT / "benchmarks" / "plans").glob("*.toml"))
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


def small(**changes) -> BenchPlan:
    tree = {"data": ["a.npz"], "methods": [{"name": "bce"}, {"name": "mixup", "label": "Mix up"}]}
    return read_into(BenchPlan, {**tree, **changes})


@pytest.mark.parametrize(
    ("name", "listed", "trained"),
    [
        ("ablation", 84, 84),
        ("paper-tables", 288, 288),
        ("quick", 3, 3),
        ("search", 48, 45),  # α = 4 is the run of ε = 0.975
        ("selection", 6, 6),
    ],
)
def test_a_shipped_plan_is_valid_and_says_what_it_costs(name, listed, trained):
    plan = read_bench(name)
    plan.data = plan.data or ["features.npz"]
    all_ = jobs(plan)
    assert len(all_) == listed
    assert len(distinct(all_)) == trained
    head = "\n".join(summary(bench_plans()[name]))
    assert f"balancemix bench {name}" in head
    assert f"Cost: {trained} runs" in head
    assert all(job.plan.data.workers == 0 for job in all_)
    if plan.paper:
        labels = {variant.label for variant in plan.methods}
        assert labels & set(paper_scores(plan.paper))


def test_the_paper_s_tables_have_every_method_and_their_rows_have_numbers():
    plan = read_bench("paper-tables")
    assert sorted(variant.name for variant in plan.methods) == sorted(METHODS)
    assert set(paper_scores("coco")) < {variant.label for variant in plan.methods}
    assert set(paper_scores("ablation")) == {v.label for v in read_bench("ablation").methods}
    assert set(paper_scores("search")) == {v.label for v in read_bench("search").methods}


def test_the_search_never_sees_the_test_rows():
    plan = read_bench("search")
    plan.data = ["features.npz"]
    assert {job.plan.data.score for job in jobs(plan)} == {"held-out"}


def test_a_plan_of_before_is_understood(tmp_path):
    old = PLAN.replace(
        "seeds", 'beside = { "none" = "single" }\ntables = ["paper", "beside"]\nseeds'
    )
    (tmp_path / "old.toml").write_text(old)
    plan = read_bench(str(tmp_path / "old.toml"))
    assert plan.versus_paper == {"none": "single"}
    assert plan.tables == ["paper", "versus_paper"]


def test_a_bench_of_before_a_setting_was_renamed_is_continued(tmp_path):
    plan = replace(read_bench("ablation"), data=["tiny.npz"])
    old = json.loads(json.dumps(plan.tree()))
    (clean,) = (v for v in old["methods"] if v["label"] == "+ Clean Labels")
    clean["settings"] = {"relabel": False, "mode": "epoch", "reweight": False}
    (tmp_path / "bench.json").write_text(json.dumps(old))
    remember(tmp_path, plan)
    assert json.loads((tmp_path / "bench.json").read_text()) == plan.tree()
    clean["settings"] = {"mode": "paper", "reweight": False}
    (tmp_path / "bench.json").write_text(json.dumps(old))
    with pytest.raises(InputError, match="Clean Labels: settings was"):
        remember(tmp_path, plan)


def test_jobs_are_a_product_with_names_that_a_growing_plan_keeps():
    plan = small(noises=["none", "flip:0.2"], seeds=[0, 1])
    names = [job.name for job in jobs(plan)]
    assert names[:4] == ["bce-none-0", "mix-up-none-0", "bce-flip-0.2-0", "mix-up-flip-0.2-0"]
    assert len(names) == 8
    more = small(noises=["none", "flip:0.2"], seeds=[0, 1], data=["a.npz", "sets/B.npz"])
    assert set(names) < {job.name for job in jobs(more)}
    assert "bce-none-1-b" in [job.name for job in jobs(more)]


def test_settings_reach_their_runs_and_no_others():
    plan = small(
        noises=["none", "single"],
        settings={"train": {"epochs": 7}, "model": {"hidden": 4}},
        methods=[
            {"name": "bce"},
            {"name": "mixup", "settings": {"alpha": 2}, "set": ["train.lr=0.5"]},
            {"name": "balancemix", "on": {"single": {"epsilon": 0.55}}, "noises": ["single"]},
        ],
    )
    found = {job.name: job.plan for job in jobs(plan)}
    assert {p.train.epochs for p in found.values()} == {7}
    assert (found["mixup-none-0"].train.lr, found["bce-none-0"].train.lr) == (0.5, 0.01)
    assert found["mixup-none-0"].method.alpha == 2
    assert vars(found["balancemix-single-0"].method)["epsilon"] == 0.55
    assert "balancemix-none-0" not in found
    assert [job.name for job in jobs(plan, ["mixup"])] == ["mixup-none-0", "mixup-single-0"]


def test_a_row_s_set_reaches_the_method_and_gives_way_to_its_settings_under_a_noise():
    row = {"name": "balancemix", "settings": {"alpha": 3, "power": 2}}
    row |= {"set": ["method.alpha=0.5"], "on": {"single": {"alpha": 8}}}
    listed = jobs(small(noises=["none", "single"], methods=[row]))
    methods = [job.plan.tree()["method"] for job in listed]
    assert [(method["alpha"], method["power"]) for method in methods] == [(0.5, 2), (8, 2)]


@pytest.mark.parametrize(
    "assignment", ["noise=flip:0.2", "seed=3", "data.path=b.npz", "method.name=asl"]
)
def test_a_row_cannot_set_what_the_plan_s_lists_fill_in(assignment):
    name = assignment.split("=")[0]
    with pytest.raises(InputError, match=f"bce: set {name} is filled in for each run"):
        jobs(small(methods=[{"name": "bce", "set": [assignment]}]))


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


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nosies": []}, "unknown setting nosies; did you mean 'noises'?"),
        ({"noises": ["flop:0.1"]}, "unknown kind 'flop'; did you mean 'flip'?"),
        ({"noises": "none"}, "noises must be a list, it is 'none'"),
        ({"seeds": ["0"]}, r"seeds\[0\] must be a whole number"),
        ({"seeds": [1, 1]}, "seeds must differ: 1 is listed twice"),
        ({"data": ["a/x.npz", "b/x.npz"]}, "names of data must differ: x is listed twice"),
        ({"methods": []}, r"no \[\[methods\]\] to compare"),
        ({"methods": [{"nam": "bce"}]}, r"methods\[0\].nam; did you mean 'name'"),
        ({"methods": [{"label": "BCE"}]}, r"methods\[0\]: name the method"),
        ({"methods": [{"name": "bce"}, {"name": "bce"}]}, "bce is listed twice"),
        ({"methods": [{"name": "bce", "noises": ["single"]}]}, "'single' is not planned"),
        ({"methods": [{"name": "bce", "over": "BCE"}]}, "over = 'BCE'; "),
        ({"settings": {"data": 3}}, "settings.data is a section, not the value 3"),
        ({"settings": {"seed": 3}}, "settings.seed is filled in for each run"),
        ({"tables": ["papers"]}, "did you mean 'paper'?"),
    ],
)
def test_a_wrong_plan_is_refused_with_what_is_wrong(changes, said):
    with pytest.raises(InputError, match=said):
        small(**changes)


def test_a_wrong_setting_of_a_row_names_the_row():
    plan = small(methods=[{"name": "mixup", "label": "Mine", "settings": {"alhpa": 2}}])
    with pytest.raises(InputError, match=r"Mine: unknown setting method.alhpa; did you mean"):
        jobs(plan)


def test_a_plan_may_grow_but_not_change():
    old = small(seeds=[0])
    assert grown(old.tree(), old.tree()) == ""
    assert grown(old.tree(), small(seeds=[0, 1], noises=["none", "single"]).tree()) == ""
    assert grown(old.tree(), small(data=["b.npz"]).tree()) == "data: a.npz is gone"
    assert "must stay the first" in grown(old.tree(), small(data=["b.npz", "a.npz"]).tree())
    assert "settings were {}" in grown(old.tree(), small(settings={"train": {"lr": 1}}).tree())
    changed = small(methods=[{"name": "bce"}, {"name": "asl", "label": "Mix up"}]).tree()
    assert grown(old.tree(), changed) == "Mix up: name was mixup, is asl"


def read_tables(out: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((out / "tables").iterdir())}


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
    shutil.copytree(whole / "out" / "runs" / "bce-none-0", runs / "bce-loss-none-0")
    assert main([*call, "--paper", "deepfashion"]) == 0
    assert "| 75.2 |" in (tmp_path / "new" / "tables" / "beside-all.md").read_text()


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.stem)
def test_the_plans_of_the_results_are_valid(plan):
    """A plan that is named in benchmarks/results.py must not fail after hours of others."""
    found = read_bench(str(plan))
    assert jobs(found if found.data else replace(found, data=["digits"]))


def test_the_plans_are_listed(capsys):
    assert main(["bench", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{name}: " in listed for name in bench_plans())
