import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from balancemix.cli import main
from balancemix.errors import InputError
from balancemix.labels.table import LabelTable
from balancemix.plan.plan import Plan
from balancemix.run import Run
from balancemix.training.experiment import load_experiment
from balancemix.training.fit import fit
from balancemix.training.models import trained_model
from balancemix.training.opinion import informed
from balancemix.training.predict import predict
from tests.methods.settings import SETTINGS


def plan_for(path: Path, method: str = "balancemix", **train) -> Plan:
    return Plan.from_tree(
        {
            "data": {"path": str(path)},
            "method": {"name": method},
            "noise": "mislabel:0.3",
            "model": {"hidden": 16},
            "train": {"epochs": 5, "batch_size": 16, **train},
        }
    )


def train(path: Path, out: Path, plan: Plan, **how):
    experiment = load_experiment(plan)
    run = Run.create(out, plan, **how)
    experiment.record_data(run)
    plan = informed(plan, experiment.train, run)
    model, _, metrics = fit(experiment.make_model, experiment.train, experiment.test, plan, run)
    return run, model, metrics


def same_files(one: Path, other: Path) -> None:
    for name in ("label_table.npz", "model.safetensors", "truth.npz"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def without_time(run: Run) -> list[dict]:
    return [{k: v for k, v in line.items() if k != "seconds"} for line in run.log]


@pytest.mark.parametrize("method", SETTINGS)
def test_a_run_leaves_its_files_and_its_model_can_be_loaded(tiny, tmp_path, method):
    run, model, metrics = train(tiny, tmp_path / "run", plan_for(tiny, method))
    assert {"last", "best", "selection", "seconds_per_epoch"} <= metrics.keys()
    assert metrics == run.metrics
    assert [line["epoch"] for line in run.log] == [1, 2, 3, 4, 5]
    assert metrics["best"]["mAP"] == max(line["mAP"] for line in run.log)
    test = load_experiment(run.plan).test
    again = predict(trained_model(run, test), test.plain)
    assert torch.equal(again, predict(model, test.plain))
    assert not list((tmp_path / "run").glob(".*.draft"))


def test_enough_training_fits_a_few_clean_rows(tiny, tmp_path):
    plan = Plan.from_tree({**plan_for(tiny, "bce", epochs=40, lr=0.05).tree(), "noise": "none"})
    experiment = load_experiment(plan)
    model, _, _ = fit(experiment.make_model, experiment.train, experiment.train, plan)
    guess = predict(model, experiment.train.plain) > 0.5
    assert (guess == (experiment.train.given > 0)).float().mean() > 0.99


@pytest.mark.parametrize("method", SETTINGS)
@pytest.mark.parametrize("extra", [{}, {"optimizer": "adamw", "ema": 0.9, "accumulate": 2}])
def test_a_resumed_run_ends_with_the_same_bits(tiny, tmp_path, method, extra, monkeypatch):
    plan = plan_for(tiny, method, **extra)
    whole, _, _ = train(tiny, tmp_path / "whole", plan)

    saved, stop = Run.save_checkpoint, 3

    def save_then_die(run, state):
        saved(run, state)
        if state["method"]["epoch"] == stop:
            raise KeyboardInterrupt

    monkeypatch.setattr(Run, "save_checkpoint", save_then_die)
    with pytest.raises(KeyboardInterrupt):
        train(tiny, tmp_path / "cut", plan)
    monkeypatch.setattr(Run, "save_checkpoint", saved)
    cut, _, _ = train(tiny, tmp_path / "cut", plan, resume=True)
    same_files(whole.path, cut.path)
    assert without_time(whole) == without_time(cut)


def test_a_run_whose_last_files_are_missing_is_completed(tiny, tmp_path):
    plan = plan_for(tiny)
    run, _, metrics = train(tiny, tmp_path / "run", plan)
    before = {n: (run.path / n).read_bytes() for n in ("label_table.npz", "model.safetensors")}
    for name in (*before, "metrics.json"):
        (run.path / name).unlink()
    run, _, again = train(tiny, tmp_path / "run", plan, resume=True)
    assert {name: (run.path / name).read_bytes() for name in before} == before
    assert again == metrics


def test_a_run_killed_at_any_moment_ends_with_the_same_bits(tiny, tmp_path):
    def command(out: Path) -> list[str]:
        call = [sys.executable, "-m", "balancemix", "train", str(tiny), "--out", str(out)]
        call += ["--noise", "mislabel:0.3", "--epochs", "40", "--batch-size", "8"]
        return [*call, "--set", "model.hidden=16"]

    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command(tmp_path / "whole"), env=environment, check=True, capture_output=True)
    cut = tmp_path / "cut"
    victim = subprocess.Popen(
        command(cut), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not (cut / "checkpoint.pt").exists() and victim.poll() is None:
        time.sleep(0.01)
    victim.send_signal(signal.SIGKILL)
    if victim.wait() != -signal.SIGKILL:
        pytest.skip("on this machine all forty epochs were over before the blow fell")
    # Resuming needs no more than the directory.
    subprocess.run(
        [sys.executable, "-m", "balancemix", "train", "--resume", "--out", str(cut)],
        env=environment,
        check=True,
        capture_output=True,
    )
    same_files(tmp_path / "whole", cut)
    assert without_time(Run(tmp_path / "whole")) == without_time(Run(cut))


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(tiny, tmp_path):
    runs = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        plan = Plan.from_tree({**plan_for(tiny).tree(), "seed": seed})
        runs.append(train(tiny, tmp_path / name, plan)[0])
    same_files(runs[0].path, runs[1].path)
    weights = [run.load_model() for run in runs]
    assert not all(torch.equal(weights[0][key], weights[2][key]) for key in weights[0])


def test_truth_never_reaches_a_method(tiny, tmp_path):
    """Two truths behind the same noisy labels: what is trained must not differ."""
    plan = plan_for(tiny)
    experiment = load_experiment(plan)
    given = experiment.train.given
    weights = []
    for truth in (experiment.train.truth, 1 - given):
        rows = experiment.train.with_given(given, truth)
        model, _, _ = fit(experiment.make_model, rows, experiment.test, plan)
        weights.append(model.state_dict())
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


def test_a_directory_with_a_run_is_kept_unless_asked(tiny, tmp_path):
    plan = plan_for(tiny, "bce")
    train(tiny, tmp_path / "run", plan)
    with pytest.raises(
        InputError, match="already holds a run; pass --resume to continue it, or --force"
    ):
        Run.create(tmp_path / "run", plan)
    other = plan_for(tiny, "bce", lr=0.5)
    with pytest.raises(InputError, match=r"train.lr was 0.01, is 0.5"):
        Run.create(tmp_path / "run", other, resume=True)
    run = Run.create(tmp_path / "run", other, force=True)
    assert sorted(path.name for path in run.path.iterdir()) == ["checksums.json", "plan.json"]


def test_clipping_keeps_steps_small(tiny):
    moved = []
    for clip in (1e-4, 0.0):
        plan = plan_for(tiny, "bce", epochs=1, clip=clip)
        experiment = load_experiment(plan)
        torch.manual_seed(plan.seed)
        start = experiment.make_model().state_dict()["head.0.weight"]
        model, _, _ = fit(experiment.make_model, experiment.train, experiment.test, plan)
        moved.append((model.state_dict()["head.0.weight"] - start).norm())
    assert moved[0] < 0.01 * moved[1]


def test_accumulated_batches_step_like_one_large_batch(tiny):
    weights = []
    for size, accumulate in ((90, 1), (15, 6)):
        plan = plan_for(tiny, "bce", epochs=2, batch_size=size, accumulate=accumulate)
        plan.data.feature_dropout = plan.data.feature_noise = 0.0
        experiment = load_experiment(plan)
        model, _, _ = fit(experiment.make_model, experiment.train, experiment.test, plan)
        weights.append(model.state_dict()["head.0.weight"])
    assert torch.allclose(weights[0], weights[1], atol=1e-6)


def test_accumulated_batches_anneal_to_the_last_step(tiny, monkeypatch):
    """An epoch's last batches step as well, be they few: they are counted."""
    rates, step = [], torch.optim.SGD.step

    def remember(self, *arguments):
        rates.append(self.param_groups[0]["lr"])
        return step(self, *arguments)

    monkeypatch.setattr(torch.optim.SGD, "step", remember)
    plan = plan_for(tiny, "bce", epochs=5, batch_size=9, accumulate=4)  # steps of 4, 4 and 2
    experiment = load_experiment(plan)
    fit(experiment.make_model, experiment.train, experiment.test, plan)
    assert len(rates) == 15
    assert rates[-1] > 0
    assert rates == sorted(rates, reverse=True)


def test_without_truth_no_epoch_makes_matrices_of_the_table(tiny, monkeypatch):
    plan = plan_for(tiny, epochs=3)
    experiment = load_experiment(plan)
    rows = experiment.train.with_given(experiment.train.given, None)
    monkeypatch.setattr(LabelTable, "whole", lambda self: 1 / 0)
    fit(experiment.make_model, rows, experiment.test, plan)


@pytest.mark.bf16
def test_bf16_trains(tiny):
    plan = plan_for(tiny, epochs=3, precision="bf16", device="cpu")
    experiment = load_experiment(plan)
    model, _, metrics = fit(experiment.make_model, experiment.train, experiment.test, plan)
    assert metrics["last"]["mAP"] > 0
    assert all(weight.dtype == torch.float32 for weight in model.parameters())


def test_trackers_are_fed(tiny, tmp_path):
    plan = plan_for(tiny, epochs=3, track="tensorboard")
    run, _, _ = train(tiny, tmp_path / "run", plan)
    assert list((run.path / "track").rglob("events.out.tfevents.*"))


def test_re_labelling_by_epoch_learns_as_online_does(tiny):
    scores = []
    for relabel in ("online", "epoch"):
        tree = plan_for(tiny, epochs=15, lr=0.05).tree()
        tree["method"]["relabel"] = relabel
        plan = Plan.from_tree(tree)
        experiment = load_experiment(plan)
        scores.append(fit(experiment.make_model, experiment.train, experiment.test, plan).metrics)
    assert abs(scores[0]["last"]["mAP"] - scores[1]["last"]["mAP"]) < 10
    assert all("relabel_proportion" in score["selection"] for score in scores)


def test_a_loss_that_is_not_finite_is_one_clear_line(tiny):
    plan = plan_for(tiny, "bce", lr=1e30)
    experiment = load_experiment(plan)
    with pytest.raises(InputError, match=r"loss of epoch \d is not finite: lower --lr"):
        fit(experiment.make_model, experiment.train, experiment.test, plan)


def test_a_checkpoint_of_another_version_is_refused_in_one_line(tiny, tmp_path, capsys):
    call = ["train", str(tiny), "--epochs", "2", "--batch-size", "16", "--out", str(tmp_path / "a")]
    assert main([*call, "--set", "model.hidden=8"]) == 0
    run = Run(tmp_path / "a")
    (run.path / "metrics.json").unlink()
    state = torch.load(run.path / "checkpoint.pt", weights_only=True)
    state["method"]["table"] = {"given": torch.zeros(3, 2)}
    run.save_checkpoint(state)
    capsys.readouterr()
    assert main(["train", "--resume", "--out", str(run.path)]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    refusal = "checkpoint.pt: is of another version of balancemix; start over with --force"
    assert said.endswith(refusal)


def test_a_checkpoint_that_holds_no_state_is_refused_in_one_line(tiny, tmp_path, capsys):
    run, _, _ = train(tiny, tmp_path / "run", plan_for(tiny, "bce"))
    (run.path / "metrics.json").unlink()
    (run.path / "checksums.json").unlink()
    torch.save("text", run.path / "checkpoint.pt")
    capsys.readouterr()
    assert main(["train", "--resume", "--out", str(run.path)]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert "checkpoint.pt: cannot be read; " in said


def test_a_run_from_before_a_setting_was_added_can_be_resumed(tiny, tmp_path):
    plan = plan_for(tiny, "bce")
    run, _, _ = train(tiny, tmp_path / "run", plan)
    tree = run.read_json("plan")
    del tree["data"]["holdout"]
    run.write_json("plan", tree)
    Run.check(run.path, plan, resume=True)


def test_starting_over_leaves_nothing_of_the_old_run_behind(tiny, tmp_path):
    run = str(tmp_path / "run")
    call = ["train", str(tiny), "--epochs", "2", "--set", "model.hidden=8", "--out", run]
    assert main([*call, "--noise", "mislabel:0.3"]) == 0
    for command in ("audit", "export", "report"):
        assert main([command, run]) == 0
    mine = tmp_path / "run" / "notes.txt"
    mine.write_text("not the run's")
    made = {"labels.corrected.npz", "labels.corrected.npz.changes.csv"}
    assert {"findings.csv", *made, "report.html"} <= set(os.listdir(run))
    assert main([*call, "--force"]) == 0
    left = {"findings.csv", *made, "report.html", "noise.json", "truth.npz"}
    assert not left & set(os.listdir(run))
    assert mine.exists()
