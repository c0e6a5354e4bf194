"""Refined scores against refitting without the row, and against scores by landmarks alone."""

import numpy as np
import pytest
import torch

from balancemix.judge import blocks, refine
from balancemix.judge.basis import Streamed
from balancemix.judge.ridge import Ridge
from tests.judge.test_ridge import make as make_rows
from tests.reference import ridge as slow


def make(rows=60, features=8):
    return make_rows(rows, features)


def alone(monkeypatch, ridge, *arguments):
    """Score by landmarks alone."""
    with monkeypatch.context() as context:
        context.setattr(refine, "MOST", 0)
        return ridge.leave_one_out(*arguments)


@pytest.mark.parametrize("penalty", [0.3, 3.0])
def test_with_every_row_in_the_sample_it_is_refitting_without_the_row(monkeypatch, penalty):
    monkeypatch.setattr(blocks, "BLOCK", 16)  # tiles, and the mirror images of them
    x, y = make()
    scores = Ridge.of(x, landmarks=20).leave_one_out(y, penalty)
    np.testing.assert_allclose(scores, slow.left_out(x.numpy(), y.numpy(), penalty), atol=1e-3)


def test_other_rows_follow_the_sample(monkeypatch):
    monkeypatch.setattr(refine, "_SAMPLE", 12)
    x, y = make(rows=90)
    ridge = Ridge.of(x, landmarks=40)
    assert isinstance(ridge.basis, Streamed)
    drawn, sample = ridge.basis.drawn.numpy(), refine._sample(ridge.basis).numpy()
    assert len(sample) == 24
    assert np.isin(sample, drawn).sum() == 12
    expected = slow.refined(x.numpy(), y.numpy(), 0.5, drawn, sample)
    np.testing.assert_allclose(ridge.leave_one_out(y, 0.5), expected, atol=2e-3)


def test_it_is_much_nearer_to_all_pairs_than_landmarks_alone(monkeypatch):
    monkeypatch.setattr(refine, "_SAMPLE", 50)
    x, y = make(rows=600, features=20)
    ridge, exact = Ridge.of(x, landmarks=200), Ridge.of(x).leave_one_out(y, 0.5)
    off = (ridge.leave_one_out(y, 0.5) - exact).square().mean()
    assert off < 0.02 * (alone(monkeypatch, ridge, y, 0.5) - exact).square().mean()


def test_permuting_rows_or_classes_permutes_the_scores():
    x, y = make()
    generator = torch.Generator().manual_seed(3)
    rows, classes = torch.randperm(60, generator=generator), torch.tensor([2, 0, 1])
    scores = Ridge.of(x, landmarks=20).leave_one_out(y, 1.0)
    permuted = Ridge.of(x[rows], landmarks=20).leave_one_out(y[rows][:, classes], 1.0)
    torch.testing.assert_close(permuted, scores[rows][:, classes], atol=2e-3, rtol=0)


def test_a_class_of_equal_labels_stays_what_it_is():
    x, y = make()
    y[:, 1] = 0
    scores = Ridge.of(x, landmarks=20).leave_one_out(y, 1.0)
    assert torch.equal(scores[:, 1], torch.zeros(60))
    assert scores.isfinite().all()


def test_where_the_steps_do_not_suffice_landmarks_score(monkeypatch):
    monkeypatch.setattr(refine, "_STEPS", 1)
    x, y = make()
    ridge = Ridge.of(x, landmarks=20)
    with pytest.warns(UserWarning, match="do not refine"):
        scores = ridge.leave_one_out(y, 0.01)
    assert torch.equal(scores, alone(monkeypatch, ridge, y, 0.01))


@pytest.mark.parametrize("case", ["groups", "unknown", "rows", "linear"])
def test_what_is_not_refined(monkeypatch, case):
    x, y = make()
    groups = torch.arange(60) // 2 if case == "groups" else None
    known = torch.ones(60, 3, dtype=torch.bool) if case == "unknown" else None
    if known is not None:
        known[5, 1] = False
    if case == "linear":
        assert not refine.is_refined(Ridge.of(x, kernel="linear").basis)
        return
    ridge = Ridge.of(x, landmarks=20, groups=groups)
    expected = alone(monkeypatch, ridge, y, 1.0, known)
    if case == "rows":
        monkeypatch.setattr(refine, "MOST", 59)
    assert torch.equal(ridge.leave_one_out(y, 1.0, known), expected)
