"""Folding changes how fast a model answers, and nothing else."""

import pytest
import timm
import torch
from torch import nn

from balancemix.models.fold import SamePaddingConv, folded
from balancemix.training.predict import predict_logits
from tests.toys import Rows


def used(model):
    """Give every BatchNorm statistics and weights, as training would."""
    generator = torch.Generator().manual_seed(0)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.running_mean, module.bias.data):
                tensor.normal_(0, 0.2, generator=generator)
            for tensor in (module.running_var, module.weight.data):
                tensor.uniform_(0.5, 1.5, generator=generator)
    return model


def norms(model):
    return sum(isinstance(module, nn.BatchNorm2d) for module in model.modules())


class Network(nn.Module):
    """Two convolutions with BatchNorm; `shortcut` takes the first one's outcome past it."""

    def __init__(self, shortcut=False, twice=False):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(4) for _ in range(2))
        self.shortcut, self.twice = shortcut, twice

    def forward(self, x):
        between = self.first(x)
        x = self.norms[0](between).relu()
        x = self.norms[1](self.second(x))
        if self.twice:
            x = self.norms[1](self.second(x))
        if self.shortcut:
            x = x + between
        return x.mean((2, 3))


@pytest.mark.parametrize("name", ["tf_efficientnet_lite0", "efficientnet_b0", "resnet18"])
def test_backbones_say_the_same_without_their_norms(name):
    torch.manual_seed(0)
    model = used(timm.create_model(name, num_classes=5)).eval()
    x = torch.randn(3, 3, 64, 64)
    quick = folded(model, x[:1])
    assert norms(quick) == 0 < norms(model)
    with torch.no_grad():
        torch.testing.assert_close(quick(x), model(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [64, 60, 63])  # 60 becomes odd on the way
def test_padding_is_folded_where_sizes_are_even_and_kept_where_not(size):
    torch.manual_seed(0)
    model = used(timm.create_model("tf_efficientnet_lite0", num_classes=5)).eval()
    quick = folded(model, torch.randn(1, 3, 64, 64))
    assert sum(isinstance(module, SamePaddingConv) for module in quick.modules()) == 5
    x = torch.randn(2, 3, size, size)
    with torch.no_grad():
        torch.testing.assert_close(quick(x), model(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "kind", [torch.float64, pytest.param(torch.bfloat16, marks=pytest.mark.bf16)]
)
def test_other_precisions_give_the_same_logits(kind):
    torch.manual_seed(0)
    model, x = used(Network()).eval().to(kind), torch.randn(2, 3, 8, 8, dtype=kind)
    quick = folded(model, x)
    torch.testing.assert_close(quick(x), model(x), rtol=0.1, atol=0.1)


def test_no_random_number_is_drawn():
    model = used(timm.create_model("tf_efficientnet_lite0", num_classes=5)).eval()
    before = torch.get_rng_state()
    folded(model, torch.zeros(1, 3, 64, 64))
    assert torch.equal(torch.get_rng_state(), before)


def test_folding_works_within_inference_mode():
    torch.manual_seed(0)
    model = used(timm.create_model("resnet18", num_classes=5)).eval()
    with torch.inference_mode():
        assert norms(folded(model, torch.randn(1, 3, 64, 64))) == 0


def test_the_model_itself_is_left_alone():
    torch.manual_seed(0)
    model = used(Network()).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert not folded(model, torch.randn(2, 3, 8, 8)).training
    assert model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())


def test_what_goes_past_a_norm_prevents_folding():
    torch.manual_seed(0)
    model = used(Network(shortcut=True))
    assert folded(model, torch.randn(2, 3, 8, 8)) is model


def test_a_norm_that_is_used_twice_stays():
    torch.manual_seed(0)
    model = used(Network(twice=True)).eval()
    x = torch.randn(2, 3, 8, 8)
    quick = folded(model, x)
    assert norms(quick) == 1
    torch.testing.assert_close(quick(x), model(x))


def test_a_model_that_cannot_be_copied_is_asked_itself():
    torch.manual_seed(0)
    model = used(Network()).eval()
    model.kept = model.first.weight * 2  # torch copies no tensor that has a history
    x = torch.randn(2, 3, 8, 8)
    assert folded(model, x) is model
    said = predict_logits(model, Rows(x))
    torch.testing.assert_close(said, model(x).detach())


def test_models_without_norms_are_themselves():
    model = nn.Linear(2, 3)
    assert folded(model, torch.zeros(1, 2)) is model


def test_predictions_are_those_of_the_model():
    torch.manual_seed(0)
    model, x = used(Network()), torch.randn(10, 3, 8, 8)
    said = predict_logits(model, Rows(x), batch_size=4)
    torch.testing.assert_close(said, model.eval()(x).detach())
