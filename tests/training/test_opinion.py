"""The judge before a training: it sees training rows only, is asked once, and is remembered."""

from pathlib import Path

import numpy as np
import pytest
import torch

from balancemix.cli import main
from balancemix.errors import InputError
from balancemix.judge import factor
from balancemix.judge import opinion as judging
from balancemix.judge.opinion import Opinion
from balancemix.judge.ridge import Ridge
from balancemix.plan.plan import Plan
from balancemix.progress import silence
from balancemix.run import Run
from balancemix.training import choose
from balancemix.training import opinion as asking
from balancemix.training.experiment import load_experiment, train_plan
from balancemix.training.opinion import informed
from tests.conftest import tiny_arrays
from tests.methods.settings import draw_opinion

FEW = {name: array for name, array in tiny_arrays().items() if name != "classes"}
FEW["split"] = np.array(["train"] * 114 + ["test"] * 6)
TRAIN = ["--method", "second-opinion", "--epochs", "3", "--batch-size", "16"]
TRAIN += ["--noise", "mislabel:0.3", "--set", "model.hidden=16", "--device", "cpu"]


def write(folder: Path, **changes: np.ndarray) -> Path:
    path = folder / "tiny.npz"
    np.savez(path, **{**tiny_arrays(), **changes})
    return path


def plan_for(path: Path, method: dict | None = None) -> Plan:
    tree = {"data": {"path": str(path)}, "method": {"name": "second-opinion", **(method or {})}}
    return Plan.from_tree({**tree, "model": {"hidden": 16}, "train": {"epochs": 3}})


@pytest.fixture
def asked(monkeypatch):
    """Count how often the judge is asked."""
    calls = []

    def judge(*args, **options):
        calls.append(args)
        return judging.judge(*args, **options)

    monkeypatch.setattr(asking, "judge", judge)
    return calls


@pytest.mark.parametrize(
    "method", [{}, {"name": "balancemix", "start_from": "judge"}, {"form": "trained"}]
)
def test_no_training_target_depends_on_the_test_rows(tmp_path, method):
    arrays = tiny_arrays()
    test = arrays["split"] == "test"
    labels, features = arrays["labels"].copy(), arrays["features"].copy()
    labels[test] = 1 - labels[test]
    features[test] = 100 * features[test] + 7
    tables = []
    for changes in ({}, {"labels": labels}, {"features": features}):
        experiment = load_experiment(plan_for(write(tmp_path, **changes), method))
        plan = informed(experiment.plan, experiment.train)
        started = plan.method.start(experiment.train.given, 3)
        tables.append((started.table.whole(), started.odds))
    for table, odds in tables[1:]:
        for one, other in zip(table, tables[0][0], strict=True):
            assert one.equal(other)
        assert odds is None or odds.equal(tables[0][1])
    judged = tables[0][0]
    assert not judged.target.equal(judged.given.float()) or judged.clean.lt(1).any()


@pytest.mark.parametrize("method", ["second-opinion", "auto"])
def test_the_judge_knows_the_labels_before_people_decided(tmp_path, monkeypatch, method):
    path, told = write(tmp_path), []

    def judge(given, *others, before, verified, **options):
        told.append((given, before, verified))
        return judging.judge(given, *others, before=before, verified=verified, **options)

    monkeypatch.setattr(asking, "judge", judge)
    monkeypatch.setattr(choose, "judge", judge)
    file = load_experiment(plan_for(path)).train
    beside = path.with_name(f"{path.name}.balancemix")
    beside.mkdir()
    verdict = "absent" if file.given[0, 0] else "present"
    (beside / "decisions.csv").write_text(f"image,class,verdict\n{file.names[0]},c0,{verdict}\n")
    call = ["--method", method, *TRAIN[2:6], "--set", "model.hidden=16", "--device", "cpu"]
    assert main(["train", str(path), *call, "--out", str(tmp_path / "run")]) == 0
    given, before, verified = told[-1]
    assert len(told) == (2 if method == "auto" else 1)
    assert torch.equal(before, file.given)
    assert torch.equal((given != before).nonzero(), verified.nonzero())
    assert int(verified.sum()) == 1


def test_a_run_keeps_the_opinion_by_which_it_was_trained(tmp_path, asked):
    path, out = write(tmp_path), tmp_path / "run"
    assert main(["train", str(path), *TRAIN, "--out", str(out)]) == 0
    assert len(asked) == 1
    run = Run.open(out)
    stored = run.opinion
    assert stored is not None
    target = stored.targets(run.table.given).half().float()
    assert run.table.target.equal(target)
    assert main(["train", "--resume", "--out", str(out)]) == 0
    assert len(asked) == 1


JUDGED = ["--method", "balancemix", "--set", "method.start_from=judge"]


@pytest.mark.parametrize("more", [[], JUDGED, ["--set", "method.form=trained"]])
@pytest.mark.parametrize("harm", ["none", "delete", "damage", "empty", "of other rows"])
def test_a_resumed_run_ends_with_the_same_bits(tmp_path, asked, monkeypatch, capsys, harm, more):
    path, how = write(tmp_path), [*TRAIN, *more]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main(["train", str(path), *how, "--out", str(whole)]) == 0
    saved = Run.save_epoch

    def save_then_stop(self, *state):
        saved(self, *state)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Run, "save_epoch", save_then_stop)
        assert main(["train", str(path), *how, "--out", str(cut)]) == 130
    file = cut / "judge.npz"
    if harm == "delete":
        file.unlink()
    elif harm == "damage":
        file.write_bytes(file.read_bytes()[:-7] + b"nothing")
    elif harm == "empty":
        Run(cut).write_arrays("judge", {"score": np.zeros((2, 2))})
    elif harm == "of other rows":
        Run(cut).write_arrays("judge", draw_opinion(torch.zeros(6, 4)).arrays())
    capsys.readouterr()
    assert main(["train", "--resume", "--out", str(cut)]) == 0
    assert len(asked) == (2 if harm == "none" else 3)
    assert ("judge.npz: is damaged" in capsys.readouterr().err) == (harm not in ("none", "delete"))
    for name in ("label_table.npz", "model.safetensors", "judge.npz"):
        assert (whole / name).read_bytes() == (cut / name).read_bytes(), name


DAMAGE = {
    "missing": lambda array: None,
    "text": lambda array: np.full(array.shape, "x"),
    "complex": lambda array: np.full(array.shape, 1j),
    "big-endian": lambda array: np.asarray(array).astype(">f4"),
    "long": lambda array: np.asarray(array).astype(np.longdouble),
    "a row short": lambda array: array[:-1] if array.ndim else np.zeros(2),
    "nan": lambda array: np.full(array.shape, np.nan, np.float16),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["score", "confidence", "posterior", "rho0", "judged", "penalty"])
def test_an_opinion_of_other_arrays_is_refused(name, damage):
    arrays = draw_opinion(torch.zeros(6, 4)).arrays()
    assert Opinion.from_arrays(arrays).arrays().keys() == arrays.keys()
    changed = DAMAGE[damage](arrays.pop(name))
    arrays |= {} if changed is None else {name: changed}
    if damage == "nan" and name not in ("confidence", "posterior"):
        Opinion.from_arrays(arrays)
        return
    with pytest.raises(InputError, match=r"^its? "):
        Opinion.from_arrays(arrays)


def test_a_judge_that_was_asked_is_not_asked_again_after_a_stop(tmp_path, asked, monkeypatch):
    path, out = write(tmp_path), tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr("balancemix.training.experiment.fit", stop)
        assert main(["train", str(path), *TRAIN, "--out", str(out)]) == 130
    assert main(["train", "--resume", "--out", str(out)]) == 0
    assert len(asked) == 1


@pytest.mark.parametrize("again", ["--resume", "--force"])
def test_a_long_judgement_goes_on_from_its_stages(tmp_path, monkeypatch, again):
    monkeypatch.setattr(factor, "LONG", 0)
    monkeypatch.setattr(factor, "EXACT", 50)
    monkeypatch.setattr(factor, "_LANDMARKS", (30, 40))
    path, whole, cut = write(tmp_path), tmp_path / "whole", tmp_path / "cut"
    assert main(["train", str(path), *TRAIN, "--out", str(whole)]) == 0
    with monkeypatch.context() as patch:
        patch.setattr(judging, "fit_noise_model", stop)
        assert main(["train", str(path), *TRAIN, "--out", str(cut)]) == 130
    assert {path.name for path in (cut / ".judge").iterdir()} == {"basis.stage", "scores.stage"}
    with monkeypatch.context() as patch:
        if again == "--resume":  # starting over, on the other hand, forgets them
            patch.setattr(Ridge, "leave_one_out", stop)
        assert main(["train", str(path), *TRAIN, "--out", str(cut), again]) == 0
    assert not (cut / ".judge").exists()
    for name in ("label_table.npz", "model.safetensors", "judge.npz"):
        assert (whole / name).read_bytes() == (cut / name).read_bytes(), name


def stop(*args):
    raise KeyboardInterrupt


def test_starting_over_forgets_the_opinion(tmp_path, asked):
    path, out = write(tmp_path), tmp_path / "run"
    for extra in ([], ["--force", "--noise", "flip:0.2"], ["--force", "--method", "bce"]):
        assert main(["train", str(path), *TRAIN, "--out", str(out), *extra]) == 0
    assert len(asked) == 2
    assert not (out / "judge.npz").exists()


def test_other_methods_ask_no_judge(tmp_path, asked):
    experiment = load_experiment(plan_for(write(tmp_path), {"name": "mixup"}))
    assert informed(experiment.plan, experiment.train) is experiment.plan
    assert not asked


@pytest.mark.filterwarnings("ignore:the best penalty")  # of random images
def test_images_are_judged_by_frozen_features_and_trained_whole(photos, tmp_path):
    tree = {
        "data": {"path": str(photos), "size": 32, "workers": 0},
        "method": {"name": "second-opinion"},
        "model": {"backbone": "mobilenetv3_small_050", "pretrained": False},
        "train": {"epochs": 1, "batch_size": 14, "device": "cpu"},
    }
    run, experiment, _ = train_plan(Plan.from_tree(tree), tmp_path / "run", silence)
    assert run.opinion is not None
    assert run.opinion.score.shape == experiment.train.given.shape
    before = experiment.make_model().state_dict()
    after = run.load_model()
    assert set(after) == set(before)  # a network, not a mean
    assert not after["backbone.conv_stem.weight"].equal(before["backbone.conv_stem.weight"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": np.ones((120, 12), np.float32)}, "all rows have the same features"),
        ({"features": np.full((120, 12), np.nan, np.float32)}, "NaN or infinity"),
        ({name: array[-12:] for name, array in FEW.items()}, "too few to be judged"),
    ],
)
@pytest.mark.parametrize("method", ["second-opinion", "ridge", "kernel-ridge"])
def test_what_cannot_be_judged_is_refused_in_one_line(tmp_path, capsys, changes, message, method):
    path = write(tmp_path, **changes)
    assert main(["train", str(path), "--method", method, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert message in error
    lines = [line for line in error.splitlines() if not line.startswith("warning:")]
    assert len(lines) == 1
