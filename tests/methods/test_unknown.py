"""Labels that are unknown (−1): they have no loss, whatever they are mixed with."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from balancemix.methods import BCE, Mixup
from tests.methods.draws import pairing_of
from tests.toys import EPOCHS, SIZE, Echo, K, Training, make_data, make_model


def hidden(labels, share=0.5, seed=11):
    """The labels with a share of both sides unknown."""
    generator = torch.Generator().manual_seed(seed)
    unknown = torch.rand(labels.shape, generator=generator) < share
    return labels.to(torch.int8).masked_fill(unknown, -1)


def loss_of_label(logit, label):
    """Eq. 1 for one label; none for an unknown one."""
    if label < 0:
        return 0.0
    return float(np.log1p(np.exp(-logit if label else logit)))


def sum_of_known(logits, given, partner, lam):
    """The mean over rows of the known labels' losses, each row and its partner by their share."""
    rows = [
        sum(
            lam * loss_of_label(logits[i, k], given[i, k])
            + (1 - lam) * loss_of_label(logits[i, k], given[j, k])
            for k in range(logits.shape[1])
        )
        for i, j in enumerate(partner)
    ]
    return sum(rows) / len(rows)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_masked_bce_is_bce_on_the_known_labels(share):
    x, labels = make_data()
    given, model, index = hidden(labels, share), make_model(norm=False), torch.arange(SIZE)
    logits = model(x[index]).detach().double().numpy()
    want = sum_of_known(logits, given[index].numpy(), range(SIZE), 1.0)
    loss = BCE().start(given, 1).loss(model, x[index], index)
    assert loss.item() == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_masked_mixup_is_the_mix_of_the_known_labels_losses(share):
    x, labels = make_data()
    given, model, index = hidden(labels, share), make_model(norm=False), torch.arange(SIZE)
    method = Mixup().start(given, 1)
    partner, lam = pairing_of(method, SIZE)
    mixed = lam * x[index] + (1 - lam) * x[index][partner]
    logits = model(mixed).detach().double().numpy()
    want = sum_of_known(logits, given[index].numpy(), partner.tolist(), lam)
    assert method.loss(model, x[index], index).item() == pytest.approx(want, rel=1e-5)


def test_the_mean_over_classes_divides_by_all_of_them():
    x, labels = make_data()
    given, model, index = hidden(labels), make_model(norm=False), torch.arange(SIZE)
    total, mean = (
        BCE(reduction=reduction).start(given, 1).loss(model, x[index], index)
        for reduction in ("sum", "mean")
    )
    torch.testing.assert_close(total, mean * K)


@pytest.mark.parametrize("method", [BCE(), Mixup()])
def test_unknown_labels_have_no_gradient(method):
    logits = torch.randn(SIZE, K, generator=torch.Generator().manual_seed(0)).requires_grad_()
    given = hidden(make_data()[1])[:SIZE]
    given[:, 1] = -1
    method.start(given, 1).loss(Echo(), logits, torch.arange(SIZE)).backward()
    gradient = logits.grad
    assert gradient is not None
    if not method.alpha:
        assert ((gradient != 0) == (given >= 0)).all()
    assert (gradient[:, 1] == 0).all()
    assert (gradient[:, 0] != 0).any()


@pytest.mark.parametrize("alpha", [0.0, 4.0])
def test_a_class_that_is_unknown_everywhere_is_training_without_its_loss(alpha):
    x, labels = make_data()
    given = labels.to(torch.int8)
    given[:, 2] = -1
    masked = Training(Mixup(alpha=alpha).start(given, EPOCHS), x).run()
    without = Training(Fewer(alpha=alpha).start(labels, EPOCHS), x).run()
    torch.testing.assert_close(masked.weights(), without.weights())
    first, last = make_model().state_dict(), masked.model.state_dict()
    for name in ("3.weight", "3.bias"):  # of the last layer
        assert last[name][2].equal(first[name][2])
        assert not last[name][1].equal(first[name][1])


class Fewer(Mixup):
    """Mixup that leaves out the loss of class 2."""

    def reduce(self, values):
        return super().reduce(values[:, [0, 1, 3, 4]])


def test_a_mixed_label_takes_the_value_of_the_row_that_has_one():
    given = torch.tensor([[1, -1], [-1, -1]], dtype=torch.int8)
    method, index = Mixup().start(given, 1, seed=1), torch.tensor([0, 1])
    partner, lam = pairing_of(method, 2)
    assert partner.tolist() == [1, 0]
    logits = torch.tensor([[2.0, 3.0], [2.0, 3.0]])
    loss = method.loss(Echo(), logits, index).item()
    of_present = float(F.softplus(torch.tensor(-2.0)))
    # One row has it by λ, the other by 1 − λ.
    assert loss == pytest.approx((lam + (1 - lam)) * of_present / 2)


@pytest.mark.parametrize("kind", [np.int64, np.float32, np.float64])
def test_arrays_and_nan_are_read(kind):
    x, labels = make_data()
    given, array = hidden(labels), hidden(labels).numpy().astype(kind)
    if kind is not np.int64:
        array[array < 0] = np.nan
    one, other = (Training(BCE().start(each, EPOCHS), x).run() for each in (given, array))
    assert one.weights().equal(other.weights())
