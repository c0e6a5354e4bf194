"""BalanceMix re-labels by views of a row, and looking leaves the model as it was."""

from typing import Any

import pytest
import torch
from torch import nn

from balancemix.labels.table import Status
from balancemix.methods import BalanceMix
from balancemix.models.classifier import evaluating
from balancemix.training.predict import predict
from tests.methods.cases import known_case, managed, some_mixtures
from tests.methods.draws import lambda_of
from tests.toys import EPOCHS, D, Echo, K, N, Rows, make_model, same


def echo_case(**options):
    """Row 0 of a model that says what it is shown: three doubted labels, one clean, one doubted."""
    labels = torch.tensor([[0, 1, 0, 1, 1]] * N)
    kept: dict[str, Any] = {"warmup": 0, "epsilon": 0.8, "relabel": "paper"}
    method = BalanceMix(**kept | options).start(labels, EPOCHS)
    clean = torch.tensor([[0.1, 0.2, 0.3, 0.9, 0.4]]).expand(N, -1)
    method.table.write(slice(None), Status.CLEAN, clean)
    method.mixtures, method.epoch = some_mixtures(), 1
    return method


def test_re_labelling_goes_by_the_mean_of_both_views():
    method = echo_case()
    first = torch.tensor([[0.99, 0.01, 0.99, 0.01, 0.99]])
    second = torch.tensor([[0.70, 0.30, 0.55, 0.01, 0.90]])  # means 0.845, 0.155, 0.77, 0.01, 0.945
    target, weight = managed(method, Echo(), [first.logit(), second.logit()], torch.tensor([0]))
    assert target.tolist() == [[1, 0, 0, 1, 1]]
    torch.testing.assert_close(weight, torch.tensor([[1, 1, 0.3, 1, 1]]), rtol=0.004, atol=0)


def test_a_single_view_decides_alone():
    view = torch.tensor([[0.99, 0.01, 0.55, 0.01, 0.5]])
    target, weight = managed(echo_case(), Echo(), view.logit(), torch.tensor([0]))
    assert target.tolist() == [[1, 0, 0, 1, 1]]
    torch.testing.assert_close(weight, torch.tensor([[1, 1, 0.3, 1, 0.4]]), rtol=0.004, atol=0)


def test_more_than_two_views_are_averaged_too():
    views = [torch.full((1, K), p).logit() for p in (0.99, 0.99, 0.2)]  # mean 0.727
    target, _ = managed(echo_case(epsilon=0.75), Echo(), views, torch.tensor([0]))
    assert target.tolist() == [[0, 1, 0, 1, 1]]
    target, _ = managed(echo_case(epsilon=0.7), Echo(), views, torch.tensor([0]))
    assert target.tolist() == [[1, 1, 1, 1, 1]]


def test_refined_labels_last_for_the_step_only():
    method = echo_case()
    kept = method.table.state_dict()
    managed(method, Echo(), torch.full((2, K), 5.0), torch.tensor([0, 1]))
    assert same(method.table.state_dict(), kept)


def test_rows_without_doubted_labels_are_not_forwarded():
    method, shown = echo_case(), []
    even = (torch.arange(N) % 2 == 0)[:, None]
    method.table.write(slice(None), Status.CLEAN, torch.where(even, 0.9, method.table.clean))
    model = Echo()
    model.register_forward_hook(lambda module, inputs, output: shown.append(len(output)))
    views = [torch.zeros(6, K), torch.zeros(6, K)]
    managed(method, model, views, torch.arange(6))
    managed(method, model, views, torch.tensor([0, 2, 4, 6, 8, 10]))
    assert shown == [6]  # two views of three rows, then none


# The model (oracle 14).


def frozen_model():
    """Two normalisations, the first frozen in evaluation mode, and a dropout."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(D, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.BatchNorm1d(16)
    )
    model.append(nn.Linear(16, K))
    model.train()
    model[1].eval()
    return model


def snapshot(model):
    return {name: buffer.clone() for name, buffer in model.named_buffers()}


@pytest.mark.parametrize("make", [make_model, frozen_model])
def test_views_leave_buffers_modes_and_random_state_unchanged(make):
    method, _, x, index = known_case()
    model = make()
    buffers, modes = snapshot(model), [module.training for module in model.modules()]
    state = torch.get_rng_state()
    target, _ = managed(method, model, [x[index], x[index] + 0.5], index)
    assert same(snapshot(model), buffers)
    assert [module.training for module in model.modules()] == modes
    assert torch.get_rng_state().equal(state)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not target.requires_grad


def test_a_step_moves_buffers_by_its_one_forward_of_the_mixed_rows():
    method, _, x, index = known_case()
    model, twin = make_model(), make_model()
    lam = lambda_of(method)
    loss = method.loss(model, [x[index], x[index] + 0.5], index)
    twin(lam * x[index[:4]] + (1 - lam) * x[index[4:]])
    for name, buffer in twin.named_buffers():
        torch.testing.assert_close(dict(model.named_buffers())[name], buffer)
    assert model[1].num_batches_tracked == 1
    assert loss.requires_grad


def test_a_frozen_normalisation_stays_frozen_through_steps_and_predictions():
    method, _, x, index = known_case()
    model = frozen_model()
    frozen = {name: buffer.clone() for name, buffer in model[1].named_buffers()}
    for _ in range(3):
        method.loss(model, [x[index], x[index] + 0.5], index).backward()
        method.end_epoch(predict(model, Rows(x)))
    assert same(dict(model[1].named_buffers()), frozen)
    assert [module.training for module in model] == [True, False, True, True, True, True]


def test_modes_come_back_even_if_the_forward_pass_fails():
    model = frozen_model()
    with pytest.raises(ZeroDivisionError), evaluating(model):
        raise ZeroDivisionError
    assert [module.training for module in model] == [True, False, True, True, True, True]
    assert torch.is_grad_enabled()
