"""A long judgement goes on from its finished stages, and gives the same bits."""

import dataclasses
from typing import Any

import pytest
import torch

from balancemix.judge import factor, judge, opinion, ridge
from balancemix.judge.basis import Streamed
from balancemix.judge.stages import Stages, fingerprint


def make(rows=120):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 6, generator=generator)
    given = (x[:, :3] + torch.randn(rows, 3, generator=generator) > 0.5).to(torch.int8)
    return x, given


class Death(BaseException):
    """Stands for a process that is killed."""


def kill(*arguments, **settings):
    raise Death


def killed(monkeypatch, where, *arguments, **settings):
    with monkeypatch.context() as context:
        context.setattr(*where, kill)
        with pytest.raises(Death):
            judge(*arguments, **settings)


def forbidden(*arguments, **settings):
    raise AssertionError("was computed again")


@pytest.fixture
def long(monkeypatch):
    monkeypatch.setattr(factor, "LONG", 0)


def same(first, second):
    for field in dataclasses.fields(first):
        a, b = getattr(first, field.name), getattr(second, field.name)
        assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b, field.name


LAST = (opinion, "fit_noise_model")
# Where the process dies, the stages that are there then, and what must not be computed again.
STAGES = {
    "before the basis": ((Streamed, "of"), [], None),
    "before the scores": ((ridge.Ridge, "choose"), ["basis.stage"], (Streamed, "of")),
    "before the noise model": (
        LAST,
        ["basis.stage", "scores.stage"],
        (ridge.Ridge, "leave_one_out"),
    ),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_judgement_goes_on_from_the_finished_stage(tmp_path, monkeypatch, long, stage):
    (where, there, finished), (x, given) = STAGES[stage], make()
    groups = torch.arange(len(x)) // 2
    whole = judge(given, x, landmarks=30, groups=groups)
    killed(monkeypatch, where, given, x, landmarks=30, groups=groups, folder=tmp_path / "stages")
    assert sorted(path.name for path in tmp_path.glob("stages/*")) == there
    with monkeypatch.context() as context:
        if finished is not None:
            context.setattr(*finished, forbidden)
        again = judge(given, x, landmarks=30, groups=groups, folder=tmp_path / "stages")
    same(whole, again)
    assert not (tmp_path / "stages").exists()


@pytest.mark.parametrize(
    "change", ["features", "labels", "verified", "seed", "landmarks", "groups"]
)
def test_stages_of_other_data_are_ignored(tmp_path, monkeypatch, long, change):
    x, given = make()
    killed(monkeypatch, LAST, given, x, landmarks=30, folder=tmp_path)
    settings: dict[str, Any] = {"landmarks": 30, "seed": 0, "groups": None}
    if change == "features":
        x[7, 2] += 0.1
    elif change == "labels":
        given[5, 1] = 1 - given[5, 1]
    elif change == "verified":
        settings["verified"] = torch.arange(given.numel()).view(given.shape) % 3 == 0
    elif change == "groups":
        settings["groups"] = torch.arange(len(x)) // 2
    else:
        settings[change] += 1
    same(judge(given, x, **settings), judge(given, x, **settings, folder=tmp_path))


def test_a_flipped_byte_of_a_stage_is_noticed(tmp_path, monkeypatch, long):
    x, given = make(rows=20)
    killed(monkeypatch, LAST, given, x, landmarks=11, folder=tmp_path)
    for path in sorted(tmp_path.iterdir()):
        content = path.read_bytes()
        stages, key = Stages(tmp_path), fingerprint(x, 11, 0)
        if path.stem == "scores":
            key = fingerprint("refined", key, given, given, None)  # all of them doubtful
        assert stages.load(path.stem, key)
        for place in range(0, len(content), 7):
            flipped = bytearray(content)
            flipped[place] ^= 1 << place % 8
            path.write_bytes(flipped)
            assert stages.load(path.stem, key) is None
        path.write_bytes(content[:-1])
        assert stages.load(path.stem, key) is None
        path.write_bytes(b"")
        assert stages.load(path.stem, key) is None


def test_scores_that_an_earlier_version_stored_are_ignored(tmp_path, monkeypatch, long):
    x, given = make()
    killed(monkeypatch, LAST, given, x, landmarks=30, folder=tmp_path)
    (tmp_path / "scores.stage").unlink()
    old = {"score": torch.zeros(given.shape), "best": torch.tensor(1.0), "grid": torch.ones(1)}
    key = fingerprint(fingerprint(x, 30, 0), given, given, None)
    Stages(tmp_path).save("scores", key, old | {"errors": torch.ones(1)})
    same(judge(given, x, landmarks=30), judge(given, x, landmarks=30, folder=tmp_path))


def test_a_short_judgement_stores_nothing(tmp_path, monkeypatch):
    x, given = make()
    for landmarks in (None, 30):
        killed(monkeypatch, LAST, given, x, landmarks=landmarks, folder=tmp_path / "stages")
        assert not (tmp_path / "stages").exists()
        judge(given, x, landmarks=landmarks, folder=tmp_path / "stages")
