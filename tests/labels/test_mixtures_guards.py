"""Losses that no mixture fits are guarded, and what is no loss is refused."""

import numpy as np
import pytest
import torch

from balancemix.labels.mixtures import (
    Guard,
    _points,
    clean_probability,
    fit_losses,
    fit_mixtures,
    label_loss,
)
from tests.labels.losses import BINNED, EXACT, LOSSES, clean_of_losses, column


def guard_of(losses, labels=None, **options):
    """Fit one class; return the guard of each side, having seen that guarded labels are clean."""
    ones, losses = column(losses)
    labels = ones if labels is None else torch.tensor(labels)[:, None]
    mixtures = fit_losses(labels, losses, **options)
    clean = mixtures.posterior(labels, losses)
    assert clean.isfinite().all()
    for side, guard in enumerate(mixtures.guard[:, 0].tolist()):
        own = (labels > 0) == bool(side)
        assert guard == Guard.FITTED or bool((clean[own] == 1).all())
    return [Guard(guard) for guard in mixtures.guard[:, 0].tolist()]


@pytest.mark.parametrize("repeat", [1, 100])
@pytest.mark.parametrize("value", [0.0, 1e-7, 0.3, 16.118])
def test_equal_losses_are_all_clean(value, repeat):
    assert guard_of([value] * 20 * repeat)[1] == Guard.CONSTANT


@pytest.mark.parametrize("repeat", [1, 100])
def test_losses_that_differ_by_rounding_are_all_clean(repeat):
    assert guard_of([0.1, 0.1 + 1e-12] * 10 * repeat)[1] == Guard.CONSTANT


@pytest.mark.parametrize("losses", [[0.5], [0.1, 4.0], [0.1] * 4 + [4.0] * 5])
def test_fewer_labels_than_can_be_judged_are_all_clean(losses):
    assert guard_of(losses) == [Guard.FEW, Guard.FEW]


def test_a_side_without_labels_is_no_hindrance_to_the_other():
    losses = LOSSES["separated"](50)
    assert guard_of(losses, [1] * 50) == [Guard.FEW, Guard.FITTED]
    assert guard_of(losses, [0] * 50) == [Guard.FITTED, Guard.FEW]


def test_min_labels_is_the_smallest_number_that_is_judged():
    losses = LOSSES["separated"](20)
    labels = [1] * 13 + [0] * 7
    assert guard_of(losses, labels, min_labels=8)[0] == Guard.FEW
    assert guard_of(losses, labels, min_labels=7)[0] != Guard.FEW
    assert guard_of(losses, labels, min_labels=13)[1] != Guard.FEW
    assert guard_of(losses, labels, min_labels=14)[1] == Guard.FEW


@pytest.mark.parametrize("min_labels", [0, 1])
def test_one_label_is_clean_even_if_it_may_be_judged(min_labels):
    guards = guard_of([0.7], min_labels=min_labels)
    assert guards[1] == Guard.CONSTANT
    assert guards[0] in (Guard.FEW, Guard.CONSTANT)


def test_no_rows_are_all_clean():
    assert (fit_mixtures(torch.zeros(0, 3), torch.zeros(0, 3)).guard == Guard.FEW).all()


@pytest.mark.parametrize("n", [EXACT, BINNED])
def test_components_closer_than_the_separation_are_not_judged(n):
    losses = LOSSES["overlapping"](n)
    fitted = fit_losses(*column(losses))
    apart = float(fitted.mean[1, 0].diff() / fitted.variance[1, 0].sqrt().sum())
    assert guard_of(losses)[1] == Guard.FITTED
    assert guard_of(losses, separation=0.99 * apart)[1] == Guard.FITTED
    assert guard_of(losses, separation=1.01 * apart)[1] == Guard.OVERLAPPING


def test_separation_leaves_separated_mixtures_as_they_are():
    losses = column(LOSSES["separated"](EXACT))
    assert clean_of_losses(*losses, separation=0.5).equal(clean_of_losses(*losses))


@pytest.mark.parametrize("fit", ["raw", "dividemix"])
def test_a_component_without_a_label_to_its_name_is_not_used(fit):
    """Losses of one kind, of which the second component may keep less than one."""
    generator = torch.Generator().manual_seed(0)
    losses = (1 + 0.1 * torch.randn(12, 400, generator=generator)).abs()
    given = torch.ones(12, 400)
    mixtures = fit_losses(given, losses, fit=fit)
    guard = mixtures.guard[1]
    assert set(guard.tolist()) == {Guard.FITTED, Guard.EMPTY}
    assert (12 * mixtures.share[1][guard == Guard.FITTED] > 1 - 1e-5).all()
    assert (mixtures.posterior(given, losses)[:, guard == Guard.EMPTY] == 1).all()


# Extreme losses.


@pytest.mark.parametrize("repeat", [1, 100])
def test_losses_of_exactly_zero_are_clean_beside_large_ones(repeat):
    losses = np.array([0.0] * 15 + [1.0, 1.1, 0.9, 1.05, 1.2])
    losses = np.tile(losses, repeat)
    clean = clean_of_losses(*column(losses))[:, 0].numpy()
    assert (clean[losses == 0] > 0.99).all()
    assert (clean[losses > 0] < 0.01).all()


@pytest.mark.parametrize("repeat", [1, 100])
def test_a_component_of_equal_losses_keeps_a_millionth_of_the_variance(repeat):
    losses = np.array(([0.0] * 15 + [1.0, 1.1, 0.9, 1.05, 1.2]) * repeat)
    variance = fit_losses(*column(losses)).variance[1, 0] / losses.var()
    np.testing.assert_allclose(variance[0], 1e-6, rtol=1e-3)
    assert variance[1] > 1e-3


def test_a_spread_beyond_arithmetic_is_all_clean():
    assert guard_of([0.1, 0.2, 0.15] * 5 + [1e200, 1e201])[1] == Guard.EMPTY


def test_a_loss_beyond_the_bins_is_held_at_the_last():
    labels, losses = column(([0.1, 0.2, 0.15] * 5 + [1e200, 1e201]) * 100)
    mixtures = fit_losses(labels, losses)
    assert mixtures.guard[1, 0] == Guard.FITTED
    np.testing.assert_allclose(mixtures.mean[1, 0], [0.15, 256], rtol=0.01)
    assert ((mixtures.posterior(labels, losses) > 0.5) == (losses < 1)).all()


@pytest.mark.parametrize("repeat", [1, 100])
@pytest.mark.parametrize("huge", [1e4, 1e10, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_huge_spread_gives_probabilities(dtype, huge, repeat):
    labels, losses = column([1e-7, 0.2, 0.15] * 5 * repeat + [huge] * 5 * repeat, dtype)
    clean = clean_of_losses(labels, losses)
    assert clean.isfinite().all()
    assert (clean[losses < 1] > 0.5).all()


def test_a_lone_far_loss_is_judged_alike_whatever_the_rounding():
    unlike = []
    for n in range(10, 120):
        rng = np.random.default_rng(n)
        losses = np.append(np.abs(rng.normal(0.1, 0.02, n - 1)), 0.3)  # ten deviations away
        if clean_of_losses(*column(losses))[-1] > 0.5:
            unlike.append(n)
    assert not unlike


# What is refused.


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf, -0.001])
@pytest.mark.parametrize("n", [20, 2_000])
def test_what_is_no_loss_is_refused_by_row_and_class(value, n):
    losses = torch.rand(n, 3, generator=torch.Generator().manual_seed(0))
    losses[17, 2] = value
    labels = torch.zeros(n, 3)
    with pytest.raises(ValueError, match=r"row 17, class 2"):
        fit_losses(labels, losses)


@pytest.mark.parametrize("shape", [(20,), (20, 3), (19, 2)])
def test_losses_and_labels_of_different_shape_are_refused(shape):
    with pytest.raises(ValueError, match="N×K"):
        fit_losses(torch.zeros(shape), torch.rand(20, 2))


def test_more_rows_than_a_bin_can_count_are_refused():
    many = torch.zeros(1, 1).expand(2**28 + 1, 1)
    with pytest.raises(ValueError, match="at most 268435456 rows"):
        _points(many, many, label_loss)


@pytest.mark.parametrize("value", [torch.nan, -0.1, 1.1])
def test_what_is_no_confidence_is_refused(value):
    confidence = torch.full((30, 2), 0.5)
    confidence[7, 1] = value
    with pytest.raises(ValueError, match="between 0 and 1"):
        clean_probability(torch.zeros(30, 2), confidence)


def test_what_is_no_label_is_refused():
    with pytest.raises(ValueError, match="0, 1 or −1"):
        clean_probability(torch.full((30, 2), 0.5), torch.zeros(30, 2))
