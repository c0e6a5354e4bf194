"""Unknown and verified labels in runs: stored, resumed with, and what they hide never seen."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from balancemix.labels.table import Status
from balancemix.methods import METHODS
from balancemix.plan.plan import Plan
from balancemix.progress import silence
from balancemix.run import Run
from balancemix.training.experiment import Experiment, load_experiment, train_plan
from balancemix.training.pilot import explore
from tests.methods.settings import SETTINGS

NOISE = "mislabel:0.3+unknown:0.3+keep:0.2"


def plan_for(path: Path, method: str) -> Plan:
    return Plan.from_tree(
        {
            "data": {"path": str(path)},
            "method": {"name": method},
            "noise": NOISE,
            "model": {"hidden": 16},
            "train": {"epochs": 4, "batch_size": 16, "device": "cpu"},
        }
    )


def carried_out(experiment: Experiment):
    """What a training ends with; few rows leave classes without positives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        trained = experiment.fit()
    return trained.model.state_dict(), trained.method.table


@pytest.mark.parametrize("method", METHODS)
def test_what_is_hidden_changes_nothing(tiny, method):
    """The labels under unknown ones are known to the scores alone."""
    experiment = load_experiment(plan_for(tiny, method))
    train = experiment.train
    assert train.truth is not None
    assert train.verified is not None
    unknown = train.given < 0
    assert unknown.any()
    other = torch.where(unknown, 1 - train.truth, train.truth)
    both = [
        carried_out(Experiment(experiment.plan, experiment.splits, rows, {}))
        for rows in (train, train.with_given(train.given, other))
    ]
    (weights, table), (others, again) = both
    assert all(weights[name].equal(others[name]) for name in weights)
    assert all(one.equal(two) for one, two in zip(table.whole(), again.whole(), strict=True))
    assert ((table.status == Status.VERIFIED) == train.verified).all()
    assert table.given.equal(train.given)


@pytest.mark.parametrize("method", SETTINGS)
def test_a_run_with_unknown_and_verified_labels_resumes_with_the_same_bits(
    tiny, tmp_path, method, monkeypatch
):
    plan = plan_for(tiny, method)

    def train(name: str, **how) -> Run:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return train_plan(plan, tmp_path / name, silence, **how)[0]

    whole, saved = train("whole"), Run.save_checkpoint

    def save_then_die(run, state):
        saved(run, state)
        if state["method"]["epoch"] == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Run, "save_checkpoint", save_then_die)
    with pytest.raises(KeyboardInterrupt):
        train("cut")
    monkeypatch.setattr(Run, "save_checkpoint", saved)
    cut = train("cut", resume=True)
    for name in ("label_table.npz", "model.safetensors", "truth.npz"):
        assert (whole.path / name).read_bytes() == (cut.path / name).read_bytes(), name
    rows = load_experiment(plan).train
    assert cut.table.given.equal(rows.given)
    assert (cut.table.given < 0).any()
    assert ((cut.table.status == Status.VERIFIED) == rows.verified).all()
    assert cut.table.target[cut.table.given < 0].isfinite().all()


def test_a_pilot_counts_the_positives_that_may_be_wrong(tiny):
    experiment = load_experiment(plan_for(tiny, "balancemix"))
    rows = experiment.train.with_verified(torch.ones_like(experiment.train.given))
    errors = explore(experiment.make_model, rows, experiment.plan)
    assert errors.positives == 0
    rows = rows.with_verified(None)
    assert explore(experiment.make_model, rows, experiment.plan).positives > 0


def test_a_network_starts_at_the_frequencies_among_known_labels(tiny, monkeypatch):
    from balancemix.training import models

    started = []
    monkeypatch.setattr(models, "start_at_frequencies", lambda _, share: started.append(share))
    monkeypatch.setattr(models, "build_model", lambda **_: torch.nn.Identity())
    rows = load_experiment(plan_for(tiny, "bce")).train
    monkeypatch.setattr(models, "FeatureRows", type(None))  # take the rows for images
    models.make_model(plan_for(tiny, "bce"), rows, pretrained=True)
    given = rows.given.numpy()
    want = [(np.sum(given[:, k] == 1) + 1) / (np.sum(given[:, k] >= 0) + 2) for k in range(5)]
    assert started[0].tolist() == pytest.approx(want)
