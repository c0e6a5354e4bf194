"""The Query2Label head against a literal transcription, and where models use it."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from balancemix.errors import InputError
from balancemix.models.classifier import build_model
from balancemix.models.query2label import Query2Label, sine_positions
from balancemix.plan.plan import Plan
from tests.reference import query2label as reference


def small(classes=5, features=6, **options):
    torch.manual_seed(0)
    sizes = {"width": 8, "heads": 2, "feedforward": 12} | options
    head = Query2Label(features, classes, **sizes)
    for parameter in head.parameters():  # zeros and ones would hide a missing bias or norm
        torch.nn.init.normal_(parameter, std=0.5)
    return head.double().eval()


@pytest.mark.parametrize(
    ("options", "layers"),
    [
        ({}, (1, 2)),
        ({"classes": 1}, (1, 2)),
        ({"features": 8}, (1, 2)),  # of the head's width: taken as it is
        ({"encoders": 0, "decoders": 1}, (0, 1)),
        ({"encoders": 2, "decoders": 3}, (2, 3)),
    ],
)
def test_logits_equal_the_reference(options, layers):
    head = small(**options)
    image = torch.randn(2, options.get("features", 6), 2, 3, dtype=torch.float64)
    with torch.no_grad():
        found = head(image)
    weights = {name: value.numpy() for name, value in head.state_dict().items()}
    expected = reference.logits(image.numpy(), weights, 2, layers)
    assert found.shape == (2, options.get("classes", 5))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("height", "width"), [(1, 1), (3, 2), (2, 5)])
def test_positions_equal_the_reference(height, width):
    found = sine_positions(height, width, torch.zeros(12, dtype=torch.float64))
    expected = [
        reference.position(h, w, height, width, 12) for h in range(height) for w in range(width)
    ]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_a_map_has_places_and_tokens_have_none():
    head = small()
    image = torch.randn(2, 6, 2, 3, dtype=torch.float64)
    turned = image.flip(3)
    assert not torch.allclose(head(image), head(turned))
    tokens = image.flatten(2).mT
    torch.testing.assert_close(head(tokens), head(tokens.flip(1)))


def test_pooled_features_are_one_token():
    head = small()
    pooled = torch.randn(2, 6, dtype=torch.float64)
    torch.testing.assert_close(head(pooled), head(pooled[:, None]))


def test_a_gradient_reaches_every_parameter():
    head = small()
    x = torch.randn(3, 6, 2, 2, dtype=torch.float64, requires_grad=True)
    head(x).square().sum().backward()
    assert x.grad is not None
    assert x.grad.abs().sum() > 0
    for name, parameter in head.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_dropout_differs_between_rows_only_in_training():
    head = small(dropout=0.5)
    same = torch.randn(1, 6, 2, 2, dtype=torch.float64).expand(2, -1, -1, -1)
    a, b = head(same)
    torch.testing.assert_close(a, b)
    a, b = head.train()(same)
    assert not torch.allclose(a, b)


def test_the_paper_s_sizes_are_the_defaults():
    with torch.device("meta"):  # 150 million weights
        head = Query2Label(2048, 80)
    assert head.queries.shape == head.weight.shape == (80, 2048)
    assert (len(head.encoder), len(head.decoder)) == (1, 2)
    layer: Any = head.encoder[0]
    assert (layer.attention.num_heads, layer.feedforward[0].out_features) == (4, 8192)
    assert layer.dropout.p == layer.attention.dropout == 0.1
    assert isinstance(head.project, torch.nn.Identity)


def test_weights_begin_as_the_original_s():
    torch.manual_seed(0)
    head = Query2Label(6, 40, width=64, feedforward=32)
    for output in (head.weight, head.bias):
        assert output.abs().max() <= 1 / 8
        assert output.std().item() == pytest.approx(1 / 8 / math.sqrt(3), rel=0.2)
    first = head.decoder.get_parameter("0.feedforward.0.weight")
    assert 0.2 < first.abs().max() <= math.sqrt(6 / (64 + 32))
    assert head.queries.std().item() == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize(
    "wrong",
    [{"classes": 0}, {"width": 30}, {"width": 6, "heads": 2}, {"features": 0}, {"decoders": 0}],
)
def test_impossible_sizes_are_named(wrong):
    name, value = next(iter(wrong.items()))
    with pytest.raises(InputError, match=f"{name}={value}"):
        Query2Label(**({"features": 4, "classes": 3, "width": 8, "feedforward": 8} | wrong))


# A map, tokens, and a map with its channels last.
@pytest.mark.parametrize(
    "backbone", ["resnet18", "vit_tiny_patch16_224", "swin_tiny_patch4_window7_224"]
)
def test_images_give_logits(backbone):
    model = build_model(
        classes=5, backbone=backbone, head="query2label", hidden=16, pretrained=False, image_size=64
    )
    assert isinstance(model.head, Query2Label)
    assert model.head.decoder.get_parameter("0.feedforward.0.weight").shape[0] == 64
    logits = model(torch.randn(2, 3, 64, 64))
    assert logits.shape == (2, 5)
    logits.square().sum().backward()
    # None without a gradient: two processes could not train it otherwise.
    assert [n for n, p in model.named_parameters() if p.grad is None] == []


def test_features_give_logits_and_a_plan_can_name_the_head():
    model = build_model(classes=5, features=12, head="query2label", hidden=16)
    assert model(torch.randn(4, 12)).shape == (4, 5)
    plan = Plan.from_tree({"model": {"head": "query2label"}})
    assert plan.model.head == "query2label"
