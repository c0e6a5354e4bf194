"""The rows that each of two peers keeps for the other."""

import numpy as np
import pytest
import torch

from balancemix.labels.table import Status
from balancemix.methods import CoTeaching
from tests.methods.settings import make_method
from tests.reference import coteaching as reference
from tests.toys import EPOCHS, K, N, Training, make_data


def planted(n=200, seed=0):
    """Rows of which a fifth have all their labels wrong, and what two models say of them."""
    generator = torch.Generator().manual_seed(seed)
    truth = torch.rand(n, K, generator=generator) < 0.4
    wrong = torch.rand(n, generator=generator) < 0.2
    labels = (truth ^ wrong[:, None]).to(torch.uint8)
    noise = torch.randn(2, n, K, generator=generator)
    both = (3 * truth - 1.5 + 1.5 * noise).sigmoid()
    return labels, torch.cat([both[0], both[1]], 1), wrong


@pytest.mark.parametrize("seed", range(3))
def test_each_peer_has_the_rows_that_the_other_holds_to_be_clean(seed):
    labels, confidence, wrong = planted(seed=seed)
    method = CoTeaching(warmup=0).start(labels, EPOCHS)
    facts = method.end_epoch(*confidence.split(K, 1))
    f_a, f_b = confidence.double().numpy().reshape(-1, 2, K).swapaxes(0, 1)
    np.testing.assert_array_equal(method.sets, reference.sets(f_a, f_b, labels.numpy()))
    assert not method.sets[0].equal(method.sets[1])
    assert facts["kept_a"] == pytest.approx(float(method.sets[0].double().mean()))
    assert facts["kept_b"] == pytest.approx(float(method.sets[1].double().mean()))
    assert method.sets[:, wrong].float().mean() < 0.3
    assert method.sets[:, ~wrong].float().mean() > 0.7


def test_the_table_says_what_peer_a_trains_on():
    labels, confidence, _ = planted()
    method = CoTeaching(warmup=0).start(labels, EPOCHS)
    method.end_epoch(*confidence.split(K, 1))
    table = method.table
    kept = method.sets[0, :, None].expand(-1, K)
    assert (table.whole().weight > 0).equal(kept)
    assert (table.status == Status.CLEAN).equal(kept)
    assert (table.clean > 0.5).equal(kept)
    assert table.whole().target.equal(labels.float())


def test_a_set_of_less_than_two_batches_is_not_trained_on():
    labels, confidence, _ = planted()
    method = CoTeaching(warmup=0).start(labels, EPOCHS)
    method.batches(60)
    assert "sets_too_small" not in method.end_epoch(*confidence.split(K, 1))
    assert not method.sets.all()
    method.batches(100)
    assert method.end_epoch(*confidence.split(K, 1))["sets_too_small"] == 2
    assert method.sets.all()
    assert (method.table.whole().weight == 1).all()
    assert (method.table.status == Status.CLEAN).all()
    assert (method.table.clean <= 0.5).any()


def test_losses_all_alike_keep_every_row():
    labels = make_data()[1]
    method = CoTeaching(warmup=0).start(labels, EPOCHS)
    facts = method.end_epoch(*torch.full((2, N, K), 0.5))
    assert facts["mixtures_constant"] == 2
    assert method.sets.all()


def test_rows_are_judged_from_the_last_epoch_of_the_warm_up_on():
    x, labels = make_data()
    training = Training(make_method("coteaching", labels, warmup=2), x)
    wanted, told = [], []
    for _ in range(EPOCHS):
        wanted.append(bool(training.method.request().passes))
        told.append("kept_a" in training.epoch())
    assert wanted == told == [False, True, True]
    assert not CoTeaching(select=False).start(labels, EPOCHS).request().passes


@pytest.mark.parametrize(("warmup", "epochs", "warm"), [(None, 50, 10), (None, 4, 1), (3, 50, 3)])
def test_the_warm_up_is_a_fifth_of_the_epochs_unless_given(warmup, epochs, warm):
    assert CoTeaching(warmup=warmup).start(make_data()[1], epochs).warm == warm


def test_the_confidence_of_one_peer_is_refused():
    labels, confidence, _ = planted()
    method = CoTeaching(warmup=0).start(labels, EPOCHS)
    for wrong, message in (
        ((), "2 matrices of confidence"),
        (confidence[:, :K].split(K, 1), "2 matrices of confidence"),
        (confidence[1:].split(K, 1), "N×K"),
        ((confidence * torch.nan).split(K, 1), "between 0 and 1"),
    ):
        with pytest.raises(ValueError, match=message):
            method.end_epoch(*wrong)
