"""What holds for every method of `METHODS` that is trained."""

import copy
import io

import numpy as np
import pytest
import torch

from balancemix.methods import METHODS
from tests.methods.settings import SETTINGS, SOLVED, make_method, ready, trained
from tests.toys import EPOCHS, SIZE, K, Training, make_data, make_model, same

every_method = pytest.mark.parametrize("name", SETTINGS)


def test_every_method_is_put_to_the_contract_unless_it_is_solved():
    chosen = "auto"  # becomes one of the others: see tests/training/test_choose.py
    assert set(METHODS) == {*SETTINGS, *SOLVED, chosen}
    assert all(METHODS[name]().closed for name in SOLVED)
    assert not any(METHODS[name]().closed for name in SETTINGS)


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


# State and seeds.


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


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "bce"])
def test_another_seed_another_result(name):
    assert not trained(name).weights().equal(trained(name, seed=1).weights())


# Every method can be BCE.


@every_method
def test_every_method_names_the_settings_at_which_it_is_bce(name):
    assert SETTINGS[name].bce


@pytest.mark.parametrize(
    ("name", "options"), [(name, options) for name in SETTINGS for options in SETTINGS[name].bce]
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


# Data of every kind.


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
        ready(METHODS[name](), make_data()[1]).start(make_data()[1], epochs=0)


@every_method
def test_float64_models_train(name):
    x, labels = make_data()
    method = make_method(name, labels)
    training = Training(method, x.double(), method.build(make_model).double()).run()
    assert np.isfinite(training.losses).all()
