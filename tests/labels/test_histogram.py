"""The reduction of losses to points, against NumPy's histograms."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from balancemix.labels.histogram import (
    BINS,
    add_losses,
    empty_histogram,
    points_of_histogram,
    points_of_losses,
)

# Octaves from 2⁻²⁴ to 2⁸, each in 32 equal parts.
EDGES = np.array([2.0**e * (1 + i / 32) for e in range(-24, 8) for i in range(32)] + [2.0**8])


def drawn(n=3_000, k=4, seed=0):
    rng = np.random.default_rng(seed)
    losses = rng.lognormal(-2, 3, (n, k)).clip(1e-7, 255).astype(np.float32)
    return losses, (rng.random((n, k)) < 0.2).astype(np.uint8)


def histogram_of(losses, labels):
    histogram = empty_histogram(losses.shape[1])
    add_losses(histogram, torch.as_tensor(labels), torch.as_tensor(losses))
    return histogram


def by_problem(groups):
    """Value, count and spread of each problem's points, as NumPy arrays."""
    problems = []
    for points in groups:
        assert points.value.shape == points.count.shape == points.spread.shape
        for value, count, spread in zip(points.value, points.count, points.spread, strict=True):
            inside = count > 0
            problems.append([part[inside].numpy() for part in (value, count, spread)])
    return problems


def test_points_are_the_bins_with_count_mean_and_spread():
    losses, labels = drawn()
    problems = by_problem(points_of_histogram(histogram_of(losses, labels)))
    assert len(EDGES) == BINS + 1
    assert len(problems) == 8
    for problem, (value, count, spreads) in enumerate(problems):
        side, k = divmod(problem, losses.shape[1])
        own = losses[labels[:, k] == side, k].astype(float)
        counts, _ = np.histogram(own, EDGES)
        full = counts > 0
        np.testing.assert_array_equal(count, counts[full])
        width = np.diff(EDGES)[full]
        mean = np.histogram(own, EDGES, weights=own)[0][full] / counts[full]
        assert (np.abs(value - mean) <= width / 64).all()
        many = counts[full] > 20
        bin_ = np.digitize(own, EDGES) - 1
        spread = np.array([own[bin_ == b].var() for b in np.flatnonzero(counts)])
        np.testing.assert_allclose(spreads[many], spread[many], rtol=0.7)
        assert (spreads[counts[full] == 1] == 0).all()


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**31), st.integers(1, 6))
def test_histograms_of_parts_in_any_order_add_up(seed, parts):
    losses, labels = (torch.as_tensor(part) for part in drawn(200, 3, seed))
    whole = histogram_of(losses, labels)
    order = torch.randperm(200, generator=torch.Generator().manual_seed(seed))
    together = empty_histogram(3)
    for index in order.tensor_split(parts):
        add_losses(together, labels[index], losses[index])
    assert together.equal(whole)


@pytest.mark.parametrize("k", [1, 7, 200_000])  # the last: a row longer than a chunk
def test_any_number_of_classes(k):
    losses, labels = drawn(3, k)
    counts = [points.count for points in points_of_histogram(histogram_of(losses, labels))]
    assert sum(count.sum() for count in counts) == 3 * k
    assert sum(len(count) for count in counts) == 2 * k


def test_losses_outside_the_bins_are_held_at_the_ends():
    losses = torch.tensor([[0.0], [1e-30], [300.0], [1e30]], dtype=torch.float64)
    (value, count, _), positive = by_problem(
        points_of_histogram(histogram_of(losses, torch.zeros(4, 1)))
    )
    assert count.tolist() == [2, 2]
    np.testing.assert_allclose(value, [2**-24, 2**8], rtol=0.04)
    assert not len(positive[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_any_float_is_binned(dtype):
    losses, labels = drawn(50)
    losses = torch.as_tensor(losses.clip(0.01, 100)).to(torch.float16).to(dtype)
    assert histogram_of(losses, labels).equal(histogram_of(losses.double(), labels))


@pytest.mark.parametrize("at_once", [256, 5])
def test_few_losses_are_points_themselves(at_once, monkeypatch):
    monkeypatch.setattr("balancemix.labels.histogram._PROBLEMS", at_once)
    losses, labels = drawn(60, 9)
    labels[:, 3] = 0  # a problem without points
    groups = list(points_of_losses(torch.as_tensor(labels), torch.as_tensor(losses)))
    assert len(groups) == -(-18 // at_once)
    want = [np.sort(losses[labels[:, k] == side, k]) for side in (0, 1) for k in range(9)]
    for (value, count, spread), expected in zip(by_problem(groups), want, strict=True):
        np.testing.assert_array_equal(value, expected)
        assert (count == 1).all()
        assert (spread == 0).all()


def test_groups_hold_every_problem_once_with_all_its_points(monkeypatch):
    histogram = histogram_of(*drawn(60, 9))
    whole = by_problem(points_of_histogram(histogram))
    monkeypatch.setattr("balancemix.labels.histogram._PROBLEMS", 5)
    parts = by_problem(points_of_histogram(histogram))
    assert len(parts) == len(whole) == 18
    for part, expected in zip(parts, whole, strict=True):
        np.testing.assert_array_equal(part, expected)


def test_no_rows_are_no_points():
    none = torch.zeros(0, 2)
    assert [len(value) for value, _, _ in by_problem(points_of_losses(none, none))] == [0] * 4
