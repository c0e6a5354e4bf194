"""The noise model: its likelihood against rows one by one, and rates that it can know."""

import numpy as np
import pytest
import torch

from balancemix.judge import noise_model
from balancemix.judge.noise_model import bend, fit_noise_model, log_likelihood, posterior
from tests.reference import ridge as slow


def simulated(rho0, rho1, rows=4000, classes=6, seed=0):
    """Draw scores, the truth by a logistic curve of them, and given labels with rates of errors."""
    generator = torch.Generator().manual_seed(seed)
    v = torch.randn(rows, classes, generator=generator)
    present = torch.rand(rows, classes, generator=generator) < (6 * bend(v) - 5).sigmoid()
    wrong = torch.rand(rows, classes, generator=generator)
    given = torch.where(present, wrong >= rho1, wrong < rho0).int()
    return given, v, present


def test_the_likelihood_is_that_of_the_rows_one_by_one():
    given, score, _ = simulated(0.1, 0.3, rows=50, classes=1)
    eta = (1.5 * bend(score.double()) - 1).sigmoid()
    rates = torch.tensor([0.1]).double(), torch.tensor([0.3]).double()
    ours = log_likelihood(eta, *rates, given.double(), torch.ones(50, 1).double())
    theirs = slow.log_likelihood(
        score[:, 0].double().numpy(), given[:, 0].numpy(), 1.5, -1, 0.1, 0.3
    )
    assert float(ours) == pytest.approx(theirs)


def test_bins_hold_every_row_once():
    given, score, _ = simulated(0.1, 0.3, rows=500, classes=1)
    mean, spread = torch.tensor(0.0).double(), torch.tensor(1.0).double()
    v, positives, rows = noise_model._binned(score[:, 0], given[:, 0], mean, spread)
    assert int(rows.sum()) == 500
    assert int(positives.sum()) == int(given.sum())
    assert bool((v.diff() < 0).all())
    assert float((v * rows).sum()) == pytest.approx(float(bend(score.double()).sum()))


@pytest.mark.parametrize(("rho0", "rho1"), [(0.0, 0.0), (0.03, 0.4), (0.2, 0.2)])
def test_rates_that_do_not_depend_on_the_row_are_recovered(rho0, rho1):
    given, score, present = simulated(rho0, rho1)
    model = fit_noise_model(given, score)
    assert float(model.rho0.mean()) == pytest.approx(rho0, abs=0.03)
    assert float(model.rho1.mean()) == pytest.approx(rho1, abs=0.12)
    confidence = model.confidence(score)
    q = model.posterior(given, confidence)
    # The posterior beats the given labels where these have errors.
    off = (q - present.float()).square().mean()
    assert off <= (given - present.float()).square().mean() + 1e-3


def test_a_posterior_is_bayes_rule():
    eta, rho0, rho1 = 0.3, 0.05, 0.4
    p = posterior(
        torch.tensor([[1], [0]]),
        torch.full((2, 1), eta),
        torch.tensor([rho0]),
        torch.tensor([rho1]),
    )
    one = (1 - rho1) * eta / ((1 - rho1) * eta + rho0 * (1 - eta))
    zero = rho1 * eta / (rho1 * eta + (1 - rho0) * (1 - eta))
    np.testing.assert_allclose(p[:, 0], [one, zero], rtol=1e-6)


def test_unknown_labels_are_left_out():
    given, score, _ = simulated(0.1, 0.3)
    hidden = torch.rand(given.shape, generator=torch.Generator().manual_seed(2)) < 0.5
    model = fit_noise_model(given.masked_fill(hidden, -1), score)
    moved = torch.where(hidden, score + 100, score)
    other = fit_noise_model(given.masked_fill(hidden, -1), moved)
    assert torch.equal(model.rho0, other.rho0)
    assert torch.equal(model.slope, other.slope)


def test_classes_without_known_or_without_positive_labels_do_no_harm():
    given, score, _ = simulated(0.1, 0.1, classes=4)
    given[:, 0], given[:, 1], given[:, 2] = -1, 0, 1
    model = fit_noise_model(given, score)
    for value in vars(model).values():
        assert bool(value.isfinite().all())
    q = model.posterior(given, model.confidence(score))
    assert bool(((q >= 0) & (q <= 1)).all())


def test_derivatives_are_those_of_autograd_and_steps_those_of_adam(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    v = torch.randn(12, 5, generator=generator).double()
    rows = torch.full((12, 5), 7.0).double()
    positives = torch.randint(0, 8, (12, 5), generator=generator).double()
    positives[:, 0] = rows[:, 0]  # a class without negatives
    log_frequency = torch.randn(5, generator=generator).double()
    sizes = (1, 5, 5, 1, 1, 5, 1, 5)
    at = noise_model.Parameters(*(torch.randn(n, generator=generator).double() for n in sizes))
    rest = v, positives, rows, log_frequency
    for level in (0.0, 12.0):  # the second leaves no span between the rates
        flat = (at.flat + level).requires_grad_()
        noise_model.loss(at.of(flat), *rest).sum().backward()
        ours = noise_model.gradient(at.of(flat.detach()), *rest).flat
        torch.testing.assert_close(ours, flat.grad)
    monkeypatch.setattr(noise_model, "_STEPS", 20)
    theirs = at.flat.requires_grad_()
    adam = torch.optim.Adam([theirs], lr=0.05, betas=(0.9, 0.99))
    annealing = torch.optim.lr_scheduler.CosineAnnealingLR(adam, 20)
    for _ in range(20):
        adam.zero_grad()
        noise_model.loss(at.of(theirs), *rest).sum().backward()
        adam.step()
        annealing.step()
    ours = noise_model._descended(
        at.flat.detach(), lambda x: noise_model.gradient(at.of(x), *rest).flat
    )
    torch.testing.assert_close(ours, theirs.detach())
