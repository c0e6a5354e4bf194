"""Rows held out of the training to choose settings by: `data.score = "held-out"`."""

import csv
import json

import pytest
import torch

from balancemix.cli import main
from balancemix.data.rows import Rows
from balancemix.data.splits import HELD_OUT, with_noise
from balancemix.errors import InputError
from balancemix.labels.noise import parse
from balancemix.plan.plan import Plan
from balancemix.training.experiment import load_experiment


def of(tiny, **data) -> Plan:
    return Plan.from_tree({"noise": "mislabel:0.4", "data": {"path": str(tiny), **data}})


def test_held_out_rows_are_training_rows_that_do_not_train(tiny):
    scored, chosen = (load_experiment(of(tiny, score=score)) for score in ("test", "held-out"))
    assert (len(scored.train), len(scored.test)) == (90, 30)
    assert (len(chosen.train), len(chosen.test)) == (72, 18)
    assert sorted(chosen.train.names + chosen.test.names) == sorted(scored.train.names)
    assert not set(chosen.test.names) & set(scored.test.names)
    # They are scored on as they were before the noise.
    truth = dict(zip(scored.train.names, scored.train.truth.tolist(), strict=True))
    assert [truth[name] for name in chosen.test.names] == chosen.test.given.tolist()
    assert set(chosen.splits.splits) == {"train", "test", HELD_OUT}


def test_a_share_of_nothing_is_refused(tiny):
    with pytest.raises(InputError, match="holdout must be between 0 and 1"):
        load_experiment(of(tiny, score="held-out", holdout=0.0))


def test_evaluate_and_export_know_the_rows(tiny, tmp_path, capsys):
    run = str(tmp_path / "run")
    settings = ["--set", "data.score=held-out", "--set", "model.hidden=8", "--batch-size", "16"]
    assert main(["train", str(tiny), "--epochs", "2", *settings, "--out", run, "--json"]) == 0
    trained = json.loads(capsys.readouterr().out)
    assert main(["evaluate", run, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mAP"] == pytest.approx(trained["last"]["mAP"])
    assert main(["export", run, "--out", str(tmp_path / "labels.csv")]) == 0
    with (tmp_path / "labels.csv").open(newline="") as lines:
        splits = [line["split"] for line in csv.DictReader(lines)]
    assert (splits.count("train"), splits.count("test")) == (90, 30)


def test_hiding_and_keeping_leave_real_errors_as_they_are():
    given = torch.tensor([[1, 0], [0, 1], [1, 1], [0, 0]])
    truth = 1 - given
    rows = Rows(given, ["cat", "dog"], truth=truth)
    noisy = with_noise(rows, parse("keep:0.5"), 0)
    assert noisy.verified is not None
    assert torch.equal(noisy.given, torch.where(noisy.verified, truth, given))
    assert noisy.verified.sum() == 4
    assert torch.equal(noisy.truth, truth)
    assert torch.equal(with_noise(rows, parse("drop:0"), 0).given, truth)  # errors of the truth
