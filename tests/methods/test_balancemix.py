"""BalanceMix: its switches, its warm-up, its table, and loops that train it."""

import signal

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from balancemix.labels import table
from balancemix.labels.table import Status
from balancemix.methods import BalanceMix
from balancemix.methods import balancemix as module
from balancemix.methods.base import Request
from balancemix.training.predict import predict
from tests.methods.settings import make_method, trained
from tests.reference import balancemix as reference
from tests.temporaries import Temporaries
from tests.toys import EPOCHS, K, N, Rows, Training, make_data, make_model

# The end of an epoch.


def test_ctrl_c_while_labels_are_managed_leaves_all_of_them_managed(monkeypatch):
    given = torch.eye(4, dtype=torch.int8).repeat(8, 1)
    confidence = torch.rand(32, 4, generator=torch.Generator().manual_seed(0))
    whole, stopped = (BalanceMix(warmup=1).start(given, EPOCHS) for _ in range(2))
    whole.end_epoch(confidence)
    manage, left = table.manage, [3]

    def interrupted(*arguments, **settings):
        left[0] -= 1
        if not left[0]:
            signal.raise_signal(signal.SIGINT)
        return manage(*arguments, **settings)

    monkeypatch.setattr(module, "chunks", lambda n, k: [slice(i, i + 4) for i in range(0, n, 4)])
    monkeypatch.setattr(module, "manage", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stopped.end_epoch(confidence)
    assert stopped.epoch == whole.epoch
    assert stopped.odds.equal(whole.odds)
    assert stopped.table.status.equal(whole.table.status)
    assert stopped.table.clean.equal(whole.table.clean)


@pytest.mark.parametrize("verified", [False, True])
def test_an_epoch_s_end_makes_no_matrix_of_all_labels_but_a_copy_without_verified_ones(verified):
    generator = torch.Generator().manual_seed(0)
    rows, classes = 50_000, 100
    given = (torch.rand(rows, classes, generator=generator) < 0.1).to(torch.int8)
    given[0] = -1
    sure = torch.zeros_like(given)
    sure[1] = verified
    method = BalanceMix(warmup=0).start(given, EPOCHS, verified=sure)
    confidence = torch.rand(rows, classes, generator=generator)
    with Temporaries(rows * classes) as made:
        method.end_epoch(confidence)
    copies = [f"aten.clone.default: torch.int8 {tuple(given.shape)}"] if verified else []
    assert made.large == copies
    assert method.mixtures is not None


# The switches.


@pytest.mark.parametrize("switch", ["mix", "minority", "select", "relabel", "reweight"])
@pytest.mark.parametrize("relabel", ["online", "epoch", "paper"])
def test_each_switch_alone_changes_the_result(switch, relabel):
    off = "off" if switch == "relabel" else False
    full, without = (
        trained("balancemix", relabel=relabel),
        trained("balancemix", **{"relabel": relabel, switch: off}),
    )
    assert not full.weights().equal(without.weights())
    if switch in ("select", "relabel", "reweight"):  # and not before the warm-up is over
        steps = len(full.losses) // EPOCHS
        assert full.losses[:steps] == without.losses[:steps]
        assert full.losses[steps:] != without.losses[steps:]


@pytest.mark.parametrize(
    "options",
    [
        {"lambda_per": "pair"},
        {"blend": True},
        {"relabel": "online"},
        {"relabel": "paper"},
        {"trust_positives": True},
        {"mixture": "dividemix"},
        {"score": "positive-mean"},
        {"power": 10.0},
        {"warmup_mix": False},
        {"epsilon": 0.9},
        {"alpha": 1.0},
        {"warmup": 2},
    ],
)
def test_each_option_changes_the_result(options):
    full = trained("balancemix", views=True)
    assert not full.weights().equal(trained("balancemix", views=True, **options).weights())


@pytest.mark.parametrize("options", [{}, {"relabel": "off", "reweight": False}, {"alpha": 1.0}])
def test_balancemix_without_minority_and_selection_equals_mixup_bit_for_bit(options):
    alpha = options.get("alpha", 4.0)
    plain = trained("mixup", alpha=alpha)
    ours = trained("balancemix", minority=False, select=False, **options)
    assert ours.losses == plain.losses
    assert ours.weights().equal(plain.weights())
    assert not plain.weights().equal(trained("bce").weights())


def test_other_losses_are_trained_on_but_the_mixtures_stay_those_of_bce():
    x, labels = make_data()
    confidence = torch.rand(labels.shape, generator=torch.Generator().manual_seed(1))
    model, index, tables = make_model(norm=False), torch.arange(8), {}
    for name in ("bce", "focal", "asl"):
        method = BalanceMix(warmup=0, base_loss=name, minority=False).start(labels, 2)
        method.end_epoch(confidence)
        tables[name] = method.table.clean, method.loss(model, x[index], index).item()
    assert len({loss for _, loss in tables.values()}) == 3
    assert all(torch.equal(clean, tables["bce"][0]) for clean, _ in tables.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.4}, r"epsilon .* 0\.4"),
        ({"epsilon": 1.1}, r"epsilon .* 1\.1"),
        ({"warmup": -1}, r"warmup .* -1"),
    ],
)
def test_settings_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        BalanceMix(**options)


def test_an_epoch_without_confidence_is_refused():
    method = BalanceMix().start(make_data()[1], 1)
    with pytest.raises(ValueError, match="confidence"):
        method.end_epoch()


# The warm-up.


@pytest.mark.parametrize(
    ("warmup", "epochs", "warm"), [(None, 50, 10), (None, 4, 1), (3, 50, 3), (0, 9, 0)]
)
def test_the_warm_up_is_a_fifth_of_the_epochs_unless_given(warmup, epochs, warm):
    assert BalanceMix(warmup=warmup).start(make_data()[1], epochs).warm == warm


@pytest.mark.parametrize("relabel", ["online", "paper"])
def test_views_are_wanted_once_the_warm_up_is_over(relabel):
    method = make_method("balancemix", make_data()[1], warmup=2, relabel=relabel)
    training = Training(method, make_data()[0])
    wanted = []
    for _ in range(EPOCHS):
        wanted.append(training.method.request())
        training.epoch()
    assert wanted == [Request(1, (0,)), Request(1, (0,)), Request(2, (0, 2))]


def test_mode_epoch_wants_views_at_the_end_of_the_warm_up_and_after():
    method = make_method("balancemix", make_data()[1], warmup=2, relabel="epoch")
    training = Training(method, make_data()[0])
    wanted = []
    for _ in range(EPOCHS):
        wanted.append(method.request())
        training.epoch()
    assert wanted == [Request(1, (0,)), Request(1, (2,)), Request(1, (2,))]


def test_labels_are_judged_from_the_last_epoch_of_the_warm_up_on():
    x, labels = make_data()
    training = Training(make_method("balancemix", labels, warmup=2), x)
    training.epoch()
    assert training.method.mixtures is None
    assert training.method.table.whole().weight.equal(torch.ones(N, K))
    assert training.method.table.whole().target.equal(labels.float())
    training.epoch()
    assert training.method.mixtures is not None
    assert (training.method.table.status != Status.CLEAN).any()


def test_odds_begin_uniform_and_follow_equation_4_from_the_first_epoch_on():
    x, labels = make_data()
    training = Training(make_method("balancemix", labels, warmup=2), x)
    assert training.method.odds.tolist() == [1 / N] * N
    training.epoch()
    confidence = predict(training.model, Rows(x)).double().numpy()
    want = reference.sampling_probability(confidence, labels.numpy())
    np.testing.assert_allclose(training.method.odds, want, rtol=1e-9)


# The table.


def test_re_labelling_off_leaves_clean_and_ambiguous_labels():
    x, labels = make_data()
    method = make_method("balancemix", labels, relabel="off")
    training = Training(method, x, views=True).run()
    assert method.request().views == 1
    assert method.table.whole().target.equal(labels.float())
    assert not torch.isin(method.table.status, torch.tensor([Status.PRESENT, Status.ABSENT])).any()
    assert (training.method.table.status == Status.AMBIGUOUS).any()


def test_trusted_positives_are_never_doubted():
    x, labels = make_data()
    doubting = Training(make_method("balancemix", labels), x).run().method.table
    trusting = Training(make_method("balancemix", labels, trust_positives=True), x).run().method
    table, positive = trusting.table, labels > 0
    assert (doubting.clean[positive] <= 0.5).any()
    assert (table.clean[positive] == 1).all()
    assert (table.status[positive] == Status.CLEAN).all()
    assert (table.whole().target[positive] == 1).all()
    assert (table.whole().weight[positive] == 1).all()
    assert (table.status[~positive] != Status.CLEAN).any()


def test_facts_count_what_the_table_says():
    training = trained("balancemix", epochs=2)
    facts, table = training.epoch(), training.method.table
    shares = [facts[name] for name in ("clean", "relabelled", "ambiguous")]
    assert sum(shares) == pytest.approx(1)
    assert facts["flipped"] == pytest.approx(
        float((table.whole().target != table.given).double().mean())
    )
    assert 0 < facts["flipped"] <= facts["relabelled"]
    assert 0 < facts["effective_rows"] <= 1


def test_facts_count_the_guards_that_were_needed():
    x, labels = make_data()
    labels[:, 1] = 0
    facts = Training(make_method("balancemix", labels, warmup=0), x).epoch()
    assert facts["mixtures_few"] >= 1


# Loops that train it.


def test_the_documented_loop_runs_and_finds_planted_errors():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 8, generator=generator)
    truth = (x[:, :4] > 0.3).to(torch.uint8)
    wrong = torch.rand(200, 4, generator=generator) < 0.08
    labels = torch.where(wrong, 1 - truth, truth)

    class MyDataset(Dataset):
        def __len__(self):
            return 200

        def __getitem__(self, i):
            return x[i], i

    torch.manual_seed(0)
    dataset, model = MyDataset(), nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    method = BalanceMix().start(labels, epochs=80)
    loader = DataLoader(dataset, batch_sampler=method.batches(64))
    for _epoch in range(80):
        for x_, index in loader:
            method.loss(model, x_, index).backward()
            optimizer.step()
            optimizer.zero_grad()
        method.end_epoch(predict(model, dataset))

    doubted = method.table.status != Status.CLEAN
    assert doubted[wrong].float().mean() > 0.8
    assert doubted[~wrong].float().mean() < 0.4
    assert method.table.clean[wrong].mean() < 0.3 < method.table.clean[~wrong].mean()
    right = (method.table.whole().target == truth).float().mean()
    assert right > (labels == truth).float().mean()


def test_a_loop_with_two_views_runs():
    training = trained("balancemix", views=True, epsilon=0.8, relabel="paper")
    assert np.isfinite(training.losses).all()
    assert training.losses != trained("balancemix", epsilon=0.8, relabel="paper").losses
