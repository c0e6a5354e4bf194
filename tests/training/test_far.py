"""What would happen on a GPU, without one: no operation may mix devices."""

import pytest
import torch

from balancemix.data.loading import Loader
from balancemix.evaluation.metrics import average_precision
from balancemix.labels.mixtures import clean_probability, label_loss
from balancemix.labels.table import manage
from balancemix.methods import METHODS, BalanceMix
from balancemix.methods.sampling import minority_odds, odds_of_rows
from balancemix.methods.statistics import Statistics
from balancemix.plan.plan import make_method
from balancemix.training.predict import predictions
from tests import together
from tests.far import FAR, Distance, Far, MixedError, moved


def drawn(rows):
    generator = torch.Generator().manual_seed(0)
    confidence = torch.rand(rows, 3, generator=generator)
    return confidence, (torch.rand(rows, 3, generator=generator) < 0.3).to(torch.uint8)


@pytest.mark.parametrize(
    "meet",
    [
        lambda near, far: near + far,
        lambda near, far: near.copy_(far).index_put_((far.long(),), far),
        lambda near, far: near.add_(far),
        lambda near, far: near[far.long()],
        lambda near, far: torch.cat([near, far]),
        lambda near, far: far.numpy(),
    ],
)
def test_the_device_refuses_what_a_gpu_would(meet):
    near = torch.zeros(3)
    with Distance(), pytest.raises(MixedError):
        meet(near, near.to(FAR))


@pytest.mark.parametrize("rows", [500, 3_000])  # every loss a point of its own, and bins
def test_mixtures_are_fitted_where_the_losses_are(rows):
    confidence, labels = drawn(rows)
    losses = label_loss(labels, confidence)
    with Distance():
        got = clean_probability(Far(losses), Far(labels))
    assert got.device == FAR
    assert got.near.equal(clean_probability(losses, labels))


def test_statistics_are_gathered_where_they_were_made():
    confidence, labels = drawn(3_000)
    want = Statistics.empty(3).update(confidence, labels)
    with Distance():
        got = Statistics.empty(3, device=FAR).update(confidence, Far(labels))
        mixtures = got.mixtures()
        assert got.merge(Statistics.empty(3)) is got
    for ours, theirs in zip(got.tensors(), want.tensors(), strict=True):
        assert ours.near.equal(theirs)
    assert mixtures.mean.near.equal(want.mixtures().mean)


@pytest.mark.parametrize("score", ["paper", "positive-mean", "inverse-frequency", "uniform"])
def test_odds_are_where_the_labels_are(score):
    confidence, labels = drawn(200)
    want = minority_odds(confidence, labels, score=score)
    with Distance():
        statistics = Statistics.empty(3, device=FAR).update(Far(confidence), Far(labels))
        assert odds_of_rows(statistics, labels, score=score).equal(want)
        assert odds_of_rows(statistics, Far(labels), score=score).near.equal(want)
        assert minority_odds(Far(confidence), Far(labels), score=score).near.equal(want)


def test_labels_are_managed_and_scored_where_they_are():
    confidence, labels = drawn(50)
    with Distance():
        for got, want in zip(
            manage(*map(Far, (labels, confidence, confidence))),
            manage(labels, confidence, confidence),
            strict=True,
        ):
            assert got.near.equal(want)
        average_precision(Far(confidence), Far(labels))
        BalanceMix(warmup=0).start(Far(labels), 2).end_epoch(Far(confidence))


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in METHODS if name != "balancemix"]
    + [
        (
            "balancemix",
            {"mode": mode, "warmup": 1, "mixture": "dividemix", **options},
        )
        for mode in ("epoch", "online", "paper")
        for options in ({}, {"lambda_per": "pair", "blend": True}, {"minority": False})
    ],
)
def test_every_method_trains_a_model_that_is_far(name, options):
    rows = together.make_rows(60)
    torch.manual_seed(0)
    method = make_method({"name": name, **options}).start(rows.labels, 3)
    model = moved(method.build(lambda: together.make_model("BatchNorm")))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Distance():
        for epoch in range(3):
            model.train()
            shown = rows.with_views(method.views, epoch)
            for x, index in Loader(shown, method.batches(16)):
                far = x.to(FAR) if isinstance(x, torch.Tensor) else [view.to(FAR) for view in x]
                loss = method.loss(model, far, index)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                assert loss.detach().isfinite()
            said = predictions(
                method.witness(model), rows.with_views(method.confidence_views, epoch), 16
            )
            seen = predictions(model, rows.with_views(2, epoch), 16)
            method.end_epoch(
                said if method.needs_confidence else None, seen if method.needs_views else None
            )
    assert all(
        not isinstance(state, Far) for state in torch.utils._pytree.tree_leaves(method.state_dict())
    )
