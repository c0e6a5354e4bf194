"""What holds for every method of `METHODS` of unknown (−1) and verified labels."""

import copy

import numpy as np
import pytest
import torch

from balancemix.errors import InputError
from balancemix.labels.table import Status
from balancemix.methods import METHODS
from balancemix.methods.base import Method
from tests.methods.settings import SETTINGS, draw_opinion, make_method, ready
from tests.methods.test_unknown import hidden
from tests.toys import EPOCHS, SIZE, Echo, K, N, Training, make_data, same

every_method = pytest.mark.parametrize("name", SETTINGS)

# Their papers have something to say of labels that nobody has observed.
FILLING = ("an-ls", "epr", "role", "em-apl", "second-opinion")


def started(name, given, verified=None, **options) -> Method:
    method = METHODS[name](**SETTINGS[name].tiny | options)
    return ready(method, given).start(given, EPOCHS, verified=verified)


def some_verified(share=0.3):
    return torch.rand(N, K, generator=torch.Generator().manual_seed(1)) < share


@every_method
def test_a_row_and_a_class_of_which_nothing_is_known_survive(name):
    x, labels = make_data()
    given = hidden(labels, 0.4)
    given[:7], given[:, 1] = -1, -1
    training = Training(started(name, given, some_verified()), x, views=True)
    for _ in range(EPOCHS):
        facts = training.epoch()
        assert np.isfinite([*facts.values()]).all()
    assert np.isfinite(training.losses).all()
    assert training.weights().isfinite().all()


@every_method
def test_a_batch_of_which_nothing_is_known_survives(name):
    x, labels = make_data()
    given = labels.to(torch.int8)
    given[:SIZE] = -1
    training = Training(started(name, given), x)
    index = torch.arange(SIZE)
    for _ in range(EPOCHS):
        loss = training.method.loss(training.model, x[index], index)
        loss.backward()
        assert loss.isfinite()
        training.optimiser.zero_grad()
        training.epoch()


@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in FILLING])
@pytest.mark.parametrize("options", [{"alpha": 0.0}, {}])
def test_unknown_labels_have_no_gradient_at_first(name, options):
    given = hidden(make_data()[1])
    given[:, 1] = -1
    method = started(name, given, **options)
    logits = torch.randn(2 * SIZE, K, generator=torch.Generator().manual_seed(0)).requires_grad_()
    method.loss(method.build(Echo), logits, torch.arange(2 * SIZE)).backward()
    gradient = logits.grad
    assert gradient is not None
    assert (gradient[:, 1] == 0).all()
    assert (gradient != 0).any()
    if not method.alpha:  # λ is 1: a row is not mixed
        assert (gradient[given[: 2 * SIZE] < 0] == 0).all()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (name, options)
        for name in SETTINGS
        for options in SETTINGS[name].bce
        if name not in ("coteaching", "an-ls")
    ],
)
def test_bce_setting_is_bce_on_the_known_labels(name, options):
    x, labels = make_data()
    given = hidden(labels)
    plain = Training(METHODS["bce"]().start(given, EPOCHS), x).run()
    alike = Training(METHODS[name](**options).start(given, EPOCHS), x).run()
    torch.testing.assert_close(alike.weights(), plain.weights())


def test_co_teaching_s_bce_setting_is_bce_on_the_known_labels():
    x, labels = make_data()
    given = hidden(labels)
    plain = Training(METHODS["bce"]().start(given, EPOCHS), x).run()
    alike = Training(METHODS["coteaching"](**SETTINGS["coteaching"].bce[0]).start(given, EPOCHS), x)
    one = alike.run().method.members(alike.model)[0]
    torch.testing.assert_close(dict(one.state_dict()), dict(plain.model.state_dict()))


@every_method
def test_verified_labels_stay_verified_at_full_weight(name):
    x, labels = make_data()
    given, verified = hidden(labels, 0.2), some_verified()
    sure = verified & (given >= 0)
    training = Training(started(name, given, verified), x, views=True)
    for _ in range(EPOCHS):
        table = training.method.table
        target, weight = table.rows(slice(None))
        assert ((table.status == Status.VERIFIED) == sure).all()
        assert target[sure].equal(given[sure].float())
        assert (weight[sure] == 1).all()
        assert (table.clean[sure] == 1).all()
        training.epoch()


@every_method
def test_a_verified_label_is_learned_however_large_its_loss(name):
    """Every label is verified: the gradient points towards the given one, in every epoch."""
    x, labels = make_data()
    method = started(name, labels, torch.ones_like(labels), alpha=0.0)
    if hasattr(method, "mix"):
        method.mix = False
        method.odds = None
    training = Training(method, x)
    for _ in range(EPOCHS):
        sign = 2 * labels[:SIZE].float() - 1
        logits = (-6 * sign).requires_grad_()  # as wrong as can be
        method.loss(method.build(Echo).train(), logits, torch.arange(SIZE)).backward()
        gradient = logits.grad
        assert gradient is not None
        assert (gradient * sign < 0).all()
        training.epoch()


@every_method
def test_state_with_unknown_and_verified_labels_gives_the_identical_next_epoch(name):
    x, labels = make_data()
    given, verified = hidden(labels, 0.3), some_verified()
    first = Training(started(name, given, verified), x, views=True).run(2)
    state = first.method.state_dict()
    second = Training(started(name, given, verified).load_state_dict(state), x, views=True)
    second.model = copy.deepcopy(first.model)
    second.optimiser = torch.optim.SGD(second.model.parameters(), lr=0.1, momentum=0.9)
    second.optimiser.load_state_dict(copy.deepcopy(first.optimiser.state_dict()))
    assert first.epoch() == second.epoch()
    assert first.weights().equal(second.weights())
    assert same(first.method.state_dict(), second.method.state_dict())


@every_method
def test_a_state_of_other_verified_labels_is_refused(name):
    labels = make_data()[1]
    state = started(name, labels, some_verified()).state_dict()
    with pytest.raises(InputError, match="other given labels"):
        make_method(name, labels).load_state_dict(state)


def test_a_verified_label_is_trained_on_as_given_and_an_unknown_one_on_what_the_judge_says():
    given = torch.tensor([[1, 1, 0, -1]] * 10, dtype=torch.int8)
    opinion = draw_opinion(given)
    verified = torch.tensor([[True, False, True, True]] * 10)
    method = METHODS["second-opinion"]().informed_by(opinion, None)
    target, weight = method.start(given, 1, verified=verified).table.rows(slice(None))
    assert target[:, [0, 2]].equal(given[:, [0, 2]].float())
    judged = opinion.targets(given, 0.4).half().float()
    assert target[:, 1].equal(judged[:, 1])
    assert target[:, 3].equal(judged[:, 3])
    assert (weight == 1).all()
