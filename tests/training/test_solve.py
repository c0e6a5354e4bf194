"""Runs of methods that are solved: the same files and commands as those that are trained."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from balancemix.cli import main
from balancemix.data.features import FeatureRows
from balancemix.errors import InputError
from balancemix.judge import factor, ridge
from balancemix.judge.ridge import Ridge
from balancemix.models.kernel import KernelMachine, MeanOfLogOdds
from balancemix.plan.plan import Plan
from balancemix.run import Run
from balancemix.training.experiment import load_experiment
from balancemix.training.models import trained_model
from balancemix.training.predict import predict
from balancemix.training.solve import solve
from tests.conftest import tiny_arrays

SOLVED = {
    "ridge": ["--method", "ridge"],
    "kernel-ridge": ["--method", "kernel-ridge"],
    "second opinion": ["--method", "second-opinion", "--set", "method.form=closed"],
}
every = pytest.mark.parametrize("how", SOLVED.values(), ids=list(SOLVED))
FILES = ("label_table.npz", "model.safetensors", "per_class.json", "truth.npz")


def train(path: Path, out: Path, how: list[str], *more: str) -> Run:
    call = ["train", str(path), *how, "--noise", "mislabel:0.3", "--out", str(out), *more]
    assert main(call) == 0
    return Run.open(out)


@every
def test_a_run_has_one_line_its_penalty_and_its_files(tiny, tmp_path, how):
    run = train(tiny, tmp_path / "run", how)
    (line,) = run.log
    assert line["epoch"] == 1
    assert line["seconds"] > 0
    if "second-opinion" in how:
        assert line["penalty"] == run.plan.tree()["method"]["penalty"]
    else:
        errors = {float(penalty): error for penalty, error in line["leave_one_out"].items()}
        assert line["penalty"] == min(errors, key=errors.__getitem__)
    assert run.metrics["last"]["mAP"] == line["mAP"]
    assert run.metrics["epochs"] == 1
    assert all(run.has(name) for name in ("table", "model", "per_class", "truth", "data"))
    assert not run.has("checkpoint")


@every
def test_the_stored_confidence_is_that_of_the_other_rows(tiny, tmp_path, how):
    run = train(tiny, tmp_path / "run", how)
    experiment = load_experiment(run.plan)
    assert isinstance(experiment.train, FeatureRows)
    rows = Ridge.of(experiment.train.features, kernel="linear" if "ridge" in how else "rbf")
    (line,) = run.log
    want = rows.leave_one_out(run.table.target, line["penalty"]).clamp(0, 1)
    torch.testing.assert_close(run.confidence, want)
    inside = predict(trained_model(run, experiment.train), experiment.train.plain)
    assert not torch.allclose(run.confidence, inside, atol=1e-3)


@every
def test_the_stored_model_predicts_and_evaluates_as_it_did(tiny, tmp_path, how, capsys):
    run = train(tiny, tmp_path / "run", how)
    capsys.readouterr()
    assert main(["evaluate", str(run.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mAP"] == run.metrics["last"]["mAP"]
    out = tmp_path / "new.npz"
    assert main(["predict", str(run.path), str(tiny), "--out", str(out)]) == 0
    features = torch.from_numpy(tiny_arrays()["features"])
    machine = KernelMachine.empty()
    machine.load_state_dict(run.load_model())
    want = machine(features).sigmoid().numpy()
    np.testing.assert_allclose(np.load(out)["confidence"], want, atol=1e-6)


@every
def test_audit_export_and_report_read_the_run(tiny, tmp_path, how, capsys):
    run = train(tiny, tmp_path / "run", how)
    for command in ("audit", "export", "report"):
        assert main([command, str(run.path)]) == 0
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert "<h2>Penalty</h2>" in page
    assert ("Squared error of each given label by the other rows" in page) == ("ridge" in how[1])
    assert "<h2>Learning</h2>" not in page
    assert "solved in closed form" in page
    assert "epochs" not in page.partition("<h2>Plan</h2>")[0].partition("<body")[2]


@every
def test_it_is_solved_again_where_files_are_missing(tiny, tmp_path, how):
    run = train(tiny, tmp_path / "run", how)
    before = {name: (run.path / name).read_bytes() for name in FILES}
    for name in ("model.safetensors", "metrics.json"):
        (run.path / name).unlink()
    assert main(["train", "--resume", "--out", str(run.path)]) == 0
    assert {name: (run.path / name).read_bytes() for name in FILES} == before
    assert run.has("metrics")


@every
@pytest.mark.parametrize("where", ["flag", "set", "plan"])
def test_epochs_are_refused(tiny, tmp_path, how, where, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text("[train]\nepochs = 5\n")
    more = {
        "flag": ["--epochs", "5"],
        "set": ["--set", "train.epochs=5"],
        "plan": ["--plan", str(plan)],
    }[where]
    assert main(["train", str(tiny), *how, *more, "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == (
        f"balancemix: {how[1]} is solved in closed form, without epochs: leave --epochs out\n"
    )
    assert not (tmp_path / "run").exists()


def test_what_is_printed_has_no_epochs(tiny, tmp_path, capsys):
    train(tiny, tmp_path / "run", SOLVED["kernel-ridge"])
    printed = capsys.readouterr().out
    assert "penalty" in printed
    assert "solved in" in printed
    assert "epoch" not in printed


def test_settings_that_a_bench_shares_are_not_refused(tiny, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[[methods]]\nname = "bce"\n[[methods]]\nname = "kernel-ridge"\n'
        "[settings.train]\nepochs = 2\nbatch_size = 16\n[settings.model]\nhidden = 8\n"
    )
    out = tmp_path / "bench"
    assert main(["bench", str(plan), "--data", str(tiny), "--out", str(out)]) == 0
    assert len(Run.open(out / "runs" / "kernel-ridge-none-0").log) == 1
    assert len(Run.open(out / "runs" / "bce-none-0").log) == 2


def test_a_dry_run_of_what_is_solved_is_refused(capsys):
    assert main(["train", "--dry-run", *SOLVED["ridge"]]) == 2
    assert "this method is solved" in capsys.readouterr().err


def test_no_run_is_needed(tiny):
    plan = Plan.from_tree({"data": {"path": str(tiny)}, "method": {"name": "kernel-ridge"}})
    experiment = load_experiment(plan)
    trained = solve(experiment.train, experiment.test, plan)
    assert isinstance(trained.model, KernelMachine)
    assert trained.metrics["last"] == experiment.fit().metrics["last"]


def test_a_mean_is_recognised_by_its_weights(tiny, tmp_path):
    how = ["--method", "second-opinion", "--epochs", "2", "--set", "model.hidden=8"]
    run = train(tiny, tmp_path / "run", how)
    test = load_experiment(run.plan).test
    model = trained_model(run, test)
    assert isinstance(model, MeanOfLogOdds)
    assert main(["evaluate", str(run.path)]) == 0


@every
def test_rows_of_other_features_are_refused_in_one_line(tiny, tmp_path, how, capsys, photos):
    run = train(tiny, tmp_path / "run", how)
    other = tmp_path / "other.npz"
    arrays = tiny_arrays(width=7)
    np.savez(other, **arrays)
    for data in (other, photos):
        capsys.readouterr()
        assert main(["predict", str(run.path), str(data), "--out", str(tmp_path / "p.csv")]) == 2
        error = capsys.readouterr().err
        assert "its model does not fit these rows" in error
        assert error.count("\n") == 1


@pytest.mark.parametrize("kind", ["kernel-ridge", "second opinion"])
def test_images_are_read_by_the_frozen_backbone(photos, tmp_path, capsys, kind, monkeypatch):
    factored = []

    def make_basis(*args, **options):
        factored.append(args)
        return factor.make_basis(*args, **options)

    monkeypatch.setattr(ridge, "make_basis", make_basis)
    how = [*SOLVED[kind], "--backbone", "mobilenetv3_small_050", "--no-pretrained"]
    how += ["--image-size", "32", "--workers", "0", "--device", "cpu"]
    run = train(photos, tmp_path / "run", how)
    assert len(factored) == 1
    assert "head.landmarks" in run.load_model()
    capsys.readouterr()
    assert main(["evaluate", str(run.path), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["mAP"] == pytest.approx(run.metrics["last"]["mAP"])
    out = tmp_path / "new.csv"
    assert main(["predict", str(run.path), str(photos), "--out", str(out)]) == 0
    with pytest.raises(InputError, match="does not fit these rows"):
        trained_model(run, load_experiment(Plan()).test)
