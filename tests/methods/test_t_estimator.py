"""Noise rates from label correlations, and training that is re-weighted by them."""

import json

import numpy as np
import pytest
import torch

from balancemix import estimate_noise_rates
from balancemix.cli import main
from balancemix.judge.noise_rates import (
    NoiseRates,
    dual_t_rates,
    importance,
    pick,
    scaled_losses,
)
from balancemix.labels.table import Status
from balancemix.methods import Mixup, TEstimator
from balancemix.methods.mixing import draw_lambda
from tests.methods.settings import make_method
from tests.reference import t_estimator as reference
from tests.toys import EPOCHS, SIZE, K, Training, make_data, make_model


def planted(n, rho0, rho1, classes=6, seed=0):
    """Make truth that is correlated by hidden topics, labels with known noise, and confidence."""
    generator = torch.Generator().manual_seed(seed)
    topics = torch.randn(n, 3, generator=generator)
    score = topics @ (1.2 * torch.randn(3, classes, generator=generator)) - 0.8
    truth = score + 0.7 * torch.randn(n, classes, generator=generator) > 0
    draw = torch.rand(n, classes, generator=generator)
    labels = torch.where(truth, draw >= torch.tensor(rho1), draw < torch.tensor(rho0))
    confidence = 6 * truth - 3 + torch.randn(n, classes, generator=generator)
    return truth, labels.to(torch.uint8), confidence.sigmoid()


# The rates.


@pytest.mark.parametrize("rates", [(0.1, 0.3), (0.05, 0.2), (0.0, 0.4), (0.2, 0.0), (0.0, 0.0)])
@pytest.mark.parametrize("known", [True, False])
def test_planted_rates_are_recovered(rates, known):
    truth, labels, confidence = planted(20_000, *rates)
    found = estimate_noise_rates(labels, confidence, truth == labels if known else None)
    torch.testing.assert_close(found.rho0, torch.full_like(found.rho0, rates[0]), atol=0.03, rtol=0)
    torch.testing.assert_close(found.rho1, torch.full_like(found.rho1, rates[1]), atol=0.03, rtol=0)
    assert found.how == ["bilinear"] * 6


def test_each_class_has_rates_of_its_own():
    rho0, rho1 = [0.0, 0.05, 0.1, 0.15, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1, 0.0, 0.3]
    _, labels, confidence = planted(20_000, rho0, rho1)
    found = estimate_noise_rates(labels, confidence)
    assert (found.rho0 - torch.tensor(rho0)).abs().max() < 0.03
    assert (found.rho1 - torch.tensor(rho1)).abs().max() < 0.03


@pytest.mark.parametrize("one_sided", [None, "positives", "negatives"])
@pytest.mark.parametrize("seed", range(4))
def test_rates_equal_the_papers_pair_by_pair(one_sided, seed):
    # Little data, and a selection that is often wrong: candidates are dropped, classes fall back.
    truth, labels, confidence = planted(400, 0.15, 0.3, seed=seed)
    labels[:, 0] = 0
    labels[:20, 0] = 1
    generator = torch.Generator().manual_seed(seed)
    labels[:, 5] = torch.rand(400, generator=generator) < 0.5  # goes with no other class
    selected = (truth == labels) & (torch.rand(labels.shape, generator=generator) < 0.7)
    found = estimate_noise_rates(labels, confidence, selected, one_sided=one_sided, fewest=30)
    want = reference.estimate(
        labels.numpy(), selected.numpy(), confidence.double().numpy(), one_sided, fewest=30
    )
    assert found.how == [how for _, _, how in want]
    np.testing.assert_allclose(found.rho0, [rho0 for rho0, _, _ in want], atol=1e-9)
    np.testing.assert_allclose(found.rho1, [rho1 for _, rho1, _ in want], atol=1e-9)


def test_classes_without_a_candidate_fall_back_as_the_papers_do():
    ways = set()
    for seed in range(12):
        truth, labels, confidence = planted(300, 0.3, 0.4, classes=2, seed=seed)
        selected = truth == labels
        found = estimate_noise_rates(labels, confidence, selected, fewest=20)
        want = reference.estimate(
            labels.numpy(), selected.numpy(), confidence.double().numpy(), fewest=20
        )
        assert found.how == [how for _, _, how in want]
        np.testing.assert_allclose(found.rho0, [rho0 for rho0, _, _ in want], atol=1e-9)
        np.testing.assert_allclose(found.rho1, [rho1 for _, rho1, _ in want], atol=1e-9)
        ways |= set(found.how)
    assert {"bilinear", "fallback"} <= ways


def test_the_fallback_equals_dual_t():
    _, labels, confidence = planted(300, 0.2, 0.3)
    confidence[:, 0] *= 0.4  # never predicted
    rho0, rho1 = dual_t_rates(labels > 0, confidence.double())
    want = [reference.dual_t(labels.numpy(), confidence.double().numpy(), i) for i in range(6)]
    np.testing.assert_allclose(torch.stack([rho0, rho1], 1), want, atol=1e-9)


def test_a_class_alone_falls_back():
    _, labels, confidence = planted(4000, 0.1, 0.3, classes=1)
    found = estimate_noise_rates(labels, confidence)
    assert found.how == ["fallback"]
    assert 0 < found.rho0 + found.rho1 < 1


def test_a_class_of_ten_positives_has_the_identity_and_no_matrix_is_zero():
    _, labels, confidence = planted(4000, 0.1, 0.3)
    labels[:, 2] = 0
    labels[:10, 2] = 1
    labels[:, 4] = 0
    found = estimate_noise_rates(labels, confidence)
    assert found.how[2] == found.how[4] == "not enough data"
    assert found.matrices[2].equal(torch.eye(2, dtype=torch.float64))
    torch.testing.assert_close(found.matrices.sum(2), torch.ones(6, 2, dtype=torch.float64))
    assert (torch.linalg.det(found.matrices) > 0).all()
    judged = estimate_noise_rates(labels, confidence, torch.ones_like(labels), fewest=10)
    assert judged.how[2] != "not enough data"
    assert (torch.linalg.det(judged.matrices) > 0).all()


@pytest.mark.parametrize("value", [0, 1])
def test_labels_all_alike_have_no_noise(value):
    labels = torch.full((200, 3), value)
    found = estimate_noise_rates(labels, torch.rand(200, 3, generator=torch.Generator()))
    assert found.how == ["not enough data"] * 3
    assert found.matrices.equal(torch.eye(2, dtype=torch.float64).expand(3, 2, 2))


def test_a_model_that_knows_nothing_falls_back_to_no_noise():
    """Dual-T of a constant confidence: both sides are given alike, and T cannot be inverted."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.rand(500, 1, generator=generator) < 0.5
    found = estimate_noise_rates(labels, torch.full((500, 1), 0.3))
    assert found.how == ["not enough data"]


@pytest.mark.parametrize(("side", "rates"), [("positives", (0.0, 0.4)), ("negatives", (0.2, 0.0))])
def test_known_one_sided_noise_is_exactly_that(side, rates):
    _, labels, confidence = planted(20_000, *rates)
    found = estimate_noise_rates(labels, confidence, one_sided=side)
    silent, other = (found.rho0, found.rho1) if side == "positives" else (found.rho1, found.rho0)
    assert not silent.any()
    assert (other - max(rates)).abs().max() < 0.03


def test_wrong_matrices_are_refused():
    labels = torch.zeros(4, 2)
    with pytest.raises(ValueError, match="given and confidence must both be N×K"):
        estimate_noise_rates(labels, torch.zeros(4, 3))
    with pytest.raises(ValueError, match="given and selected"):
        estimate_noise_rates(labels, torch.zeros(4, 2), torch.zeros(3, 2))
    with pytest.raises(ValueError, match="between 0 and 1"):
        estimate_noise_rates(labels, torch.full((4, 2), torch.nan))


def test_scaled_losses_equal_the_papers():
    _, labels, first = planted(300, 0.2, 0.3)
    second = first.square()
    ours = (scaled_losses(labels, first) + scaled_losses(labels, second)) / 2
    for i in range(6):
        for side in (0, 1):
            want = reference.losses_to_select_by(
                [first.double().numpy(), second.double().numpy()], labels.numpy(), i, side
            )
            np.testing.assert_allclose(ours[labels[:, i] == side, i], want, atol=1e-5)


# The weights.


def test_weights_equal_the_papers_and_are_clamped():
    p, rho0, rho1 = torch.rand(50, 3, generator=torch.Generator()), [0.0, 0.1, 0.3], [0.4, 0.2, 0.0]
    labels = torch.rand(50, 3, generator=torch.Generator().manual_seed(1)) < 0.5
    ours = importance(labels, p, torch.tensor(rho0), torch.tensor(rho1))
    for i in range(50):
        for k in range(3):
            want = reference.weight(float(p[i, k]), int(labels[i, k]), rho0[k], rho1[k])
            assert float(ours[i, k]) == pytest.approx(min(want, 20), rel=1e-4)
    most = importance(torch.tensor([1]), torch.tensor([1.0]), torch.tensor(0.0), torch.tensor(0.99))
    assert most.item() == 20


def test_without_noise_weights_are_one_even_where_the_model_is_sure():
    p = torch.tensor([0.0, 1e-30, 1e-7, 0.5, 1.0])
    for labels in (torch.zeros(5), torch.ones(5)):
        assert importance(labels, p, torch.zeros(()), torch.zeros(())).equal(torch.ones(5))


# The method.


def known_case(**options):
    x, labels = make_data()
    method = TEstimator(**options).start(labels, EPOCHS)
    rho = torch.linspace(0.05, 0.25, K, dtype=torch.float64)
    method.rates = NoiseRates(rho, rho.flip(0), ["bilinear"] * K)
    return method, make_model(norm=False), x, torch.arange(SIZE)


def test_the_loss_weights_both_labels_of_a_pair():
    method, model, x, index = known_case()
    known = torch.Generator()
    known.set_state(method.generator.get_state())
    partner, lam = torch.randperm(SIZE, generator=known), float(draw_lambda(4.0, known))
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
    method = TEstimator(warmup=7, fewest=4).start(labels, 10)
    training, wanted, facts = Training(method, x), [], []
    for _ in range(10):
        wanted.append(bool(method.request().passes))
        facts.append(training.epoch())
    assert wanted == [False, False, *[True] * 5, False, False, False]
    assert ["rho0" in line for line in facts] == [epoch == 6 for epoch in range(10)]
    ways = ("rates_bilinear", "rates_fallback", "rates_not_enough_data")
    assert sum(facts[6].get(way, 0) for way in ways) == K
    assert method.remembered.max() <= 5


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
    [({"warmup": 0}, "warmup .* 0"), ({"alpha": -1.0}, "alpha"), ({"fewest": 0}, "fewest")],
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
    call += ["--set", "method.fewest=5", "--set", "method.one_sided=positives"]
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
