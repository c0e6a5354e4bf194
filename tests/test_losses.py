"""The element-wise losses against Eq. 1 and their own laws."""

import numpy as np
import pytest
import torch

from balancemix.losses import bce, bce_of_confidence
from tests.reference import balancemix as reference


def drawn(seed=0, n=7, k=5):
    generator = torch.Generator().manual_seed(seed)
    logits = 4 * torch.randn(n, k, generator=generator, dtype=torch.float64)
    return logits, torch.rand(n, k, generator=generator, dtype=torch.float64)


def test_bce_of_hard_and_soft_labels_equals_equation_1():
    logits, soft = drawn()
    for target in (soft, soft.round()):
        got = bce(logits, target)
        assert got.shape == logits.shape
        f = logits.sigmoid().numpy()
        for place in np.ndindex(*got.shape):
            want = reference.bce(f[place], float(target[place]))
            assert float(got[place]) == pytest.approx(want, rel=1e-9)
        assert float(got.sum(1).mean()) == pytest.approx(reference.batch_loss(f, target.numpy()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_bce_and_its_gradient_are_finite_at_logits_of_50(dtype):
    logits = torch.tensor([-50.0, 50.0]).repeat(3, 1).to(dtype).requires_grad_()
    target = torch.tensor([[0.0], [1.0], [0.3]]).expand(3, 2).to(dtype)
    values = bce(logits, target)
    values.sum().backward()
    assert values.isfinite().all()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    expected = torch.tensor([[0.0, 50.0], [50.0, 0.0], [15.0, 35.0]])
    torch.testing.assert_close(values.detach().float(), expected, rtol=0.01, atol=1e-6)


def test_bce_has_the_gradient_of_its_values():
    logits, soft = drawn(1, 3, 2)
    for target in (soft, soft.round()):
        assert torch.autograd.gradcheck(bce, (logits.requires_grad_(), target))


def test_bce_is_linear_in_the_target():
    logits, first = drawn(2)
    second = drawn(3)[1]
    for share in (0.0, 0.25, 0.637, 1.0):
        mixed = bce(logits, share * first + (1 - share) * second)
        blended = share * bce(logits, first) + (1 - share) * bce(logits, second)
        torch.testing.assert_close(mixed, blended, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bce_of_confidence_equals_equation_1(dtype):
    logits, soft = drawn(4)
    labels = soft.round().to(torch.uint8)
    confidence = logits.sigmoid().to(dtype)
    got = bce_of_confidence(confidence, labels)
    assert got.dtype == dtype
    for i, k in np.ndindex(*got.shape):
        want = reference.bce(float(confidence[i, k]), int(labels[i, k]))
        assert float(got[i, k]) == pytest.approx(want, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bce_of_confidence_is_finite_and_not_negative_at_0_and_1(dtype):
    confidence = torch.tensor([0.0, 1.0, 1e-30, 1 - 6e-8], dtype=dtype)
    for labels in (torch.zeros(4), torch.ones(4), torch.ones(4, dtype=torch.uint8)):
        losses = bce_of_confidence(confidence, labels)
        assert losses.isfinite().all()
        assert (losses >= 0).all()
    assert bce_of_confidence(confidence, torch.ones(4))[0] > 16
    assert bce_of_confidence(confidence, torch.ones(4))[1] < 1e-6


def test_bce_of_confidence_never_grows_with_the_confidence_in_the_label():
    confidence = torch.linspace(0, 1, 10_001)
    assert (bce_of_confidence(confidence, torch.ones(10_001)).diff() <= 0).all()
    assert (bce_of_confidence(confidence, torch.zeros(10_001)).diff() >= 0).all()
