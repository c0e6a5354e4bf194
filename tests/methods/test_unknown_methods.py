"""What unknown (−1) and verified labels change in single methods, against slow loops."""

import math

import numpy as np
import pytest
import torch

from balancemix.judge.noise_rates import bilinear_rates, dual_t_rates, estimate_noise_rates
from balancemix.labels.table import Status
from balancemix.methods import ANLS, EMAPL, EPR, LLR, ROLE, CoTeaching, Hill, LLCp, LLCt, TEstimator
from tests.methods.test_unknown import hidden
from tests.toys import Echo, K, N, Training, draw_confidence, draw_logits, make_data


def softplus(value):
    return math.log1p(math.exp(value))


def some_verified(shape, share=0.3, seed=5):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < share


# Large losses.


@pytest.mark.parametrize("kind", [LLR, LLCt, LLCp])
def test_large_losses_are_those_of_labels_that_may_be_wrong(kind):
    logits, labels = draw_logits()
    given, verified = hidden(labels, 0.3), some_verified(labels.shape)
    method = kind(alpha=0.0, delta=5.0).start(given, 10, verified=verified)
    method.epoch = 1
    doubtful = [tuple(place) for place in ((given >= 0) & ~verified).nonzero().tolist()]
    absent = [place for place in doubtful if given[place] == 0]
    count = math.ceil(0.05 * len(doubtful))
    large = sorted(absent, key=lambda place: -float(logits[place]))[:count]
    total = 0.0
    for i in range(16):
        for k in range(10):
            z = float(logits[i, k])
            if given[i, k] < 0 or ((i, k) in large and kind is LLR):
                continue
            present = given[i, k] == 1 or (i, k) in large
            total += softplus(-z) if present else softplus(z)
    assert method.loss(Echo(), logits, torch.arange(16)).item() == pytest.approx(total / 16)
    method.end_epoch()
    changed = {tuple(place) for place in (method.table.status == Status.PRESENT).nonzero().tolist()}
    assert changed == (set(large[:-1]) if kind is LLCp else set())


def test_ll_cp_fills_in_no_unknown_label():
    x, labels = make_data()
    given = hidden(labels)
    training = Training(LLCp(delta=20.0).start(given, 3), x).run()
    status = training.method.table.status
    assert (status[given == 0] == Status.PRESENT).any()
    assert (status[given < 0] == Status.IGNORED).all()


# Few positives.


@pytest.mark.parametrize("kind", [EPR, ROLE])
def test_unknown_labels_are_unobserved_as_those_given_as_0(kind):
    x, labels = make_data()
    given = torch.where(labels > 0, 1, hidden(labels))  # hide absent labels alone
    assert (given < 0).any()
    one, other = (Training(kind(expected=1.5).start(each, 3), x).run() for each in (labels, given))
    assert one.weights().equal(other.weights())


def test_the_expected_number_of_positives_is_that_of_known_labels():
    labels, _ = draw_confidence(n=50, k=6)
    given = hidden(labels, 0.4).numpy()
    want = sum(np.mean(given[given[:, k] >= 0, k]) for k in range(6))
    assert EPR().start(given, 1).positives == pytest.approx(want)
    assert EPR().start(labels, 1).positives == float(labels.sum()) / 50


@pytest.mark.parametrize("kind", [EPR, ROLE, EMAPL, ANLS, Hill])
def test_a_verified_absent_label_has_the_loss_of_an_absent_one(kind):
    """Its slope is that of −log(1 − p), besides what holds for every label."""
    logits, labels = draw_logits()
    labels, verified = torch.zeros_like(labels), torch.zeros_like(labels)
    verified[:, 3] = 1
    settings = {"expected": 0.0} if kind in (EPR, ROLE) else {}
    slopes = []
    for each in (verified, torch.zeros_like(verified)):
        leaf = logits.clone().requires_grad_()
        method = kind(alpha=0.0, **settings).start(labels, 4, verified=each)
        method.loss(Echo(), leaf, torch.arange(16)).backward()
        slopes.append(16 * leaf.grad)
    p = logits.sigmoid()
    one, other = slopes
    assert one[:, 4].equal(other[:, 4])
    if kind is EPR:
        torch.testing.assert_close(one[:, 3], other[:, 3] + p[:, 3])
    elif kind is ROLE:  # half of it, and half of its g at 0
        shared = other[:, 3] - (p - method.matrix.sigmoid())[:, 3] / 2
        torch.testing.assert_close(one[:, 3], shared + p[:, 3])
    else:
        torch.testing.assert_close(one[:, 3], p[:, 3])


def test_an_ls_assumes_unknown_labels_negative():
    x, labels = make_data()
    given = hidden(labels)
    one, other = (Training(ANLS().start(each, 3), x).run() for each in (given, given.clamp(min=0)))
    torch.testing.assert_close(one.weights(), other.weights())
    assert (one.method.table.status[given < 0] == Status.ABSENT).all()


# Co-teaching.


def test_a_row_is_dropped_by_its_labels_that_may_be_wrong():
    labels = make_data()[1]
    given, verified = hidden(labels, 0.3), some_verified((N, K))
    verified[:3], given[3] = True, -1
    method = CoTeaching(warmup=0, min_labels=4).start(given, 3, verified=verified)
    a, b = torch.rand(2, N, K, generator=torch.Generator().manual_seed(2))
    method.end_epoch(a, b)
    doubtful = (given >= 0) & ~verified
    rows = [i for i in range(N) if doubtful[i].any()]
    alone = CoTeaching(warmup=0, min_labels=4).start(given[rows], 3, verified=verified[rows])
    alone.end_epoch(a[rows], b[rows])
    assert method.sets[:, rows].equal(alone.sets)
    assert method.sets[:, :4].all()
    assert not method.sets.all()
    # In dropped rows only verified labels are left.
    dropped = ~method.sets[0]
    weight = method.table.rows(slice(None))[1]
    assert ((weight[dropped] > 0) == (verified & (given >= 0))[dropped]).all()


def test_verified_labels_of_a_dropped_row_are_trained_on():
    labels = make_data()[1]
    verified = torch.zeros_like(labels)
    verified[0, 2] = 1
    method = CoTeaching(alpha=0.0).start(labels, 3, verified=verified)
    method.sets[:, 0] = False
    logits = torch.randn(4, K).requires_grad_()
    method.loss(method.build(Echo), logits, torch.arange(4)).backward()
    assert logits.grad is not None
    assert (logits.grad[0] != 0).tolist() == [False, False, True, False, False]
    assert (logits.grad[1:] != 0).all()


# Noise rates.


def correlated(n=6000, seed=0):
    """Classes that occur together, given with errors of known rates."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.rand(n, 1, generator=generator)
    truth = torch.rand(n, 3, generator=generator) < rows
    wrong = torch.rand(n, 3, generator=generator) < torch.where(truth, 0.3, 0.1)
    return truth, (truth ^ wrong).to(torch.int8)


def test_rates_of_known_labels_are_those_of_all():
    truth, given = correlated(40_000)
    confidence = 0.1 + 0.8 * truth
    part = hidden(given, 0.4)
    rates = estimate_noise_rates(part, confidence)
    assert rates.how == ["bilinear"] * 3
    torch.testing.assert_close(rates.rho1, torch.full((3,), 0.3).double(), atol=0.05, rtol=0)
    torch.testing.assert_close(rates.rho0, torch.full((3,), 0.1).double(), atol=0.05, rtol=0)


def test_verified_labels_do_not_lower_the_rates_of_the_others():
    truth, given = correlated(40_000)
    verified = some_verified(truth.shape, 0.5)
    given = torch.where(verified, truth.to(torch.int8), given)
    rates = estimate_noise_rates(given, 0.1 + 0.8 * truth, verified=verified)
    torch.testing.assert_close(rates.rho1, torch.full((3,), 0.3).double(), atol=0.05, rtol=0)
    torch.testing.assert_close(rates.rho0, torch.full((3,), 0.1).double(), atol=0.05, rtol=0)


def test_without_unknown_labels_the_rates_are_what_they_were():
    truth, given = correlated()
    selected, every = (given > 0) == truth, torch.ones_like(truth)
    one = bilinear_rates(given > 0, selected)
    other = bilinear_rates(given > 0, selected, None, every, every)
    assert all(a.equal(b) for a, b in zip(one, other, strict=True))
    p = torch.rand(truth.shape, dtype=torch.float64)
    pairs = zip(dual_t_rates(given > 0, p), dual_t_rates(given > 0, p, every), strict=True)
    assert all(a.equal(b) for a, b in pairs)


def test_t_estimator_weights_verified_labels_by_one():
    x, labels = make_data()
    verified = some_verified((N, K))
    method = TEstimator(alpha=0.0, warmup=1, min_labels=4).start(labels, 3, verified=verified)
    Training(method, x).run(1)
    assert method.rates is not None
    method.rates.rho0[:], method.rates.rho1[:] = 0.2, 0.3
    logits = torch.randn(N, K).requires_grad_()
    method.loss(Echo(), logits, torch.arange(N)).backward()
    plain = (logits.detach().sigmoid() - labels) / N
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad[verified], plain[verified])
    assert not torch.isclose(logits.grad[~verified], plain[~verified]).any()
