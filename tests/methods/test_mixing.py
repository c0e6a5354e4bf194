"""λ and the mix of two batches against Eq. 5."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from balancemix.methods.losses import bce
from balancemix.methods.mixing import draw_lambda, mix
from tests.reference import balancemix as reference


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("pairs", [1, 5])
def test_alpha_zero_gives_one(pairs):
    assert draw_lambda(0.0, seeded(), pairs).tolist() == [1.0] * pairs


@settings(deadline=None, max_examples=50)
@given(st.floats(0.05, 100), st.integers(0, 2**31), st.integers(1, 20))
def test_lambda_is_between_a_half_and_one(alpha, seed, pairs):
    lam = draw_lambda(alpha, seeded(seed), pairs)
    assert lam.shape == (pairs,)
    assert ((lam >= 0.5) & (lam <= 1)).all()


@pytest.mark.parametrize(("alpha", "mean"), [(1, 0.75), (2, 0.6875), (4, 0.637), (8, 0.598)])
def test_mean_of_lambda(alpha, mean):
    lam = draw_lambda(alpha, seeded(), 100_000, torch.float64)
    assert float(lam.mean()) == pytest.approx(mean, abs=0.002)


def test_lambda_is_distributed_as_the_dominant_of_a_beta_variable():
    beta = np.random.default_rng(0).beta(4, 4, 50_000)
    want = [reference.dominant(value) for value in beta]
    got = draw_lambda(4, seeded(), 50_000, torch.float64)
    shares = [0.1, 0.25, 0.5, 0.75, 0.9]
    np.testing.assert_allclose(np.quantile(got, shares), np.quantile(want, shares), atol=0.003)


def test_lambda_depends_on_its_generator_alone():
    torch.manual_seed(1)
    first = draw_lambda(4, seeded(3), 4)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    assert draw_lambda(4, seeded(3), 4).equal(first)
    assert torch.get_rng_state().equal(before)
    assert not draw_lambda(4, seeded(4), 4).equal(first)


def test_successive_lambdas_differ():
    generator = seeded()
    assert not draw_lambda(4, generator).equal(draw_lambda(4, generator))


def test_negative_alpha_is_refused():
    with pytest.raises(ValueError, match=r"alpha .* -1"):
        draw_lambda(-1, seeded())


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 2, 2)])
@pytest.mark.parametrize("pairs", [1, 4])
def test_mix_equals_equation_5_for_one_lambda_and_for_one_a_pair(shape, pairs):
    generator = seeded(5)
    first = torch.randn(shape, generator=generator, dtype=torch.float64)
    second = torch.randn(shape, generator=generator, dtype=torch.float64)
    lam = draw_lambda(4, generator, pairs, torch.float64)
    got = mix(first, second, lam)
    assert got.dtype == first.dtype
    for i in range(4):
        want = reference.mix(first[i], second[i], float(lam[i % pairs]))
        np.testing.assert_allclose(got[i], want, rtol=1e-12)


def test_mix_at_lambda_one_is_the_first_batch_bit_for_bit():
    first, second = torch.randn(2, 8, 5, generator=seeded())
    assert mix(first, second, torch.ones(1)).equal(first)


def test_mix_leaves_its_inputs_alone():
    first, second = torch.randn(2, 8, 5, generator=seeded())
    kept = first.clone(), second.clone()
    mix(first, second, torch.tensor([0.6]))
    assert first.equal(kept[0])
    assert second.equal(kept[1])


@pytest.mark.parametrize("pairs", [1, 6])
def test_mixing_targets_of_bce_equals_mixing_its_losses(pairs):
    generator = seeded(6)
    logits = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    first, second = torch.rand(2, 6, 4, generator=generator, dtype=torch.float64).round()
    lam = draw_lambda(4, generator, pairs, torch.float64)
    of_mixed = bce(logits, mix(first, second, lam))
    torch.testing.assert_close(of_mixed, mix(bce(logits, first), bce(logits, second), lam))
