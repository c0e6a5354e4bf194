"""An audit of many rows that is killed goes on from the finished stages of its judgement."""

import numpy as np
import pytest
import torch

from balancemix.auditing import judged as judged_module
from balancemix.auditing.data import judge_data
from balancemix.auditing.judged import Factors
from balancemix.judge import factor, opinion, ridge
from balancemix.judge.basis import Streamed
from tests.judge.test_stages import Death, forbidden, kill, make


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Write features that are compared with landmarks, as those of many rows are."""
    monkeypatch.setattr(factor, "LONG", 0)
    monkeypatch.setattr(factor, "EXACT", 30)
    monkeypatch.setattr(factor, "_LANDMARKS", (40, 40))
    x, given = make()
    path = tmp_path / "data.npz"
    np.savez(path, features=x.numpy(), labels=given.numpy())
    return path


def stages(data):
    return sorted(path.name for path in data.parent.glob("data.npz.balancemix/judge/*"))


STAGES = {
    "after the basis": ((ridge.Ridge, "choose"), ["basis.stage"], (Streamed, "of")),
    "after the scores": (
        (opinion, "fit_noise_model"),
        ["basis.stage", "scores.stage"],
        (ridge.Ridge, "choose"),
    ),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_audit_goes_on_from_the_finished_stage(data, monkeypatch, stage):
    where, there, finished = STAGES[stage]
    whole = judge_data(str(data))
    assert not stages(data)
    with monkeypatch.context() as context:
        context.setattr(*where, kill)
        with pytest.raises(Death):
            judge_data(str(data))
    assert stages(data) == there
    with monkeypatch.context() as context:
        context.setattr(*finished, forbidden)
        again = judge_data(str(data))
    assert torch.equal(whole.doubt, again.doubt)
    assert torch.equal(whole.probability, again.probability)
    assert not (data.parent / "data.npz.balancemix").exists()


def test_stages_stay_until_the_last_of_two_judgements_has_ended(data, monkeypatch):
    factors = Factors()
    judge_data(str(data), factors=factors)
    with monkeypatch.context() as context:
        context.setattr(judged_module, "judge", kill)
        with pytest.raises(Death):
            judge_data(str(data), factors=factors)
    assert "basis.stage" in stages(data)
    factors.finish()
    assert not (data.parent / "data.npz.balancemix").exists()


def test_an_audit_does_without_stages_where_none_can_be_kept(data):
    (data.parent / "data.npz.balancemix").write_text("in the way")
    with pytest.warns(UserWarning, match="cannot be kept"):
        found = judge_data(str(data))
    assert bool(found.judged.any())
