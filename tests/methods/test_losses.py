"""The element-wise losses against Eq. 1 and their own laws."""

import numpy as np
import pytest
import torch

from balancemix.labels.mixtures import label_loss
from balancemix.methods.losses import asl, bce, entropy, focal, hill, sides, splc
from tests.reference import balancemix as reference
from tests.reference import losses as literal

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
EVERY_LOSS = [
    bce,
    focal,
    lambda z, y: focal(z, y, 0.5),
    asl,
    lambda z, y: asl(z, y, detach=False),
    lambda z, y: asl(z, y, 2.0, 1.0, 0.0, detach=False),
    lambda z, y: asl(z, y, 0.5, 0.5, 0.05, detach=False),
    hill,
    splc,
    lambda z, y: entropy(z),
]


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
def test_label_loss_equals_equation_1(dtype):
    logits, soft = drawn(4)
    labels = soft.round().to(torch.uint8)
    confidence = logits.sigmoid().to(dtype)
    got = label_loss(labels, confidence)
    assert got.dtype == dtype
    for i, k in np.ndindex(*got.shape):
        want = reference.bce(float(confidence[i, k]), int(labels[i, k]))
        assert float(got[i, k]) == pytest.approx(want, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_label_loss_is_finite_and_not_negative_at_0_and_1(dtype):
    confidence = torch.tensor([0.0, 1.0, 1e-30, 1 - 6e-8], dtype=dtype)
    for labels in (torch.zeros(4), torch.ones(4), torch.ones(4, dtype=torch.uint8)):
        losses = label_loss(labels, confidence)
        assert losses.isfinite().all()
        assert (losses >= 0).all()
    assert label_loss(torch.ones(4), confidence)[0] > 16
    assert label_loss(torch.ones(4), confidence)[1] < 1e-6


def test_label_loss_never_grows_with_the_confidence_in_the_label():
    confidence = torch.linspace(0, 1, 10_001)
    assert (label_loss(torch.ones(10_001), confidence).diff() <= 0).all()
    assert (label_loss(torch.zeros(10_001), confidence).diff() >= 0).all()


# Losses in BCE's place.


@pytest.mark.parametrize(
    ("loss", "formula", "settings"),
    [
        (focal, literal.focal, (2.0,)),
        (focal, literal.focal, (0.5,)),
        (asl, literal.asl, (4.0, 0.0, 0.05)),
        (asl, literal.asl, (2.0, 1.0, 0.2)),
        (asl, literal.asl, (3.0, 0.5, 0.0)),
        (hill, literal.hill, (2.0, 1.0, 1.5)),
        (hill, literal.hill, (1.0, 0.5, 2.0)),
    ],
)
def test_losses_equal_their_equations_for_hard_and_soft_labels(loss, formula, settings):
    logits, soft = drawn(5)
    for target in (soft, soft.round()):
        want = literal.each(formula, logits.numpy(), target.numpy(), *settings)
        np.testing.assert_allclose(loss(logits, target, *settings).numpy(), want, rtol=1e-9)


@pytest.mark.parametrize("settings", [(0.6, 1.0, 2.0), (0.65, 0.5, 1.0), (0.6, 0.0, 0.0)])
def test_splc_equals_its_steps_for_hard_labels(settings):
    logits, soft = drawn(6)
    want = literal.each(literal.splc, logits.numpy(), soft.round().numpy(), *settings)
    np.testing.assert_allclose(splc(logits, soft.round(), *settings).numpy(), want, rtol=1e-9)


def test_splc_corrects_strictly_above_tau_and_never_at_1():
    logits = torch.tensor([[-1.0, 0.0, 1e-6, 90.0]], dtype=torch.float64)
    zeros = torch.zeros_like(logits)
    corrected = splc(logits, zeros, tau=0.5, margin=0.0, gamma=0.0) == sides(logits)[0]
    assert corrected.tolist() == [[False, True, True, True]]  # at 0 both sides are the same
    tied = splc(logits, zeros, tau=0.5, gamma=1.0) - focal(logits, zeros, 1.0)
    assert (tied != 0).tolist() == [[False, False, True, True]]
    assert splc(logits, zeros, tau=1.0).equal(focal(logits, zeros))


def test_entropy_is_the_expected_bce_of_a_model_that_is_right():
    logits, _ = drawn(7)
    torch.testing.assert_close(entropy(logits), bce(logits, logits.sigmoid()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "loss",
    [
        lambda z, y: focal(z, y, 0.0),
        lambda z, y: asl(z, y, 0.0, 0.0, 0.0),
        lambda z, y: asl(z, y, 0.0, 0.0, 0.0, detach=False),
        lambda z, y: splc(z, y, 1.0, 0.0, 0.0),
    ],
)
def test_without_their_constants_losses_equal_bce(loss, dtype):
    logits, soft = (tensor.to(dtype) for tensor in drawn(8))
    logits[0, :2] = torch.tensor([50.0, -50.0])
    for target in (soft, soft.round()):
        ours, plain = logits.clone().requires_grad_(), logits.clone().requires_grad_()
        values = loss(ours, target), bce(plain, target)
        for side in values:
            side.sum().backward()
        torch.testing.assert_close(*values)
        torch.testing.assert_close(ours.grad, plain.grad)
    assert values[0].equal(values[1])  # hard labels: to the last bit
    assert ours.grad is not None
    assert ours.grad.equal(plain.grad)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0, 4.0])
def test_asl_with_equal_gammas_and_no_clip_is_focal(gamma):
    logits, soft = drawn(9)
    ours, plain = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    for detach in (True, False):
        values = asl(ours, soft, gamma, gamma, 0.0, detach), focal(plain, soft, gamma)
        torch.testing.assert_close(*values)
    for side in values:  # the gradients are equal only where the weights have theirs
        side.sum().backward()
    torch.testing.assert_close(ours.grad, plain.grad)


@pytest.mark.parametrize("settings", [(4.0, 0.0, 0.05), (2.0, 1.0, 0.2), (1.0, 1.0, 0.0)])
def test_asl_has_the_gradient_of_its_losses_alone(settings):
    logits, soft = drawn(10)
    for target in (soft, soft.round()):
        leaf = logits.clone().requires_grad_()
        asl(leaf, target, *settings).sum().backward()
        want = literal.each(literal.asl_slope, logits.numpy(), target.numpy(), *settings)
        assert leaf.grad is not None
        np.testing.assert_allclose(leaf.grad.numpy(), want, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("detach", [True, False])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 4.0])
def test_asl_of_absent_labels_below_the_clip_is_zero_with_zero_gradient(gamma, detach):
    confidence = torch.tensor([1e-6, 0.01, 0.0499, 0.0501, 0.3])
    logits = confidence.logit().requires_grad_()
    values = asl(logits, torch.zeros(5), gamma, 0.0, 0.05, detach)
    values.sum().backward()
    assert logits.grad is not None
    assert (values == 0).tolist() == (logits.grad == 0).tolist() == [True] * 3 + [False] * 2


def test_asl_leaves_the_callers_gradient_mode_as_it_was():
    logits, soft = drawn(11)
    with torch.no_grad():
        asl(logits, soft)
        assert not torch.is_grad_enabled()
    asl(logits, soft)
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("loss", EVERY_LOSS[:-1])
def test_losses_are_linear_in_the_target(loss):
    logits, first = drawn(12)
    second = drawn(13)[1]
    for share in (0.0, 0.25, 0.637, 1.0):
        mixed = loss(logits, share * first + (1 - share) * second)
        blended = share * loss(logits, first) + (1 - share) * loss(logits, second)
        torch.testing.assert_close(mixed, blended, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("loss", EVERY_LOSS)
def test_losses_and_gradients_are_finite_at_logits_of_50(loss, dtype):
    logits = torch.tensor([-50.0, -20.0, 0.0, 20.0, 50.0]).repeat(3, 1).to(dtype).requires_grad_()
    target = torch.tensor([[0.0], [1.0], [0.3]]).expand(3, 5).to(dtype)
    values = loss(logits, target)
    values.sum().backward()
    assert values.isfinite().all()
    assert (values >= 0).all()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("loss", EVERY_LOSS[1:])
def test_half_precision_is_computed_in_float32(loss, dtype):
    logits, soft = drawn(14)
    half = logits.to(dtype)
    assert loss(half, soft.float()).dtype == torch.float32
    assert loss(half, soft.float()).equal(loss(half.float(), soft.float()))


@pytest.mark.parametrize(
    "loss", [focal, lambda z, y: asl(z, y, 2.0, 1.0, 0.05, detach=False), hill, splc]
)
def test_losses_have_the_gradients_of_their_values(loss):
    logits, soft = drawn(15, 3, 2)
    for target in (soft, soft.round()):
        assert torch.autograd.gradcheck(loss, (logits.requires_grad_(), target))
