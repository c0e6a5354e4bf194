"""The ML-Decoder head against a literal transcription, and what is and is not trained."""

import numpy as np
import pytest
import torch

from balancemix.errors import InputError
from balancemix.models.ml_decoder import MLDecoder
from tests.reference import ml_decoder as reference

HEADS = 4


def small(classes, features=6, groups=4, **options):
    torch.manual_seed(0)
    decoder = MLDecoder(
        features, classes, groups=groups, width=16, heads=HEADS, feedforward=24, **options
    )
    for parameter in decoder.parameters():  # zeros and ones would hide a missing bias or norm
        torch.nn.init.normal_(parameter, std=0.5)
    return decoder.double().eval()


def expected(decoder, tokens):
    weights = {name: value.numpy() for name, value in decoder.state_dict().items()}
    return reference.logits(tokens.numpy(), weights, HEADS)


# Fewer classes than groups; as many; a multiple; and counts which leave outputs over.
@pytest.mark.parametrize("classes", [1, 3, 4, 5, 8, 11])
def test_logits_equal_the_reference(classes):
    decoder = small(classes)
    tokens = torch.randn(3, 7, 6, dtype=torch.float64)
    with torch.no_grad():
        found = decoder(tokens)
    assert found.shape == (3, classes)
    np.testing.assert_allclose(found.numpy(), expected(decoder, tokens), rtol=1e-10, atol=1e-10)


def test_a_map_is_its_positions_as_tokens():
    decoder = small(5)
    image = torch.randn(2, 6, 3, 4, dtype=torch.float64)
    tokens = torch.stack([image[:, :, h, w] for h in range(3) for w in range(4)], dim=1)
    torch.testing.assert_close(decoder(image), decoder(tokens))


def test_pooled_features_are_one_token():
    decoder = small(5)
    pooled = torch.randn(2, 6, dtype=torch.float64)
    torch.testing.assert_close(decoder(pooled), decoder(pooled[:, None]))


def test_frozen_queries_are_saved_but_not_trained():
    decoder = small(11).train()
    before = decoder.queries.clone()
    assert "queries" in decoder.state_dict()
    assert "queries" not in dict(decoder.named_parameters())
    decoder(torch.randn(3, 6, 2, 2, dtype=torch.float64)).square().sum().backward()
    assert decoder.queries.grad is None
    torch.testing.assert_close(decoder.queries, before)


def test_a_gradient_reaches_every_parameter():
    decoder = small(8)
    assert "queries" not in dict(decoder.named_parameters())
    x = torch.randn(3, 6, 2, 2, dtype=torch.float64, requires_grad=True)
    decoder(x).square().sum().backward()
    assert x.grad is not None
    assert x.grad.abs().sum() > 0
    for name, parameter in decoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_dropout_differs_between_rows_only_in_training():
    decoder = small(4, dropout=0.5)
    same = torch.randn(1, 6, dtype=torch.float64).expand(2, -1)
    a, b = decoder(same)
    torch.testing.assert_close(a, b)
    a, b = decoder.train()(same)
    assert not torch.allclose(a, b)


def test_the_paper_s_sizes_are_the_defaults():
    decoder = MLDecoder(1280, 80)
    assert decoder.queries.shape == (80, 768)
    assert decoder.weight.shape == (80, 768, 1)
    assert MLDecoder(8, 250).weight.shape == (100, 768, 3)
    assert decoder.bias.eq(0).all()


@pytest.mark.parametrize("wrong", [{"classes": 0}, {"groups": 0}, {"width": 30}, {"features": 0}])
def test_impossible_sizes_are_named(wrong):
    sizes = {"features": 4, "classes": 3} | wrong
    name, value = next(iter(wrong.items()))
    with pytest.raises(InputError, match=f"{name}={value}"):
        MLDecoder(**sizes)
