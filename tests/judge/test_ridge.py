"""Ridge against refitting without the row, scikit-learn, and its own laws."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge as LinearRidge

from balancemix.errors import InputError
from balancemix.judge import blocks
from balancemix.judge.basis import Streamed
from balancemix.judge.factor import _whitening, make_basis
from balancemix.judge.penalty import GRID
from balancemix.judge.ridge import Ridge
from tests.reference import ridge as slow


def make(rows=40, features=5, classes=3, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, features)) * 3 + 1
    y = (x[:, :classes] + generator.normal(size=(rows, classes)) > 1).astype(float)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


@pytest.mark.parametrize("penalty", [0.3, 3.0])
def test_leave_one_out_is_refitting_without_the_row(penalty):
    x, y = make()
    scores = Ridge.of(x).leave_one_out(y, penalty)
    np.testing.assert_allclose(scores, slow.left_out(x.numpy(), y.numpy(), penalty), atol=1e-4)


def test_holding_the_mean_and_the_standardisation_changes_little():
    x, y = make(rows=120)
    scores = Ridge.of(x).leave_one_out(y, 1.0).numpy()
    refitted = slow.left_out(x.numpy(), y.numpy(), 1.0, hold=False)
    change = np.abs(scores - refitted)
    assert change.mean() < 0.003
    assert change.max() < 0.05  # where the scores have a deviation of
    assert scores.std() > 0.3


def test_linear_leave_one_out_is_refitting_without_the_row():
    x, y = make()
    scores = Ridge.of(x, kernel="linear").leave_one_out(y, 2.0)
    expected = slow.left_out(x.numpy(), y.numpy(), 2.0, similarity=slow.linear)
    np.testing.assert_allclose(scores, expected, atol=1e-4)


def test_groups_are_left_out_whole():
    x, y = make()
    groups = torch.arange(40) // 3
    scores = Ridge.of(x, groups=groups).leave_one_out(y, 0.7)
    expected = slow.left_out(x.numpy(), y.numpy(), 0.7, groups.numpy())
    np.testing.assert_allclose(scores, expected, atol=1e-4)


def test_the_machine_is_scikit_learns():
    x, y = make()
    new = make(seed=1)[0]
    machine = Ridge.of(x).solve(y, 0.5)
    standard = slow.standardise(x.numpy())
    scale = np.where(x.numpy().std(0) > 0, x.numpy().std(0), 1)
    theirs = KernelRidge(alpha=0.5, kernel="rbf", gamma=1 / (2 * x.shape[1]))
    theirs.fit(standard, y.numpy() - y.numpy().mean(0))
    expected = theirs.predict((new.numpy() - x.numpy().mean(0)) / scale) + y.numpy().mean(0)
    np.testing.assert_allclose(machine.scores(new), expected, atol=1e-4)


def test_the_linear_machine_is_scikit_learns():
    x, y = make()
    new = make(seed=1)[0]
    machine = Ridge.of(x, kernel="linear").solve(y, 0.5)
    theirs = LinearRidge(alpha=0.5, fit_intercept=False)
    theirs.fit(slow.standardise(x.numpy()), y.numpy() - y.numpy().mean(0))
    z = (new.numpy() - x.numpy().mean(0)) / x.numpy().std(0)
    expected = theirs.predict(z) + y.numpy().mean(0)
    np.testing.assert_allclose(machine.scores(new), expected, atol=1e-4)


def test_with_every_row_as_a_landmark_streaming_is_exact(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 16)
    x, y = make(rows=60)
    exact, basis = Ridge.of(x), make_basis(x)
    whiten = _whitening(basis.landmarks)
    streamed = Ridge(Streamed.of(x, basis.mean, basis.scale, basis.landmarks, whiten))
    new = make(seed=1)[0]
    for penalty in (0.5, 4.0):
        a, b = exact.leave_one_out(y, penalty), streamed.leave_one_out(y, penalty)
        torch.testing.assert_close(a, b, atol=5e-4, rtol=0)
        a, b = exact.solve(y, penalty).scores(new), streamed.solve(y, penalty).scores(new)
        torch.testing.assert_close(a, b, atol=5e-4, rtol=0)


def test_landmarks_are_seeded_and_fewer_than_rows():
    x, y = make(rows=200)
    first, again, other = (Ridge.of(x, landmarks=30, seed=seed) for seed in (0, 0, 1))
    assert len(first.basis.landmarks) == 30
    assert torch.equal(first.leave_one_out(y, 1.0), again.leave_one_out(y, 1.0))
    assert not torch.equal(first.basis.landmarks, other.basis.landmarks)


@pytest.mark.parametrize("landmarks", [None, 25])
def test_what_stands_under_an_unknown_label_changes_nothing(landmarks):
    x, y = make(rows=60)
    known = torch.rand(60, 3, generator=torch.Generator().manual_seed(1)) < 0.6
    known[:, 2] = known[:, 1]  # two classes share a factor
    other = torch.where(known, y, 1 - y)
    ridge = Ridge.of(x, landmarks=landmarks)
    for a, b in ((y, other),):
        assert torch.equal(ridge.leave_one_out(a, 1.0, known), ridge.leave_one_out(b, 1.0, known))
        assert ridge.choose(a, known) == ridge.choose(b, known)
        assert torch.equal(
            ridge.solve(a, 1.0, known).coefficients, ridge.solve(b, 1.0, known).coefficients
        )


def test_a_class_is_fitted_on_its_known_rows_alone():
    x, y = make(rows=60)
    known = torch.rand(60, 3, generator=torch.Generator().manual_seed(1)) < 0.6
    ridge = Ridge.of(x)
    scores, machine = ridge.leave_one_out(y, 1.0, known), ridge.solve(y, 1.0, known)
    standard = slow.standardise(x.numpy())
    for k in range(3):
        rows, rest = known[:, k].numpy(), ~known[:, k].numpy()
        target = y[:, k].numpy()
        mean = target[rows].mean()
        a = slow.kernel(standard[rows], standard[rows]) + np.eye(rows.sum())
        weights = np.linalg.solve(a, target[rows] - mean)
        expected = slow.kernel(standard[rest], standard[rows]) @ weights + mean
        np.testing.assert_allclose(scores[rest, k], expected, atol=1e-4)
        np.testing.assert_allclose(machine.scores(x)[rest, k], expected, atol=1e-4)


@pytest.mark.parametrize(("kernel", "landmarks"), [("rbf", None), ("rbf", 25), ("linear", None)])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("penalty", [2.0**-11, 1.0])
def test_known_rows_are_scored_as_if_there_were_no_others(kernel, landmarks, grouped, penalty):
    x, y = make(rows=60)
    known = torch.rand(60, 3, generator=torch.Generator().manual_seed(1)) < 0.6
    groups = torch.arange(60) // 3 if grouped else None
    ridge = Ridge.of(x, kernel=kernel, landmarks=landmarks, groups=groups)
    scores, machine = ridge.leave_one_out(y, penalty, known), ridge.solve(y, penalty, known)
    for k in range(3):
        rows = known[:, k].nonzero()[:, 0]
        part = ridge._only(rows)  # factored for any penalty
        expected = part.leave_one_out(y[rows, k : k + 1], penalty)[:, 0]
        torch.testing.assert_close(scores[rows, k], expected, atol=2e-3, rtol=0)
        expected = part.solve(y[rows, k : k + 1], penalty).scores(x)[:, 0]
        torch.testing.assert_close(machine.scores(x)[:, k], expected, atol=2e-3, rtol=0)


@given(st.integers(0, 2**16))
@settings(max_examples=10, deadline=None)
def test_permuting_rows_or_classes_permutes_the_scores(seed):
    x, y = make(seed=seed % 7)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(x), generator=generator)
    classes = torch.randperm(y.shape[1], generator=generator)
    scores = Ridge.of(x).leave_one_out(y, 1.0)
    permuted = Ridge.of(x[rows]).leave_one_out(y[rows][:, classes], 1.0)
    torch.testing.assert_close(permuted, scores[rows][:, classes], atol=1e-4, rtol=0)


def test_the_penalty_has_the_least_error_and_the_grid_grows_at_its_edge():
    x, y = make(rows=80)
    penalty = Ridge.of(x).choose(y)
    errors = dict(zip(penalty.grid, penalty.errors, strict=True))
    assert penalty.best == min(errors, key=errors.get)
    assert not penalty.at_edge
    scores = Ridge.of(x).leave_one_out(y, penalty.best)
    error = ((scores - y).square().sum(0) / y.sum(0)).sum()
    assert errors[penalty.best] == pytest.approx(float(error), rel=1e-3)
    smooth = (x[:, :1] / 3).sigmoid()  # without noise, the less penalty the better
    with pytest.warns(UserWarning, match="at the edge"):
        assert min(Ridge.of(x).choose(smooth).grid) < GRID[0]


@pytest.mark.parametrize("grouped", [False, True])
def test_the_penalty_is_chosen_by_the_labels_that_count(grouped):
    x, y = make(rows=80)
    counted = torch.rand(y.shape, generator=torch.Generator().manual_seed(1)) < 0.5
    ridge = Ridge.of(x, groups=torch.arange(80) // 2 if grouped else None)
    penalty = ridge.choose(y, counted=counted)
    off = (ridge.leave_one_out(y, penalty.best) - y).square() * counted
    error = float((off.sum(0) / y.sum(0)).sum())
    assert min(penalty.errors) == pytest.approx(error, rel=1e-3)
    assert ridge.choose(y, counted=torch.ones_like(counted)) == ridge.choose(y)


def test_the_penalty_of_groups_is_chosen_without_them():
    x, y = make(rows=60)
    twice = torch.arange(120) % 60  # every row has a copy, which alone would call for no penalty
    ridge = Ridge.of(x[twice], groups=twice)
    penalty = ridge.choose(y[twice])
    errors = dict(zip(penalty.grid, penalty.errors, strict=True))
    scores = ridge.leave_one_out(y[twice], penalty.best)
    error = ((scores - y[twice]).square().sum(0) / y[twice].sum(0)).sum()
    assert errors[penalty.best] == pytest.approx(float(error), rel=1e-3)
    assert not penalty.at_edge


def test_what_is_odd_is_told():
    x, y = make(rows=60)
    with pytest.warns(UserWarning, match="60 rows have the same features"):
        ridge = Ridge.of(torch.cat([x, x]))
    with pytest.warns(UserWarning, match="at the edge"):
        ridge.choose(torch.cat([y, y]))  # each row's copy says all, so the least penalty is best


@pytest.mark.parametrize(
    ("features", "problem"),
    [
        (torch.ones(20, 3), "the same features"),
        (torch.full((20, 3), 1e4) + torch.rand(20, 1) * 0, "the same features"),
        (torch.tensor([[1.0, float("nan")]] * 20), "row 0"),
        (torch.randn(3, 2), "too few"),
        (torch.randn(20), "N×D"),
    ],
)
def test_bad_features_are_refused(features, problem):
    with pytest.raises(InputError, match=problem):
        Ridge.of(features)


def test_targets_of_another_shape_are_refused():
    x, y = make()
    with pytest.raises(InputError, match="40×K"):
        Ridge.of(x).leave_one_out(y[:-1], 1.0)
    with pytest.raises(InputError, match="known"):
        Ridge.of(x).choose(y, torch.ones(40, 1, dtype=torch.bool))
    with pytest.raises(InputError, match="groups"):
        Ridge.of(x, groups=torch.zeros(3))
