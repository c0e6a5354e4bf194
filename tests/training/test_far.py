"""What would happen on a GPU, without one: no operation may mix devices."""

import pytest
import torch

from balancemix.data.loading import Loader
from balancemix.evaluation.metrics import average_precision
from balancemix.labels.mixtures import clean_probability
from balancemix.labels.table import manage
from balancemix.methods import BalanceMix
from balancemix.methods.sampling import minority_odds
from balancemix.plan.plan import make_method
from balancemix.training.predict import predict
from tests import together
from tests.far import FAR, Distance, Far, MixedError, moved
from tests.methods.settings import SETTINGS, ready


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
def test_mixtures_are_fitted_where_the_confidence_is(rows):
    confidence, labels = drawn(rows)
    with Distance():
        got = clean_probability(Far(labels), Far(confidence))
    assert got.device == FAR
    assert isinstance(got, Far)
    assert got.near.equal(clean_probability(labels, confidence))


@pytest.mark.parametrize("score", ["paper", "positive-mean", "inverse-frequency", "uniform"])
def test_odds_are_where_the_labels_are(score):
    confidence, labels = drawn(200)
    want = minority_odds(labels, confidence, score=score)
    with Distance():
        got = minority_odds(Far(labels), Far(confidence), score=score)
        assert isinstance(got, Far)
        assert got.near.equal(want)
        assert minority_odds(labels, Far(confidence), score=score).equal(want)


def test_labels_are_managed_and_scored_where_they_are():
    confidence, labels = drawn(50)
    with Distance():
        for got, want in zip(
            manage(Far(labels), Far(confidence), Far(confidence)),
            manage(labels, confidence, confidence),
            strict=True,
        ):
            assert got.near.equal(want)
        average_precision(Far(labels), Far(confidence))
        BalanceMix(warmup=0).start(Far(labels), 2).end_epoch(Far(confidence))


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in SETTINGS if name != "balancemix"]
    + [
        (
            "balancemix",
            {"relabel": relabel, "warmup": 1, "mixture": "dividemix", **options},
        )
        for relabel in ("epoch", "online", "paper")
        for options in ({}, {"lambda_per": "pair", "blend": True}, {"minority": False})
    ],
)
def test_every_method_trains_a_model_that_is_far(name, options):
    rows = together.make_rows(60)
    torch.manual_seed(0)
    method = ready(make_method({"name": name, **options}), rows.given).start(rows.given, 3)
    model = moved(method.build(lambda: together.make_model("BatchNorm")))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Distance():
        for epoch in range(3):
            model.train()
            request = method.request()
            shown = rows.with_views(request.views, epoch)
            for x, index in Loader(shown, method.batches(16)):
                far = x.to(FAR) if isinstance(x, torch.Tensor) else [view.to(FAR) for view in x]
                loss = method.loss(model, far, index)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                assert loss.detach().isfinite()
            views = [rows.with_views(count, epoch) for count in request.passes]
            members = method.members(model)
            method.end_epoch(*[predict(each, seen, 16) for each in members for seen in views])
    assert all(
        not isinstance(state, Far) for state in torch.utils._pytree.tree_leaves(method.state_dict())
    )
