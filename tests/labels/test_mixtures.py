"""The batched mixtures against scikit-learn's, and monotone clean probabilities."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from balancemix.labels.mixtures import (
    Guard,
    Mixtures,
    clean_probability,
    fit_losses,
    fit_mixtures,
    label_loss,
)
from tests.labels.losses import BINNED, EXACT, LARGE, LOSSES, clean_of_losses, column
from tests.reference import balancemix as reference


def ordered(G):
    order = G.means_[:, 0].argsort()
    return G.weights_[order], G.means_[order, 0], G.covariances_[order, 0, 0]


def plain(G, losses):
    """Which losses lie where the mixture's own posterior falls with the loss."""
    _, mean, variance = ordered(G)
    precision = 1 / variance
    gap = precision[0] - precision[1]
    turn = (mean[0] * precision[0] - mean[1] * precision[1]) / gap
    return losses >= turn if gap > 0 else losses <= turn


def assert_agrees(losses, *, decisions=1.0, atol=1e-3, rtol=1e-3):
    G = reference.mixture(losses)
    ours = fit_losses(*column(losses))
    assert ours.guard.tolist() == [[Guard.FEW], [Guard.FITTED]]
    share, mean, variance = ordered(G)
    np.testing.assert_allclose(ours.share[1, 0], share, rtol=rtol)
    np.testing.assert_allclose(ours.mean[1, 0], mean, rtol=rtol)
    np.testing.assert_allclose(ours.variance[1, 0], variance, rtol=3 * rtol)

    got = ours.posterior(*column(losses))[:, 0].numpy()
    assert np.array_equal(clean_of_losses(*column(losses))[:, 0], got)
    want = G.predict_proba(losses[:, None])[:, G.means_[:, 0].argmin()]
    free = plain(G, losses)
    assert free.mean() > 0.5
    np.testing.assert_allclose(got[free], want[free], atol=atol)
    assert ((got > 0.5) == (want > 0.5))[free].mean() >= decisions
    # Where the posterior would turn back, it is held at its extreme.
    low, high = losses < losses[free].min(), losses > losses[free].max()
    assert (got[low] >= got[free].max() - 1e-9).all()
    assert (got[high] <= got[free].min() + 1e-9).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", LOSSES)
def test_each_loss_its_own_point_agrees_with_sklearn(kind, seed):
    assert_agrees(LOSSES[kind](EXACT, seed), atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", LOSSES)
def test_binned_losses_agree_with_sklearn(kind, seed):
    assert_agrees(LOSSES[kind](BINNED, seed), decisions=0.999, atol=1e-2, rtol=5e-3)


@pytest.mark.parametrize("kind", LOSSES)
def test_binned_losses_of_many_rows_agree_with_sklearn(kind):
    assert_agrees(LOSSES[kind](LARGE), decisions=0.999, atol=1e-2, rtol=5e-3)


@pytest.mark.parametrize("n", [10, 12, 15, 20])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["separated", "noisy mode narrower"])
def test_a_few_separated_losses_agree_with_sklearn(kind, seed, n):
    assert_agrees(LOSSES[kind](n, seed), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("n", [20, 50, 200])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["overlapping", "of a classifier", "of clean labels"])
def test_sklearn_started_from_our_fit_stays_there(kind, seed, n):
    """Few overlapping losses have several optima; ours must be one of them."""
    losses = LOSSES[kind](n, seed)
    ours = fit_losses(*column(losses))
    assert ours.guard[1, 0] == Guard.FITTED
    G = GaussianMixture(
        2,
        reg_covar=1e-12 * losses.var(),
        tol=1e-6,
        max_iter=1000,
        weights_init=ours.share[1, 0].numpy(),
        means_init=ours.mean[1, 0].numpy()[:, None],
        precisions_init=1 / ours.variance[1, 0].numpy()[:, None, None],
    ).fit(losses[:, None])
    share, mean, _ = ordered(G)
    np.testing.assert_allclose(ours.share[1, 0], share, rtol=0.01)
    np.testing.assert_allclose(ours.mean[1, 0], mean, rtol=0.01)


@pytest.mark.parametrize("n", [EXACT, BINNED])
def test_a_separated_mixture_is_recovered(n):
    mixtures = fit_losses(*column(LOSSES["separated"](n)))
    np.testing.assert_allclose(mixtures.share[1, 0], [0.7, 0.3], atol=1e-3)
    np.testing.assert_allclose(mixtures.mean[1, 0], [0.1, 3], rtol=0.03)
    np.testing.assert_allclose(mixtures.variance[1, 0].sqrt(), [0.03, 0.5], rtol=0.1)


@pytest.mark.parametrize("n", [300, 1_200])
def test_all_mixtures_of_a_matrix_agree_with_equations_6_to_8(n):
    rng = np.random.default_rng(0)
    truth = rng.random((n, 3)) < 0.4
    Y = np.where(rng.random((n, 3)) < 0.15, ~truth, truth).astype(np.uint8)
    f = 1 / (1 + np.exp(-rng.normal(np.where(truth, 3, -3), 0.7)))
    losses = np.where(Y, -np.log(f), -np.log(1 - f))
    got = clean_of_losses(torch.tensor(Y), torch.tensor(losses)).numpy()
    want = reference.clean_probability(f, Y)
    np.testing.assert_allclose(got, want, atol=2e-3)
    assert ((got > 0.5) == (want > 0.5)).mean() >= 0.999


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [EXACT, BINNED])
def test_float32_and_float64_decide_alike(n, dtype):
    losses = LOSSES["of a classifier"](n)
    exact = clean_of_losses(*column(losses))
    got = clean_of_losses(*column(losses, dtype))
    assert got.dtype == dtype
    torch.testing.assert_close(got.double(), exact, atol=1e-3, rtol=0)


@pytest.mark.parametrize("n", [200, 1_500])
def test_sides_and_classes_are_independent(n):
    rng = np.random.default_rng(0)
    labels = torch.tensor((rng.random((n, 3)) < 0.4).astype(np.uint8))
    losses = torch.tensor(LOSSES["of a classifier"](3 * n)[rng.permutation(3 * n)].reshape(n, 3))
    before = clean_of_losses(labels, losses)
    changed = losses.clone()
    others = (labels == 0) | (torch.arange(3) != 1)
    changed[others] = changed[others].square() + 0.2
    after = clean_of_losses(labels, changed)
    torch.testing.assert_close(after[~others], before[~others], rtol=0, atol=1e-9)
    assert not torch.allclose(after[others], before[others])


@pytest.mark.parametrize("n", [200, 1_500])
def test_the_order_of_rows_does_not_matter(n):
    losses = torch.tensor(LOSSES["of a classifier"](n))
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    before = clean_of_losses(*column(losses))
    torch.testing.assert_close(clean_of_losses(*column(losses[order])), before[order])


@pytest.mark.parametrize("n", [200, 1_500])
def test_the_scale_of_losses_does_not_matter(n):
    losses = LOSSES["of a classifier"](n)
    before = clean_of_losses(*column(losses))
    torch.testing.assert_close(clean_of_losses(*column(losses * 4)), before)


ANY_LOSS = st.one_of(
    st.floats(0, 20), st.floats(1e-7, 1e-3), st.sampled_from([0.0, 1e-7, 0.1, 3.0, 16.118])
)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(ANY_LOSS, min_size=2, max_size=60),
    st.sampled_from(["raw", "dividemix"]),
    st.sampled_from([torch.float32, torch.float64]),
    st.sampled_from([1, 30]),
)
def test_clean_probability_never_increases_with_the_loss(values, fit, dtype, repeat):
    labels, losses = column(values * repeat, dtype)
    mixtures = fit_losses(labels, losses, fit=fit, min_labels=2)
    curves = [(losses[:, 0], mixtures.posterior(labels, losses)[:, 0])]
    if dtype == torch.float64:  # also between and beyond the losses of the fit
        ladder = torch.cat([torch.linspace(0, 25, 500), torch.logspace(-8, 1.4, 500)])
        curves.append((ladder, mixtures.posterior(*column(ladder))[:, 0]))
    for at, clean in curves:
        in_order = clean[at.argsort(stable=True)]
        assert ((in_order >= 0) & (in_order <= 1)).all()
        assert (in_order.diff() <= 1e-6).all()


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**31), st.sampled_from([60, 1_100]))
def test_clean_probability_never_increases_within_a_class_and_side_of_a_matrix(seed, n):
    rng = np.random.default_rng(seed)
    labels = torch.tensor((rng.random((n, 3)) < 0.3).astype(np.uint8))
    losses = torch.tensor(rng.lognormal(-1, 1.5, (n, 3)), dtype=torch.float32)
    clean = clean_of_losses(labels, losses)
    for k in range(3):
        for side in (0, 1):
            own = labels[:, k] == side
            in_order = clean[own, k][losses[own, k].argsort()]
            assert (in_order.diff() <= 1e-6).all()


@settings(deadline=None, max_examples=150)
@given(
    st.floats(0.001, 0.999),
    st.floats(0, 5),
    st.sampled_from([0.0, 1e-6, 0.1, 3.0]),
    st.floats(0.001, 3),
    st.floats(0.001, 3),
)
def test_the_posterior_is_equation_8_held_at_its_turn(share, mean, apart, clean, noisy):
    """Two Gaussians' densities, compared directly, wherever their ratio falls with the loss."""
    shares, means, variances = (
        torch.tensor([pair, pair], dtype=torch.float64)[:, None]
        for pair in ((share, 1 - share), (mean, mean + apart), (clean**2, noisy**2))
    )
    mixtures = Mixtures(shares, means, variances, torch.zeros(2, 1, dtype=torch.uint8))
    losses = np.concatenate([np.linspace(0, 20, 401), np.geomspace(1e-7, 20, 200)])
    held = losses
    gap = clean**-2 - noisy**-2
    if gap:
        turn = (mean * clean**-2 - (mean + apart) * noisy**-2) / gap
        held = np.maximum(losses, turn) if gap > 0 else np.minimum(losses, turn)
    log_odds = np.log(share / (1 - share)) + np.log(noisy / clean)
    log_odds += ((held - mean - apart) / noisy) ** 2 / 2 - ((held - mean) / clean) ** 2 / 2
    want = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
    got = mixtures.posterior(*column(losses))[:, 0].numpy()
    np.testing.assert_allclose(got, want, atol=1e-6)
    single = mixtures.posterior(*column(losses, torch.float32))[:, 0].numpy()
    sure = np.abs(log_odds) > 1e-3 * (1 + losses / min(clean, noisy) ** 2)  # than rounding a loss
    np.testing.assert_array_equal(single[sure] > 0.5, want[sure] > 0.5)


@pytest.mark.parametrize("n", [40, EXACT, BINNED])
@pytest.mark.parametrize("kind", ["separated", "noisy mode narrower", "mostly clean"])
def test_dividemix_agrees_with_sklearn_on_scaled_losses(kind, n):
    losses = LOSSES[kind](n)
    scaled = (losses - losses.min()) / (losses.max() - losses.min())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # ten steps are all it gets
        G = reference.mixture(scaled, reg_covar=5e-4, max_iter=10, tol=1e-2)
    want = G.predict_proba(scaled[:, None])[:, G.means_[:, 0].argmin()]
    got = clean_of_losses(*column(losses), fit="dividemix")[:, 0].numpy()
    free = plain(G, scaled)
    assert ((got > 0.5) == (want > 0.5))[free].mean() >= 0.999


def test_dividemix_keeps_variances_wide():
    losses = LOSSES["separated"](EXACT)
    scale = losses.max() - losses.min()
    wide = fit_losses(*column(losses), fit="dividemix")
    assert (wide.variance[1, 0] >= 5e-4 * scale**2).all()
    assert wide.variance[1, 0, 0] > fit_losses(*column(losses)).variance[1, 0, 0]


def test_fitting_leaves_its_inputs_alone():
    labels, losses = column(LOSSES["separated"](50))
    kept = losses.clone(), labels.clone()
    clean_of_losses(labels, losses)
    assert losses.equal(kept[0])
    assert labels.equal(kept[1])


@pytest.mark.parametrize("n", [BINNED // 4, 70_000])
@pytest.mark.parametrize("fit", ["raw", "dividemix"])
def test_mixtures_of_confidence_are_those_of_its_losses(n, fit):
    """Of few rows, and of more than are looked at together."""
    generator = torch.Generator().manual_seed(0)
    labels = (torch.rand(n, 2, generator=generator) < 0.3).to(torch.int8)
    confidence = torch.where(torch.rand(n, 2, generator=generator) < 0.1, 1 - labels, labels)
    confidence = (4 * confidence - 2 + torch.randn(n, 2, generator=generator)).sigmoid()
    losses = label_loss(labels, confidence)
    got, expected = fit_mixtures(labels, confidence, fit=fit), fit_losses(labels, losses, fit=fit)
    for part, other in zip(vars(got).values(), vars(expected).values(), strict=True):
        assert part.equal(other)
    clean = clean_probability(labels, confidence, fit=fit)
    assert clean.equal(expected.posterior(labels, losses))
    assert (clean > 0.5).any()
    assert (clean < 0.5).any()
