"""LL-R, LL-Ct and LL-Cp against their steps: how many labels, which, and for how long."""

import itertools
import math

import numpy as np
import pytest
import torch

from balancemix import processes
from balancemix.labels.table import Status
from balancemix.methods import LLR, LLCp, LLCt
from balancemix.methods.large_loss import largest
from tests.methods.draws import pairing_of
from tests.reference import losses as reference
from tests.toys import Echo, Training, draw_logits, make_data

SCHEMES = {"LL-R": LLR, "LL-Ct": LLCt, "LL-Cp": LLCp}
every_scheme = pytest.mark.parametrize("scheme", SCHEMES)


def started(scheme, labels, epochs=10, **options):
    return SCHEMES[scheme](**{"alpha": 0.0} | options).start(labels, epochs)


@every_scheme
@pytest.mark.parametrize("t", [1, 2, 3, 10])
@pytest.mark.parametrize("delta", [0.2, 1.0, 7.0])
def test_a_batch_equals_the_published_steps(scheme, t, delta):
    logits, labels = draw_logits()
    method = started(scheme, labels, delta=delta)
    method.epoch = t - 1
    want, kept = reference.large_loss(logits.numpy(), labels.numpy(), t, delta, scheme)
    got = method.loss(Echo(), logits, torch.arange(16))
    assert got.item() == pytest.approx(want.sum() / 16, rel=1e-6)
    if scheme == "LL-Cp":
        method.end_epoch()
        written = (method.table.whole().target != method.table.given).nonzero()
        assert [tuple(place) for place in written.tolist()] == sorted(kept)
    else:
        np.testing.assert_allclose(method.criterion(logits, labels.double()).numpy(), want)


@every_scheme
def test_the_first_epoch_is_bce(scheme):
    logits, labels = draw_logits(1)
    method = started(scheme, labels, delta=50.0)
    want = reference.each(reference.bce, logits.numpy(), labels.numpy())
    np.testing.assert_allclose(method.criterion(logits, labels.double()).numpy(), want)


@pytest.mark.parametrize("scheme", ["LL-R", "LL-Ct"])
@pytest.mark.parametrize("delta", [0.1, 0.04, 0.3, 1.0, 3.3])
def test_as_many_labels_are_modified_as_the_rate_says_and_no_positive(scheme, delta):
    logits, labels = draw_logits(2, 50, 20)
    method, target = started(scheme, labels, epochs=50, delta=delta), labels.double()
    plain = reference.each(reference.bce, logits.numpy(), labels.numpy())
    for t in range(1, 11):
        changed = ~np.isclose(method.criterion(logits, target).numpy(), plain, rtol=1e-6)
        exact = 50 * 20 * (t - 1) * round(delta * 100)  # in whole numbers, of 10,000
        assert changed.sum() == min(-(-exact // 10_000), (labels == 0).sum())
        assert not changed[labels.numpy() == 1].any()
        method.epoch += 1


@pytest.mark.parametrize(("epochs", "delta"), [(10, 0.2), (20, 0.1), (40, 0.05), (50, 0.04)])
def test_by_default_the_last_rate_is_about_two_percent(epochs, delta):
    method = LLR().start(draw_logits()[1], epochs)
    assert method.step == pytest.approx(delta / 100)
    method.epoch = epochs - 1
    assert method.rate == pytest.approx((epochs - 1) * delta / 100)
    assert 0.017 < method.rate < 0.02


def test_ll_cp_has_a_constant_rate_after_the_first_epoch():
    method = LLCp(delta=0.5).start(draw_logits()[1], 10)
    rates = []
    for _ in range(4):
        rates.append(method.rate)
        method.end_epoch()
    assert rates == [0.0, 0.005, 0.005, 0.005]


@pytest.mark.parametrize("count", [0, 1, 3, 5, 99])
def test_the_largest_are_among_the_unobserved(count):
    values = torch.tensor([[9.0, 5.0, 4.0], [3.0, 2.0, 1.0]])
    unobserved = torch.tensor([[False, True, True], [True, True, True]])
    marked = largest(values, unobserved, count)
    assert values[marked].tolist() == [5.0, 4.0, 3.0, 2.0, 1.0][:count]


def test_ties_with_the_last_are_marked_with_it_and_zeros_never():
    values, every = torch.tensor([[2.0, 1.0, 1.0, 0.0]]), torch.ones(1, 4, dtype=torch.bool)
    assert largest(values, every, 2).tolist() == [[True, True, True, False]]
    assert largest(values, every, 4).tolist() == [[True, True, True, False]]
    assert not largest(values, ~every, 2).any()


def test_rejected_labels_have_no_gradient_and_corrected_ones_that_of_a_positive():
    logits, labels = draw_logits(3)
    for scheme in ("LL-R", "LL-Ct"):
        method, leaf = started(scheme, labels, delta=5.0), logits.clone().requires_grad_()
        method.epoch = 1
        method.criterion(leaf, labels.double()).sum().backward()
        slope = logits.sigmoid() - labels
        marked = largest(-torch.log1p(-logits.sigmoid()), labels == 0, math.ceil(160 * 0.05))
        slope[marked] = 0 if scheme == "LL-R" else logits.sigmoid()[marked] - 1
        torch.testing.assert_close(leaf.grad, slope)


# Mixup.


def test_a_mixed_label_is_unobserved_where_both_rows_say_so():
    logits, labels = draw_logits(4, 8, 6)
    method = started("LL-R", labels, delta=100.0, alpha=4.0)
    method.epoch = 1
    partner, lam = pairing_of(method, 8)
    z = lam * logits + (1 - lam) * logits[partner]
    y = lam * labels.double() + (1 - lam) * labels[partner].double()
    want = reference.each(reference.bce, z.numpy(), y.numpy())
    want[((labels + labels[partner]) == 0).numpy()] = 0
    got = method.loss(Echo(), logits, torch.arange(8))
    assert got.item() == pytest.approx(want.sum() / 8, rel=1e-6)


def test_ll_cp_corrects_the_larger_of_two_mixed_rows():
    logits, labels = draw_logits(5, 8, 6)
    method = started("LL-Cp", labels, delta=10.0, alpha=4.0)
    method.epoch = 1
    partner, lam = pairing_of(method, 8)
    z = (lam * logits + (1 - lam) * logits[partner]).numpy()
    y = ((labels + labels[partner]) > 0).numpy()
    _, kept = reference.large_loss(z, y, 2, 10.0, "LL-Cp")
    method.loss(Echo(), logits, torch.arange(8))
    method.end_epoch()
    written = (method.table.whole().target != method.table.given).nonzero()
    assert [tuple(place) for place in written.tolist()] == sorted(kept)
    assert kept


# LL-Cp: the table.


def test_corrections_stay_and_add_up_and_leave_given_labels_alone():
    x, labels = make_data()
    training = Training(LLCp(delta=5.0).start(labels, 5), x)
    targets, facts = [], []
    for _ in range(5):
        facts.append(training.epoch())
        targets.append(training.method.table.whole().target)
    assert targets[0].equal(labels.float())
    for before, after in itertools.pairwise(targets):
        assert (after >= before).all()
    table = training.method.table
    assert table.given.equal(labels.to(torch.int8))
    changed = table.whole().target != labels
    assert changed.any()
    assert (table.status[changed] == Status.PRESENT).all()
    assert (table.status[~changed] == Status.CLEAN).all()
    assert facts[-1]["flipped"] == pytest.approx(float(changed.float().mean()))


def test_corrections_of_all_processes_come_together(monkeypatch):
    logits, labels = draw_logits(6)
    method = started("LL-Cp", labels, delta=5.0)
    method.epoch = 1
    elsewhere = torch.zeros(16, 10)
    elsewhere[15, (labels[15] == 0).nonzero()[0]] = 1
    monkeypatch.setattr(processes, "all_reduce", lambda found: found + elsewhere)
    method.loss(Echo(), logits[:8], torch.arange(8))
    method.end_epoch()
    changed = method.table.whole().target != labels
    assert changed[15].sum() == 1
    assert changed[:8].sum() == math.ceil(80 * 0.05) - 1


@every_scheme
@pytest.mark.parametrize("delta", [-0.1, 101.0, math.nan])
def test_a_delta_that_is_no_percentage_is_refused(scheme, delta):
    with pytest.raises(ValueError, match=r"delta must be between 0 and 100, it is"):
        SCHEMES[scheme](delta=delta)
