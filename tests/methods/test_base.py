"""BCE, Mixup, and what the base refuses for every method."""

import pytest
import torch

from balancemix.errors import InputError
from balancemix.methods import BCE, Method, Mixup
from tests.methods.cases import confidence_of
from tests.methods.draws import pairing_of
from tests.reference import balancemix as reference
from tests.toys import SIZE, make_data, make_model


def test_bce_equals_equation_1():
    x, labels = make_data()
    model, index = make_model(norm=False), torch.tensor([3, 1, 4, 15])
    f = model(x[index]).sigmoid().detach().numpy()
    want = reference.batch_loss(f, labels[index].numpy())
    assert BCE().start(labels, 1).loss(model, x[index], index).item() == pytest.approx(want)


def test_mixup_equals_equation_1_on_rows_mixed_with_a_permutation():
    x, labels = make_data()
    method, model, index = Mixup().start(labels, 1), make_model(norm=False), torch.arange(SIZE)
    partner, lam = pairing_of(method, SIZE)
    f, Y = [], []
    for i in range(SIZE):
        j = int(partner[i])
        f.append(confidence_of(model)(reference.mix(x[i], x[j], lam)))
        Y.append(reference.mix(labels[i], labels[j], lam))
    want = reference.batch_loss(f, Y)
    assert method.loss(model, x[index], index).item() == pytest.approx(want, rel=1e-5)


def test_a_method_that_overrides_loss_is_told_what_to_override():
    class Old(Method):
        def loss(self, model, x, index):  # type: ignore[misc]
            return super().loss(model, x, index)

    with pytest.raises(InputError, match=r"Old\.loss is final; override batch_loss"):
        Old().start(make_data()[1], 1)
