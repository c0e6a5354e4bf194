"""Mixup against Eq. 1 on mixed rows."""

import pytest
import torch

from balancemix.methods import Mixup
from balancemix.methods.mixing import draw_lambda
from tests.methods.cases import confidence_of
from tests.reference import balancemix as reference
from tests.toys import SIZE, make_data, make_model


def test_mixup_equals_equation_1_on_rows_mixed_with_a_permutation():
    x, labels = make_data()
    method, model, index = Mixup().start(labels, 1), make_model(norm=False), torch.arange(SIZE)
    known = torch.Generator()
    known.set_state(method.generator.get_state())
    partner, lam = torch.randperm(SIZE, generator=known), float(draw_lambda(4.0, known))
    f, Y = [], []
    for i in range(SIZE):
        j = int(partner[i])
        f.append(confidence_of(model)(reference.mix(x[i], x[j], lam)))
        Y.append(reference.mix(labels[i], labels[j], lam))
    want = reference.batch_loss(f, Y)
    assert method.loss(model, x[index], index).item() == pytest.approx(want, rel=1e-5)
