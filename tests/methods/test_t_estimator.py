"""T-estimator: training that is re-weighted by noise rates."""

import json

import numpy as np
import pytest
import torch

from balancemix.cli import main
from balancemix.judge.noise_rates import (
    NoiseRates,
    importance,
    pick,
    scaled_losses,
)
from balancemix.labels.table import Status
from balancemix.methods import Mixup, TEstimator
from tests.methods.draws import pairing_of
from tests.methods.settings import make_method
from tests.reference import t_estimator as reference
from tests.toys import EPOCHS, SIZE, K, Training, make_data, make_model


def known_case(**options):
    x, labels = make_data()
    method = TEstimator(**options).start(labels, EPOCHS)
    rho = torch.linspace(0.05, 0.25, K, dtype=torch.float64)
    method.rates = NoiseRates(rho, rho.flip(0), ["bilinear"] * K)
    return method, make_model(norm=False), x, torch.arange(SIZE)


def test_the_loss_weights_both_labels_of_a_pair():
    method, model, x, index = known_case()
    partner, lam = pairing_of(method, SIZE)
    rho0, rho1 = method.rates.rho0.tolist(), method.rates.rho1.tolist()
    Y, want = method.table.given, 0.0
    with torch.no_grad():
        p = model(lam * x[index] + (1 - lam) * x[index][partner]).sigmoid().double()
    for i in range(SIZE):
        for k in range(K):
            for share, row in ((lam, i), (1 - lam, int(partner[i]))):
                y, q = int(Y[row, k]), float(p[i, k])
                bce = -np.log(q if y else 1 - q)
                want += share * reference.weight(q, y, rho0[k], rho1[k]) * bce
    assert method.loss(model, x[index], index).item() == pytest.approx(want / SIZE, rel=1e-5)


def test_weights_are_constants():
    method, model, x, index = known_case(alpha=0.0)
    method.loss(model, x[index], index).backward()
    got = model[3].bias.grad
    logits = model(x[index])
    target, p = method.table.whole().target[index], logits.sigmoid().detach()
    weight = importance(target, p, method.rates.rho0.float(), method.rates.rho1.float())
    torch.testing.assert_close(got, (weight * (p - target)).mean(0))


def test_no_noise_is_mixup():
    method, model, x, index = known_case()
    method.rates = NoiseRates(torch.zeros(K), torch.zeros(K), ["not enough data"] * K)
    plain = Mixup().start(method.table.given, EPOCHS).loss(model, x[index], index)
    torch.testing.assert_close(method.loss(model, x[index], index), plain)


def test_confidence_is_wanted_in_the_last_five_epochs_of_the_warm_up():
    x, labels = make_data()
    method = TEstimator(warmup=7, min_labels=4).start(labels, 10)
    training, wanted, facts = Training(method, x), [], []
    for _ in range(10):
        wanted.append(bool(method.request().passes))
        facts.append(training.epoch())
    assert wanted == [False, False, *[True] * 5, False, False, False]
    assert ["rho0" in line for line in facts] == [epoch == 6 for epoch in range(10)]
    ways = ("rates_bilinear", "rates_fallback", "rates_not_enough_data")
    assert sum(facts[6].get(way, 0) for way in ways) == K
    assert method.losses.max() <= 5


@pytest.mark.parametrize(("warmup", "epochs", "warm"), [(None, 50, 10), (None, 3, 1), (4, 50, 4)])
def test_the_warm_up_is_a_fifth_of_the_epochs_and_never_none(warmup, epochs, warm):
    assert TEstimator(warmup=warmup).start(make_data()[1], epochs).warm == warm


def test_the_warm_up_is_mixup_and_what_follows_is_not():
    x, labels = make_data()
    plain = Training(Mixup().start(labels, EPOCHS), x).run()
    ours = Training(make_method("t-estimator", labels), x).run()
    steps = len(plain.losses) // EPOCHS
    assert ours.losses[:steps] == plain.losses[:steps]
    assert ours.losses[steps:] != plain.losses[steps:]
    off = Training(make_method("t-estimator", labels, reweight=False), x).run()
    assert off.losses == plain.losses
    assert off.weights().equal(plain.weights())


def test_the_table_says_which_labels_the_rates_rest_on():
    x, labels = make_data()
    table = Training(make_method("t-estimator", labels), x).run().method.table
    assert ((table.clean > 0.5) == (table.status == Status.CLEAN)).all()
    assert (table.status == Status.AMBIGUOUS).any()
    assert table.whole().target.equal(labels.float())
    known = make_method("t-estimator", labels, one_sided="positives")
    table = Training(known, x).run().method.table
    assert (table.clean[labels > 0] == 1).all()
    assert (table.clean[labels == 0] < 0.5).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"warmup": 0}, "warmup .* 0"), ({"alpha": -1.0}, "alpha"), ({"min_labels": 0}, "min_labels")],
)
def test_settings_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        TEstimator(**options)


def test_an_epoch_without_confidence_is_refused_where_it_is_wanted():
    method = make_method("t-estimator", make_data()[1])
    with pytest.raises(ValueError, match="confidence"):
        method.end_epoch()


def test_rates_are_found_while_training_on_planted_noise():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3000, 6, generator=generator)
    truth = (x @ torch.randn(6, 4, generator=generator)) > 1
    labels = truth & (torch.rand(3000, 4, generator=generator) > 0.3)
    method = TEstimator(warmup=6, one_sided="positives").start(labels, 8)
    training = Training(method, x)
    training.model = torch.nn.Linear(6, 4)
    training.optimiser = torch.optim.SGD(training.model.parameters(), lr=0.02, momentum=0.9)
    training.run(8)
    assert not method.rates.rho0.any()
    assert (method.rates.rho1 - 0.3).abs().max() < 0.15


def test_the_command_trains_resumes_and_scores(tiny, tmp_path, capsys):
    call = ["train", str(tiny), "--method", "t-estimator", "--noise", "flip:0.1"]
    call += ["--epochs", "4", "--batch-size", "16", "--set", "model.hidden=16"]
    call += ["--set", "method.min_labels=5", "--set", "method.one_sided=positives"]
    assert main([*call, "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    log = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    assert json.loads(log[0])["rho0"] == 0
    assert main(["train", "--resume", "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "run"), "--json"]) == 0
    last = json.loads((tmp_path / "run" / "metrics.json").read_text())["last"]
    assert json.loads(capsys.readouterr().out) == pytest.approx(last)


def test_labels_are_picked_by_the_mean_loss_of_five_epochs():
    _, given = make_data()
    method = TEstimator(warmup=7).start(given, 9)
    generator = torch.Generator().manual_seed(0)
    losses = []
    for epoch in range(7):
        wanted = method.request().passes
        assert wanted == ((0,) if epoch >= 2 else ())
        confidence = torch.rand(given.shape, generator=generator)
        if wanted:
            losses.append(scaled_losses(given, confidence))
        method.end_epoch(*([confidence] if wanted else []))
    expected = pick(given, torch.stack(losses).mean(0))
    torch.testing.assert_close(method.table.clean.float(), expected, atol=1e-3, rtol=1e-3)
