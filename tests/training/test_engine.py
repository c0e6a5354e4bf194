"""The engine's arithmetic: rates, weight decay, clipping, accumulation, averaged weights."""

import math

import pytest
import torch
from torch import nn

from balancemix.plan.plan import Plan
from balancemix.training.engine import Engine

BATCHES, EPOCHS = 5, 4


def engine(**train) -> Engine:
    settings = {"device": "cpu", "lr": 0.5, "epochs": EPOCHS, **train}
    model = nn.Linear(2, 1, bias=False)
    nn.init.constant_(model.weight, 2.0)
    made = Engine(model, Plan.from_tree({"train": settings}))
    made.schedule(EPOCHS, BATCHES)
    return made


def weight(model: nn.Module) -> list[float]:
    return model.state_dict()["weight"].flatten().tolist()


def loss_of(made: Engine, *factors: float) -> torch.Tensor:
    """A loss whose gradient is `factors`."""
    return made.model(torch.tensor([factors])).sum()


def test_the_rate_is_half_a_cosine_from_its_start_to_zero():
    made = engine(weight_decay=0.0, momentum=0.0)
    total = EPOCHS * BATCHES
    for step in range(total):
        assert made.rate == pytest.approx(0.5 * 0.5 * (1 + math.cos(math.pi * step / total)))
        made.step(loss_of(made, 1.0, 1.0))
    assert made.rate == pytest.approx(0, abs=1e-12)


def test_a_constant_rate_stays():
    made = engine(schedule="constant")
    for _ in range(3):
        made.step(loss_of(made, 1.0, 1.0))
    assert made.rate == 0.5


@pytest.mark.parametrize("accumulate", [2, 3])
def test_the_rate_counts_steps_and_an_epochs_last_batch_is_one(accumulate):
    made = engine(accumulate=accumulate)
    for _ in range(EPOCHS):
        assert made.rate > 0
        for batch in range(BATCHES):
            made.step(loss_of(made, 1.0, 1.0), last=batch + 1 == BATCHES)
    assert made.rate == pytest.approx(0, abs=1e-12)


def test_accumulated_batches_are_averaged():
    made = engine(accumulate=2, momentum=0.0, weight_decay=0.0, schedule="constant")
    made.step(loss_of(made, 1.0, 0.0))
    assert weight(made.bare) == [2.0, 2.0]
    made.step(loss_of(made, 0.0, 3.0))
    assert weight(made.bare) == pytest.approx([2 - 0.5 / 2, 2 - 0.5 * 3 / 2])


def test_sgd_decays_weights_and_has_momentum():
    made = engine(weight_decay=0.1, momentum=0.9, schedule="constant")
    made.step(loss_of(made, 1.0, 0.0))
    first = [1 + 0.1 * 2, 0.1 * 2]  # gradient and decay
    expected = [2 - 0.5 * part for part in first]
    assert weight(made.bare) == pytest.approx(expected)
    made.step(loss_of(made, 1.0, 0.0))
    second = [0.9 * part + g + 0.1 * w for part, g, w in zip(first, (1, 0), expected, strict=True)]
    assert weight(made.bare) == pytest.approx(
        [w - 0.5 * part for w, part in zip(expected, second, strict=True)]
    )


def test_adamw_decays_weights_apart_from_the_gradient():
    made = engine(optimizer="adamw", weight_decay=0.1, schedule="constant")
    made.step(loss_of(made, 1.0, 0.0))
    decayed = 2 * (1 - 0.5 * 0.1)
    assert weight(made.bare) == pytest.approx([decayed - 0.5, decayed], abs=1e-5)


def test_the_gradients_norm_is_clipped():
    made = engine(clip=1.0, momentum=0.0, weight_decay=0.0, schedule="constant")
    made.step(loss_of(made, 3.0, 4.0))
    assert weight(made.bare) == pytest.approx([2 - 0.5 * 0.6, 2 - 0.5 * 0.8], abs=1e-5)


def test_averaged_weights_lag_behind_and_are_the_ones_that_are_scored():
    made = engine(ema=0.75, momentum=0.0, weight_decay=0.0, schedule="constant")
    for _ in range(2):
        made.step(loss_of(made, 1.0, 0.0))
    assert weight(made.bare) == pytest.approx([1.0, 2.0])
    # The first step begins the average.
    assert weight(made.averaged) == pytest.approx([0.75 * 1.5 + 0.25 * 1.0, 2.0])
