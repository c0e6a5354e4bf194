"""Noise rates from label correlations, and the weights that they give."""

import numpy as np
import pytest
import torch

from balancemix import estimate_noise_rates
from balancemix.judge.noise_rates import (
    dual_t_rates,
    importance,
    scaled_losses,
)
from tests.reference import t_estimator as reference


def planted(n, rho0, rho1, classes=6, seed=0):
    """Make truth that is correlated by hidden topics, labels with known noise, and confidence."""
    generator = torch.Generator().manual_seed(seed)
    topics = torch.randn(n, 3, generator=generator)
    score = topics @ (1.2 * torch.randn(3, classes, generator=generator)) - 0.8
    truth = score + 0.7 * torch.randn(n, classes, generator=generator) > 0
    draw = torch.rand(n, classes, generator=generator)
    labels = torch.where(truth, draw >= torch.tensor(rho1), draw < torch.tensor(rho0))
    confidence = 6 * truth - 3 + torch.randn(n, classes, generator=generator)
    return truth, labels.to(torch.uint8), confidence.sigmoid()


@pytest.mark.parametrize("rates", [(0.1, 0.3), (0.05, 0.2), (0.0, 0.4), (0.2, 0.0), (0.0, 0.0)])
@pytest.mark.parametrize("known", [True, False])
def test_planted_rates_are_recovered(rates, known):
    truth, labels, confidence = planted(20_000, *rates)
    found = estimate_noise_rates(labels, confidence, truth == labels if known else None)
    torch.testing.assert_close(found.rho0, torch.full_like(found.rho0, rates[0]), atol=0.03, rtol=0)
    torch.testing.assert_close(found.rho1, torch.full_like(found.rho1, rates[1]), atol=0.03, rtol=0)
    assert found.how == ["bilinear"] * 6


def test_each_class_has_rates_of_its_own():
    rho0, rho1 = [0.0, 0.05, 0.1, 0.15, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1, 0.0, 0.3]
    _, labels, confidence = planted(20_000, rho0, rho1)
    found = estimate_noise_rates(labels, confidence)
    assert (found.rho0 - torch.tensor(rho0)).abs().max() < 0.03
    assert (found.rho1 - torch.tensor(rho1)).abs().max() < 0.03


@pytest.mark.parametrize("one_sided", [None, "positives", "negatives"])
@pytest.mark.parametrize("seed", range(4))
def test_rates_equal_the_papers_pair_by_pair(one_sided, seed):
    # Little data, and a selection that is often wrong: candidates are dropped, classes fall back.
    truth, labels, confidence = planted(400, 0.15, 0.3, seed=seed)
    labels[:, 0] = 0
    labels[:20, 0] = 1
    generator = torch.Generator().manual_seed(seed)
    labels[:, 5] = torch.rand(400, generator=generator) < 0.5  # goes with no other class
    selected = (truth == labels) & (torch.rand(labels.shape, generator=generator) < 0.7)
    found = estimate_noise_rates(labels, confidence, selected, one_sided=one_sided, min_labels=30)
    want = reference.estimate(
        labels.numpy(), selected.numpy(), confidence.double().numpy(), one_sided, min_labels=30
    )
    assert found.how == [how for _, _, how in want]
    np.testing.assert_allclose(found.rho0, [rho0 for rho0, _, _ in want], atol=1e-9)
    np.testing.assert_allclose(found.rho1, [rho1 for _, rho1, _ in want], atol=1e-9)


def test_classes_without_a_candidate_fall_back_as_the_papers_do():
    ways = set()
    for seed in range(12):
        truth, labels, confidence = planted(300, 0.3, 0.4, classes=2, seed=seed)
        selected = truth == labels
        found = estimate_noise_rates(labels, confidence, selected, min_labels=20)
        want = reference.estimate(
            labels.numpy(), selected.numpy(), confidence.double().numpy(), min_labels=20
        )
        assert found.how == [how for _, _, how in want]
        np.testing.assert_allclose(found.rho0, [rho0 for rho0, _, _ in want], atol=1e-9)
        np.testing.assert_allclose(found.rho1, [rho1 for _, rho1, _ in want], atol=1e-9)
        ways |= set(found.how)
    assert {"bilinear", "fallback"} <= ways


def test_the_fallback_equals_dual_t():
    _, labels, confidence = planted(300, 0.2, 0.3)
    confidence[:, 0] *= 0.4  # never predicted
    rho0, rho1 = dual_t_rates(labels > 0, confidence.double())
    want = [reference.dual_t(labels.numpy(), confidence.double().numpy(), i) for i in range(6)]
    np.testing.assert_allclose(torch.stack([rho0, rho1], 1), want, atol=1e-9)


def test_a_class_alone_falls_back():
    _, labels, confidence = planted(4000, 0.1, 0.3, classes=1)
    found = estimate_noise_rates(labels, confidence)
    assert found.how == ["fallback"]
    assert 0 < found.rho0 + found.rho1 < 1


def test_a_class_of_ten_positives_has_the_identity_and_no_matrix_is_zero():
    _, labels, confidence = planted(4000, 0.1, 0.3)
    labels[:, 2] = 0
    labels[:10, 2] = 1
    labels[:, 4] = 0
    found = estimate_noise_rates(labels, confidence)
    assert found.how[2] == found.how[4] == "not enough data"
    assert found.matrices[2].equal(torch.eye(2, dtype=torch.float64))
    torch.testing.assert_close(found.matrices.sum(2), torch.ones(6, 2, dtype=torch.float64))
    assert (torch.linalg.det(found.matrices) > 0).all()
    judged = estimate_noise_rates(labels, confidence, torch.ones_like(labels), min_labels=10)
    assert judged.how[2] != "not enough data"
    assert (torch.linalg.det(judged.matrices) > 0).all()


@pytest.mark.parametrize("value", [0, 1])
def test_labels_all_alike_have_no_noise(value):
    labels = torch.full((200, 3), value)
    found = estimate_noise_rates(labels, torch.rand(200, 3, generator=torch.Generator()))
    assert found.how == ["not enough data"] * 3
    assert found.matrices.equal(torch.eye(2, dtype=torch.float64).expand(3, 2, 2))


def test_a_model_that_knows_nothing_falls_back_to_no_noise():
    """Dual-T of a constant confidence: both sides are given alike, and T cannot be inverted."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.rand(500, 1, generator=generator) < 0.5
    found = estimate_noise_rates(labels, torch.full((500, 1), 0.3))
    assert found.how == ["not enough data"]


@pytest.mark.parametrize(("side", "rates"), [("positives", (0.0, 0.4)), ("negatives", (0.2, 0.0))])
def test_known_one_sided_noise_is_exactly_that(side, rates):
    _, labels, confidence = planted(20_000, *rates)
    found = estimate_noise_rates(labels, confidence, one_sided=side)
    silent, other = (found.rho0, found.rho1) if side == "positives" else (found.rho1, found.rho0)
    assert not silent.any()
    assert (other - max(rates)).abs().max() < 0.03


def test_wrong_matrices_are_refused():
    labels = torch.zeros(4, 2)
    with pytest.raises(ValueError, match="given and confidence must both be N×K"):
        estimate_noise_rates(labels, torch.zeros(4, 3))
    with pytest.raises(ValueError, match="given and selected"):
        estimate_noise_rates(labels, torch.zeros(4, 2), torch.zeros(3, 2))
    with pytest.raises(ValueError, match="between 0 and 1"):
        estimate_noise_rates(labels, torch.full((4, 2), torch.nan))


def test_scaled_losses_equal_the_papers():
    _, labels, first = planted(300, 0.2, 0.3)
    second = first.square()
    ours = (scaled_losses(labels, first) + scaled_losses(labels, second)) / 2
    for i in range(6):
        for side in (0, 1):
            want = reference.losses_to_select_by(
                [first.double().numpy(), second.double().numpy()], labels.numpy(), i, side
            )
            np.testing.assert_allclose(ours[labels[:, i] == side, i], want, atol=1e-5)


# The weights.


def test_weights_equal_the_papers_and_are_clamped():
    p, rho0, rho1 = torch.rand(50, 3, generator=torch.Generator()), [0.0, 0.1, 0.3], [0.4, 0.2, 0.0]
    labels = torch.rand(50, 3, generator=torch.Generator().manual_seed(1)) < 0.5
    ours = importance(labels, p, torch.tensor(rho0), torch.tensor(rho1))
    for i in range(50):
        for k in range(3):
            want = reference.weight(float(p[i, k]), int(labels[i, k]), rho0[k], rho1[k])
            assert float(ours[i, k]) == pytest.approx(min(want, 20), rel=1e-4)
    most = importance(torch.tensor([1]), torch.tensor([1.0]), torch.tensor(0.0), torch.tensor(0.99))
    assert most.item() == 20


def test_without_noise_weights_are_one_even_where_the_model_is_sure():
    p = torch.tensor([0.0, 1e-30, 1e-7, 0.5, 1.0])
    for labels in (torch.zeros(5), torch.ones(5)):
        assert importance(labels, p, torch.zeros(()), torch.zeros(())).equal(torch.ones(5))
