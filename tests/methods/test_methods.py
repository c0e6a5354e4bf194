"""The contract of every method, and what the paper asks of BalanceMix."""

import copy
import io

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from balancemix import processes
from balancemix.errors import InputError
from balancemix.labels.mixtures import Mixtures
from balancemix.labels.table import Status
from balancemix.methods import BCE, METHODS, BalanceMix, Method, Mixup
from balancemix.methods.base import Batch, Request
from balancemix.methods.mixing import draw_lambda
from balancemix.models.classifier import evaluating
from balancemix.processes import Shard
from balancemix.training.predict import predict, predict_logits
from tests.reference import balancemix as reference

N, D, K, EPOCHS, SIZE = 40, 6, 5, 3, 12

# Settings at which so little data, in so few epochs, sees every part of a method at work.
TINY = {
    "balancemix": {"warmup": 1, "fewest": 4, "epsilon": 0.55},
    "ll-r": {"delta": 5.0},
    "ll-ct": {"delta": 5.0},
    "ll-cp": {"delta": 5.0},
    "coteaching": {"warmup": 1},
    "t-estimator": {"warmup": 1, "fewest": 4},
}

RELIABILITY = np.array([0, 1, 1, 2, 2, 0])  # the reference's codes, C, R and U, of ours

# The settings at which a method is BCE.
AS_BCE = {
    "bce": [{}],
    "mixup": [{"alpha": 0.0}],
    "focal": [{"gamma": 0.0, "alpha": 0.0}],
    "asl": [
        {"gamma_negative": 0.0, "gamma_positive": 0.0, "clip": 0.0, "alpha": 0.0},
        {"gamma_negative": 0.0, "gamma_positive": 0.0, "clip": 0.0, "alpha": 0.0, "detach": False},
    ],
    "hill": [{"strength": 0.0, "alpha": 0.0}],
    "splc": [
        {"tau": 1.0, "margin": 0.0, "gamma": 0.0, "alpha": 0.0},
        {"warmup": EPOCHS, "margin": 0.0, "gamma": 0.0, "alpha": 0.0},
    ],
    "ll-r": [{"delta": 0.0, "alpha": 0.0}],
    "ll-ct": [{"delta": 0.0, "alpha": 0.0}],
    "ll-cp": [{"delta": 0.0, "alpha": 0.0}],
    "an-ls": [{"smoothing": 0.0, "alpha": 0.0}],
    "epr": [{"strength": 0.0, "alpha": 0.0}],
    "role": [{"strength": 0.0, "alpha": 0.0}],
    "em-apl": [{"strength": 0.0, "alpha": 0.0}],
    "coteaching": [{"select": False, "alpha": 0.0}, {"warmup": EPOCHS, "alpha": 0.0}],
    "t-estimator": [{"reweight": False, "alpha": 0.0}, {"warmup": EPOCHS, "alpha": 0.0}],
    "balancemix": [
        {"mix": False, "minority": False, "select": False, "relabel": False, "reweight": False},
        {"mix": False, "select": False},
        {"mix": False, "warmup": EPOCHS},
        {"warmup_mix": False, "minority": False, "warmup": EPOCHS},
    ],
}

every_method = pytest.mark.parametrize("name", METHODS)


class Rows(Dataset):
    """`rows[i]` is `(x, i)`, with x a list where more than one view is asked for."""

    def __init__(self, x, views=1):
        self.x, self.views = x, views

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        if self.views == 1:
            return self.x[i], i
        return [self.x[i] * (1 + 0.1 * view) for view in range(self.views)], i


class Echo(nn.Module):
    """A model whose logits are its input."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.scale * x


def make_data(seed=0, n=N):
    """Labels that a linear rule explains, but for every tenth."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, D, generator=generator)
    labels = (x @ torch.randn(D, K, generator=generator) > 0.8).to(torch.uint8)
    wrong = torch.rand(n, K, generator=generator) < 0.1
    return x, torch.where(wrong, 1 - labels, labels)


def make_model(norm=True, seed=0):
    torch.manual_seed(seed)
    middle = nn.BatchNorm1d(16) if norm else nn.Identity()
    return nn.Sequential(nn.Linear(D, 16), middle, nn.ReLU(), nn.Linear(16, K))


def make_method(name, labels, seed=0, **options):
    return METHODS[name](**TINY.get(name, {}) | options).start(labels, EPOCHS, seed)


class Training:
    """A loop of somebody's own, one epoch at a time."""

    def __init__(self, method, x, model=None, views=False):
        self.method, self.x, self.views = method, x, views
        self.model = method.build(make_model) if model is None else model
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.losses = []

    def epoch(self):
        request = self.method.request()
        rows = Rows(self.x, request.views if self.views else 1)
        self.model.train()
        for x, index in DataLoader(rows, batch_sampler=self.method.batches(SIZE)):
            loss = self.method.loss(self.model, x, index)
            loss.backward()
            self.optimiser.step()
            self.optimiser.zero_grad()
            self.losses.append(loss.item())
        return self.method.end_epoch(*(self.confidence() if request.passes else ()))

    def confidence(self):
        """Each member's, on plain rows."""
        return [predict(member, Rows(self.x)) for member in self.method.members(self.model)]

    def run(self, epochs=EPOCHS):
        for _ in range(epochs):
            self.epoch()
        return self

    def weights(self):
        return torch.cat([tensor.flatten().double() for tensor in self.model.state_dict().values()])


def trained(name, epochs=EPOCHS, views=False, seed=0, **options):
    x, labels = make_data()
    return Training(make_method(name, labels, seed, **options), x, views=views).run(epochs)


def same(a, b):
    """Are two state dictionaries equal to the last bit?"""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.equal(b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b


# The contract.


def test_a_method_that_overrides_loss_is_told_what_to_override():
    class Old(Method):
        def loss(self, model, x, index):
            return super().loss(model, x, index)

    with pytest.raises(InputError, match=r"Old\.loss: is final; override batch_loss"):
        Old().start(make_data()[1], 1)


def test_unknown_labels_are_refused():
    labels = make_data()[1].to(torch.int8)
    labels[3, 2] = -1
    with pytest.raises(ValueError, match="unknown"):
        BCE().start(labels, 1)


@every_method
def test_loss_is_a_finite_scalar_with_gradients_in_every_epoch(name):
    x, labels = make_data()
    training = Training(make_method(name, labels), x)
    for _ in range(EPOCHS):
        index = torch.tensor(next(iter(training.method.batches(SIZE))))
        loss = training.method.loss(training.model, x[index], index)
        assert loss.shape == ()
        assert loss.isfinite()
        loss.backward()
        for parameter in training.model.parameters():
            assert parameter.grad is not None
            assert parameter.grad.isfinite().all()
        assert any(parameter.grad.abs().sum() > 0 for parameter in training.model.parameters())
        training.optimiser.zero_grad()
        training.epoch()


@every_method
def test_given_labels_and_the_callers_tensors_are_untouched(name):
    x, labels = make_data()
    kept_x, kept_labels = x.clone(), labels.clone()
    training = Training(make_method(name, labels), x).run()
    assert x.equal(kept_x)
    assert labels.equal(kept_labels)
    assert training.method.table.given.equal(kept_labels.to(torch.int8))

    index = torch.arange(2 * SIZE)
    batch, kept_batch = x[index], x[index].clone()
    confidence = training.confidence()
    kept_confidence = copy.deepcopy(confidence)
    training.method.loss(training.model, batch, index)
    training.method.end_epoch(*confidence)
    assert batch.equal(kept_batch)
    assert index.equal(torch.arange(2 * SIZE))
    assert all(one.equal(kept) for one, kept in zip(confidence, kept_confidence, strict=True))


@every_method
@pytest.mark.parametrize("before", [0, 1, 2])
def test_state_in_a_fresh_object_gives_the_identical_next_epoch(name, before):
    x, labels = make_data()
    first = Training(make_method(name, labels), x).run(before)
    state = first.method.state_dict()
    kept = copy.deepcopy(state)
    second = Training(make_method(name, labels, seed=99).load_state_dict(state), x)
    second.model = copy.deepcopy(first.model)
    second.optimiser = torch.optim.SGD(second.model.parameters(), lr=0.1, momentum=0.9)
    second.optimiser.load_state_dict(copy.deepcopy(first.optimiser.state_dict()))
    done = len(first.losses)
    facts = first.epoch(), second.epoch()
    assert facts[0] == facts[1]
    assert first.losses[done:] == second.losses
    assert first.weights().equal(second.weights())
    assert same(first.method.state_dict(), second.method.state_dict())
    assert same(state, kept)  # a checkpoint is not changed by training on


@every_method
def test_state_survives_a_file_without_pickled_code(name):
    method = trained(name).method
    file = io.BytesIO()
    torch.save(method.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    assert same(state, method.state_dict())
    again = make_method(name, make_data()[1]).load_state_dict(state)
    assert same(again.state_dict(), method.state_dict())


@every_method
def test_same_seed_same_result(name):
    first, second = trained(name), trained(name)
    assert first.losses == second.losses
    assert first.weights().equal(second.weights())
    assert same(first.method.state_dict(), second.method.state_dict())


@pytest.mark.parametrize("name", [name for name in METHODS if name != "bce"])
def test_another_seed_another_result(name):
    assert not trained(name).weights().equal(trained(name, seed=1).weights())


@every_method
def test_every_method_names_the_settings_at_which_it_is_bce(name):
    assert AS_BCE[name]


@pytest.mark.parametrize(
    ("name", "options"), [(name, options) for name in AS_BCE for options in AS_BCE[name]]
)
def test_bce_setting_equals_bce_bit_for_bit(name, options):
    x, labels = make_data()
    plain = trained("bce")
    alike = Training(METHODS[name](**options).start(labels, EPOCHS), x).run()
    if name == "coteaching":  # to rounding; its loss is the sum over its peers
        one = alike.method.members(alike.model)[0].state_dict()
        torch.testing.assert_close(dict(one), dict(plain.model.state_dict()))
        assert alike.losses == pytest.approx([2 * loss for loss in plain.losses])
        return
    assert alike.losses == plain.losses
    assert alike.weights().equal(plain.weights())


@pytest.mark.parametrize("options", [{}, {"relabel": False, "reweight": False}, {"alpha": 1.0}])
def test_balancemix_without_minority_and_selection_equals_mixup_bit_for_bit(options):
    alpha = options.get("alpha", 4.0)
    plain = trained("mixup", alpha=alpha)
    ours = trained("balancemix", minority=False, select=False, **options)
    assert ours.losses == plain.losses
    assert ours.weights().equal(plain.weights())
    assert not plain.weights().equal(trained("bce").weights())


@every_method
def test_a_class_without_positives_one_without_negatives_and_empty_rows_survive(name):
    x, labels = make_data()
    labels[:, 1], labels[:, 3] = 0, 1
    labels[:7, [0, 2, 4]] = 0
    training = Training(make_method(name, labels), x).run()
    assert np.isfinite(training.losses).all()
    assert training.weights().isfinite().all()


@every_method
def test_labels_without_any_positive_survive(name):
    x, labels = make_data()
    training = Training(make_method(name, torch.zeros_like(labels)), x).run()
    assert np.isfinite(training.losses).all()
    assert training.weights().isfinite().all()


@every_method
def test_a_batch_without_positives_survives(name):
    x, labels = make_data()
    labels[:SIZE] = 0
    training = Training(make_method(name, labels), x)
    index = torch.arange(SIZE)
    for _ in range(EPOCHS):
        loss = training.method.loss(training.model, x[index], index)
        loss.backward()
        training.optimiser.zero_grad()
        assert loss.isfinite()
        training.epoch()


@every_method
def test_reduction_mean_is_the_sum_over_classes_divided(name):
    x, labels = make_data()
    model, index = METHODS[name]().build(lambda: make_model(norm=False)), torch.arange(SIZE)
    total, mean = (
        make_method(name, labels, reduction=reduction).loss(model, x[index], index)
        for reduction in ("sum", "mean")
    )
    torch.testing.assert_close(total, mean * K)


@every_method
def test_two_views_are_trained_on_by_the_first(name):
    x, labels = make_data()
    model, index = METHODS[name]().build(lambda: make_model(norm=False)), torch.arange(SIZE)
    one = make_method(name, labels).loss(model, x[index], index)
    two = make_method(name, labels).loss(model, [x[index], 5 * x[index]], index)
    assert one.equal(two)


@every_method
def test_zero_epochs_are_refused(name):
    with pytest.raises(ValueError, match=r"epochs .* 0"):
        METHODS[name]().start(make_data()[1], epochs=0)


@every_method
def test_float64_models_train(name):
    x, labels = make_data()
    method = make_method(name, labels)
    training = Training(method, x.double(), method.build(make_model).double()).run()
    assert np.isfinite(training.losses).all()


def test_bce_equals_equation_1():
    x, labels = make_data()
    model, index = make_model(norm=False), torch.tensor([3, 1, 4, 15])
    f = model(x[index]).sigmoid().detach().numpy()
    want = reference.batch_loss(f, labels[index].numpy())
    assert BCE().start(labels, 1).loss(model, x[index], index).item() == pytest.approx(want)


def test_mixup_equals_equation_1_on_rows_mixed_with_a_permutation():
    x, labels = make_data()
    method, model, index = Mixup().start(labels, 1), make_model(norm=False), torch.arange(SIZE)
    known = torch.Generator()
    known.set_state(method.generator.get_state())
    partner, lam = torch.randperm(SIZE, generator=known), float(draw_lambda(4.0, known))
    f, Y = [], []
    for i in range(SIZE):
        j = int(partner[i])
        f.append(confidence_of(model)(reference.mix(x[i], x[j], lam)))
        Y.append(reference.mix(labels[i], labels[j], lam))
    want = reference.batch_loss(f, Y)
    assert method.loss(model, x[index], index).item() == pytest.approx(want, rel=1e-5)


# BalanceMix: the switches.


@pytest.mark.parametrize("switch", ["mix", "minority", "select", "relabel", "reweight"])
@pytest.mark.parametrize("mode", ["online", "epoch", "paper"])
def test_each_switch_alone_changes_the_result(switch, mode):
    full, without = (
        trained("balancemix", mode=mode),
        trained("balancemix", mode=mode, **{switch: False}),
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
        {"mode": "online"},
        {"mode": "paper"},
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


# BalanceMix: the warm-up.


@pytest.mark.parametrize(
    ("warmup", "epochs", "warm"), [(None, 50, 10), (None, 4, 1), (3, 50, 3), (0, 9, 0)]
)
def test_the_warm_up_is_a_fifth_of_the_epochs_unless_given(warmup, epochs, warm):
    assert BalanceMix(warmup=warmup).start(make_data()[1], epochs).warm == warm


@pytest.mark.parametrize("mode", ["online", "paper"])
def test_views_are_wanted_once_the_warm_up_is_over(mode):
    method = make_method("balancemix", make_data()[1], warmup=2, mode=mode)
    training = Training(method, make_data()[0])
    wanted = []
    for _ in range(EPOCHS):
        wanted.append(training.method.request())
        training.epoch()
    assert wanted == [Request(1, (0,)), Request(1, (0,)), Request(2, (0, 2))]


def test_mode_epoch_wants_views_at_the_end_of_the_warm_up_and_after():
    method = make_method("balancemix", make_data()[1], warmup=2, mode="epoch")
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


def test_warm_up_mixes_given_labels_at_full_weight():
    method, model, x, index = known_case(warmup=1)
    method.epoch = 0
    lam = [lambda_of(method)] * 4
    got = method.loss(model, x[index], index).item()
    Y = method.table.given[index].numpy()
    clean = np.full((4, K), reference.C)
    f = confidence_of(model)
    x = x[index].numpy()
    want = reference.loss(f, x[:4], Y[:4], x[4:], Y[4:], lam, clean, np.ones((4, K)))
    assert got == pytest.approx(want, rel=1e-5)


def test_warm_up_without_mixing_is_bce_of_the_random_rows():
    method, model, x, index = known_case(warmup=1, warmup_mix=False)
    method.epoch = 0
    got = method.loss(model, x[index], index)
    want = BCE().start(method.table.given, 1).loss(model, x[index[:4]], index[:4])
    assert got.equal(want)


# BalanceMix: Eq. 10 end to end, on a table that is known.


def confidence_of(model):
    """The model as the reference wants it: a row in, K confidences out."""

    def f(row):
        with torch.no_grad():
            return model(torch.tensor(np.asarray(row), dtype=torch.float32)).sigmoid().tolist()

    return f


def lambda_of(method, pairs=1):
    """The λ that the method will draw next."""
    known = torch.Generator()
    known.set_state(method.generator.get_state())
    lam = draw_lambda(method.alpha, known, pairs)
    return float(lam) if pairs == 1 else lam.tolist()


def some_mixtures():
    half = torch.full((2, K, 2), 0.5, dtype=torch.float64)
    return Mixtures(half, half, half, torch.zeros(2, K, dtype=torch.uint8))


def known_case(**options):
    """A method past its warm-up with random P(clean), a model, and a batch of 4 + 4 rows."""
    x, labels = make_data(1)
    kept = {"warmup": 0, "epsilon": 0.52, "mode": "paper"}
    method = BalanceMix(**kept | options).start(labels, EPOCHS)
    generator = torch.Generator().manual_seed(2)
    clean = torch.rand(N, K, generator=generator)
    clean[7] = 0.9  # a row of which nothing is doubted
    method.table.write(slice(None), Status.CLEAN, clean)
    method.mixtures, method.epoch = some_mixtures(), 1
    index = torch.tensor([7, 30, 2, 19, 5, 30, 11, 26])  # row 30 is mixed with another one's 30
    return method, make_model(norm=False, seed=3), x, index


def refined(method, model, views, index):
    """The reference's labels, reliability, P(clean) and weights of a batch."""
    Y, p_G = method.table.given[index].numpy(), method.table.clean[index].float().numpy()
    f_1, f_2 = (np.array([confidence_of(model)(row) for row in view]) for view in views)
    labels, reliability = reference.refine(Y, p_G, f_1, f_2, method.epsilon)
    weight = np.where(reliability == reference.U, p_G, 1)
    return labels, reliability, p_G, weight


@pytest.mark.parametrize("pairs", [1, 4])
@pytest.mark.parametrize("views", [1, 2])
def test_paper_mode_loss_equals_equation_10(views, pairs):
    method, model, x, index = known_case(lambda_per="pair" if pairs > 1 else "batch")
    first, second = x[index], x[index] + (0.5 if views == 2 else 0.0)
    Y, reliability, p_G, _ = refined(method, model, (first, second), index)
    assert set(reliability[:4].flatten()) == {reference.C, reference.R, reference.U}
    lam = lambda_of(method, pairs) if pairs > 1 else [lambda_of(method)] * 4
    want = reference.loss(
        confidence_of(model), first[:4], Y[:4], first[4:], Y[4:], lam, reliability[:4], p_G[:4]
    )
    got = method.loss(model, [first, second] if views == 2 else first, index)
    assert got.item() == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("pairs", [1, 4])
def test_online_loss_is_equation_10_with_minority_labels_of_the_table(pairs):
    method, model, x, index = known_case(mode="online", lambda_per="pair" if pairs > 1 else "batch")
    given = method.table.given[index[4:]]  # as if all of them had been re-labelled
    method.table.write(index[4:], torch.where(given > 0, Status.ABSENT, Status.PRESENT))
    assert (method.table.whole().target[index[4:]] != given).all()
    first, second = x[index], x[index] + 0.5
    Y, reliability, p_G, _ = refined(method, model, (first, second), index)
    Y[4:] = method.table.whole().target[index[4:]].numpy()
    lam = lambda_of(method, pairs) if pairs > 1 else [lambda_of(method)] * 4
    want = reference.loss(
        confidence_of(model), first[:4], Y[:4], first[4:], Y[4:], lam, reliability[:4], p_G[:4]
    )
    got = method.loss(model, [first, second], index)
    assert got.item() == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("pairs", [1, 4])
def test_blended_loss_mixes_the_weights_as_the_labels(pairs):
    method, model, x, index = known_case(blend=True, lambda_per="pair" if pairs > 1 else "batch")
    first, second = x[index], x[index] + 0.5
    Y, _, _, weight = refined(method, model, (first, second), index)
    lam = lambda_of(method, pairs) if pairs > 1 else [lambda_of(method)] * 4
    want = reference.blended_loss(
        confidence_of(model), first[:4], Y[:4], first[4:], Y[4:], lam, weight[:4], weight[4:]
    )
    got = method.loss(model, [first, second], index)
    assert got.item() == pytest.approx(want, rel=1e-5)


def test_blend_changes_nothing_where_all_weights_are_one():
    x, labels = make_data()
    model, index = make_model(norm=False), torch.arange(8)
    plain, blend = (
        BalanceMix(warmup=1, blend=blend).start(labels, 1).loss(model, x[index], index)
        for blend in (False, True)
    )
    torch.testing.assert_close(plain, blend)


@pytest.mark.parametrize("pairs", [1, 4])
def test_epoch_mode_equals_equations_2_to_10_from_confidences_to_loss(pairs):
    rng = np.random.default_rng(0)
    n = 300
    truth = rng.random((n, K)) < 0.4
    labels = np.where(rng.random((n, K)) < 0.15, ~truth, truth).astype(np.uint8)
    margin = np.where(truth, 2.5, -2.5)
    f, f_1, f_2 = (1 / (1 + np.exp(-rng.normal(margin, 1)).astype(np.float32)) for _ in range(3))

    method = BalanceMix(
        warmup=0, mode="epoch", epsilon=0.9, lambda_per="pair" if pairs > 1 else "batch"
    ).start(torch.tensor(labels), EPOCHS)
    method.end_epoch(torch.tensor(f), torch.tensor((f_1 + f_2) / 2))
    p_G = reference.clean_probability(f.astype(float), labels)
    Y, reliability = reference.refine(labels, p_G, f_1, f_2, 0.9)
    np.testing.assert_array_equal(RELIABILITY[method.table.status], reliability)
    np.testing.assert_array_equal(method.table.whole().target, Y)
    doubted = p_G <= 0.5
    np.testing.assert_allclose(method.table.clean[doubted], p_G[doubted], atol=0.004)
    np.testing.assert_allclose(
        method.odds, reference.sampling_probability(f.astype(float), labels), rtol=1e-6
    )

    x, model = make_data(5, n)[0], make_model(norm=False)
    batch = torch.tensor(next(iter(method.batches(16))))
    x = x[batch].numpy()
    (R, M), b = batch.numpy().reshape(2, -1), len(batch) // 2
    assert set(reliability[R].flatten()) == {reference.C, reference.R, reference.U}
    lam = lambda_of(method, b) if pairs > 1 else [lambda_of(method)] * b
    want = reference.loss(
        confidence_of(model), x[:b], Y[R], x[b:], Y[M], lam, reliability[R], p_G[R]
    )
    got = method.loss(model, torch.tensor(x), batch)
    assert got.item() == pytest.approx(want, rel=1e-3)


@pytest.mark.parametrize("mode", ["online", "epoch", "paper"])
def test_reliability_and_weights_come_from_the_random_row_alone(mode):
    def loss(rows, **options):
        """The loss when the P(clean) of the ambiguous labels of `rows` is halved."""
        method, model, x, index = known_case(mode=mode, epsilon=1.0, **options)
        index = torch.tensor([7, 30, 2, 19, 5, 31, 11, 26])
        clean = method.table.clean.float()
        if rows is not None:
            clean[index[rows]] = (
                torch.where(clean[index[rows]] > 0.5, 1.0, 0.5) * clean[index[rows]]
            )
        status = torch.where(clean > 0.5, Status.CLEAN, Status.AMBIGUOUS)
        method.table.write(slice(None), status, clean)
        return method.loss(model, x[index], index)

    first, second = slice(0, 4), slice(4, 8)
    assert loss(second).equal(loss(None))
    assert loss(first) < loss(None)
    assert loss(second, blend=True) < loss(None, blend=True)


def test_a_partner_permuted_within_the_batch_brings_labels_but_no_weights():
    method, model, x, index = known_case(minority=False, mode="epoch")
    method.table.write(slice(None), Status.AMBIGUOUS)
    known = torch.Generator()
    known.set_state(method.generator.get_state())
    partner = torch.randperm(8, generator=known).numpy()
    lam = [float(draw_lambda(4.0, known))] * 8
    x_R, Y, p_G = x[index].numpy(), method.table.given[index].numpy(), method.table.clean[index]
    ambiguous = np.full((8, K), reference.U)
    want = reference.loss(
        confidence_of(model), x_R, Y, x_R[partner], Y[partner], lam, ambiguous, p_G.numpy()
    )
    assert method.loss(model, x[index], index).item() == pytest.approx(want, rel=1e-5)


# BalanceMix: re-labelling by views.


def echo_case(**options):
    """Row 0 of a model that says what it is shown: three doubted labels, one clean, one doubted."""
    labels = torch.tensor([[0, 1, 0, 1, 1]] * N)
    kept = {"warmup": 0, "epsilon": 0.8, "mode": "paper"}
    method = BalanceMix(**kept | options).start(labels, EPOCHS)
    clean = torch.tensor([[0.1, 0.2, 0.3, 0.9, 0.4]]).expand(N, -1)
    method.table.write(slice(None), Status.CLEAN, clean)
    method.mixtures, method.epoch = some_mixtures(), 1
    return method


def managed(method, model, x, index):
    """Target and weight of a batch, decided by its views."""
    views = [x] if isinstance(x, torch.Tensor) else x
    batch = Batch(views, index, Shard(len(index)))
    return method.managed(model, batch, *method.table.rows(index))


def test_re_labelling_goes_by_the_mean_of_both_views():
    method = echo_case()
    first = torch.tensor([[0.99, 0.01, 0.99, 0.01, 0.99]])
    second = torch.tensor([[0.70, 0.30, 0.55, 0.01, 0.90]])  # means 0.845, 0.155, 0.77, 0.01, 0.945
    target, weight = managed(method, Echo(), [first.logit(), second.logit()], torch.tensor([0]))
    assert target.tolist() == [[1, 0, 0, 1, 1]]
    torch.testing.assert_close(weight, torch.tensor([[1, 1, 0.3, 1, 1]]), rtol=0.004, atol=0)


def test_a_single_view_decides_alone():
    view = torch.tensor([[0.99, 0.01, 0.55, 0.01, 0.5]])
    target, weight = managed(echo_case(), Echo(), view.logit(), torch.tensor([0]))
    assert target.tolist() == [[1, 0, 0, 1, 1]]
    torch.testing.assert_close(weight, torch.tensor([[1, 1, 0.3, 1, 0.4]]), rtol=0.004, atol=0)


def test_more_than_two_views_are_averaged_too():
    views = [torch.full((1, K), p).logit() for p in (0.99, 0.99, 0.2)]  # mean 0.727
    target, _ = managed(echo_case(epsilon=0.75), Echo(), views, torch.tensor([0]))
    assert target.tolist() == [[0, 1, 0, 1, 1]]
    target, _ = managed(echo_case(epsilon=0.7), Echo(), views, torch.tensor([0]))
    assert target.tolist() == [[1, 1, 1, 1, 1]]


def test_refined_labels_last_for_the_step_only():
    method = echo_case()
    kept = method.table.state_dict()
    managed(method, Echo(), torch.full((2, K), 5.0), torch.tensor([0, 1]))
    assert same(method.table.state_dict(), kept)


def test_rows_without_doubted_labels_are_not_forwarded():
    method, shown = echo_case(), []
    even = (torch.arange(N) % 2 == 0)[:, None]
    method.table.write(slice(None), Status.CLEAN, torch.where(even, 0.9, method.table.clean))
    model = Echo()
    model.register_forward_hook(lambda module, inputs, output: shown.append(len(output)))
    views = [torch.zeros(6, K), torch.zeros(6, K)]
    managed(method, model, views, torch.arange(6))
    managed(method, model, views, torch.tensor([0, 2, 4, 6, 8, 10]))
    assert shown == [6]  # two views of three rows, then none


@pytest.mark.parametrize("mode", ["online", "epoch", "paper"])
def test_re_labelling_off_leaves_clean_and_ambiguous_labels(mode):
    x, labels = make_data()
    method = make_method("balancemix", labels, relabel=False, mode=mode)
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


# BalanceMix: views leave the model as it was (oracle 14).


def frozen_model():
    """Two normalisations, the first frozen in evaluation mode, and a dropout."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(D, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.BatchNorm1d(16)
    )
    model.append(nn.Linear(16, K))
    model.train()
    model[1].eval()
    return model


def snapshot(model):
    return {name: buffer.clone() for name, buffer in model.named_buffers()}


@pytest.mark.parametrize("make", [make_model, frozen_model])
def test_views_leave_buffers_modes_and_random_state_unchanged(make):
    method, _, x, index = known_case()
    model = make()
    buffers, modes = snapshot(model), [module.training for module in model.modules()]
    state = torch.get_rng_state()
    target, _ = managed(method, model, [x[index], x[index] + 0.5], index)
    assert same(snapshot(model), buffers)
    assert [module.training for module in model.modules()] == modes
    assert torch.get_rng_state().equal(state)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not target.requires_grad


def test_a_step_moves_buffers_by_its_one_forward_of_the_mixed_rows():
    method, _, x, index = known_case()
    model, twin = make_model(), make_model()
    lam = lambda_of(method)
    loss = method.loss(model, [x[index], x[index] + 0.5], index)
    twin(lam * x[index[:4]] + (1 - lam) * x[index[4:]])
    for name, buffer in twin.named_buffers():
        torch.testing.assert_close(dict(model.named_buffers())[name], buffer)
    assert model[1].num_batches_tracked == 1
    assert loss.requires_grad


def test_a_frozen_normalisation_stays_frozen_through_steps_and_predictions():
    method, _, x, index = known_case()
    model = frozen_model()
    frozen = {name: buffer.clone() for name, buffer in model[1].named_buffers()}
    for _ in range(3):
        method.loss(model, [x[index], x[index] + 0.5], index).backward()
        method.end_epoch(predict(model, Rows(x)))
    assert same(dict(model[1].named_buffers()), frozen)
    assert [module.training for module in model] == [True, False, True, True, True, True]


def test_modes_come_back_even_if_the_forward_pass_fails():
    model = frozen_model()
    with pytest.raises(ZeroDivisionError), evaluating(model):
        raise ZeroDivisionError
    assert [module.training for module in model] == [True, False, True, True, True, True]
    assert torch.is_grad_enabled()


# Loops of somebody's own.


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
    training = trained("balancemix", views=True, epsilon=0.8, mode="paper")
    assert np.isfinite(training.losses).all()
    assert training.losses != trained("balancemix", epsilon=0.8, mode="paper").losses


@pytest.mark.parametrize("views", [1, 2, 3])
def test_prediction_is_the_mean_confidence_over_views_in_the_order_of_rows(views):
    x, _ = make_data()
    model = make_model().eval()
    seen = [x * (1 + 0.1 * view) for view in range(views)]
    with torch.no_grad():
        want = torch.stack([model(view).sigmoid() for view in seen]).mean(0)
    got = predict(model, Rows(x, views), batch_size=7)
    torch.testing.assert_close(got, want)
    if views == 1:
        torch.testing.assert_close(predict_logits(model, Rows(x)).sigmoid(), want)


def test_prediction_takes_rows_in_batches_as_torch_hands_them_out():
    """`__getitems__` of torch's own data sets returns a list of samples."""

    class Listing(Rows):
        def __getitems__(self, indices):
            return [self[i] for i in indices]

    x, _ = make_data()
    model = make_model()
    torch.testing.assert_close(predict(model, Listing(x)), predict(model, Rows(x)))


def test_a_process_without_a_batch_of_its_own_predicts_nothing_and_does_not_fail(monkeypatch):
    x, _ = make_data()
    monkeypatch.setattr(processes, "rank", lambda: 1)
    monkeypatch.setattr(processes, "world_size", lambda: 2)
    monkeypatch.setattr(processes, "all_reduce", lambda values: values)
    assert predict(make_model(), Rows(x), batch_size=64).equal(torch.zeros(N, K))


@pytest.mark.parametrize("world", [2, 3])
def test_predictions_of_all_processes_add_up_to_the_whole(world, monkeypatch):
    x, _ = make_data()
    model = make_model()
    want = predict(model, Rows(x), batch_size=7)
    monkeypatch.setattr(processes, "world_size", lambda: world)
    monkeypatch.setattr(processes, "all_reduce", lambda values: values)
    parts = []
    for rank in range(world):
        monkeypatch.setattr(processes, "rank", lambda rank=rank: rank)
        parts.append(predict(model, Rows(x), batch_size=7))
    torch.testing.assert_close(sum(parts), want)


def test_data_without_rows_is_refused():
    with pytest.raises(ValueError, match="no row"):
        predict(make_model(), Rows(torch.zeros(0, D)))


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
