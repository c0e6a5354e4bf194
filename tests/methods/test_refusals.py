"""Misuse that every method refuses with a sentence instead of learning something wrong."""

import copy
import dataclasses
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import torch

from balancemix.labels.table import LabelTable
from balancemix.methods import BCE, METHODS, BalanceMix, Focal, Method
from tests.methods.settings import SETTINGS, make_method, ready
from tests.toys import EPOCHS, SIZE, K, Training, make_data, make_model, same

every_method = pytest.mark.parametrize("name", SETTINGS)


def make(name: str, **options: Any) -> Method:
    return METHODS[name](**options)


def choices():
    """Each field of each method that is a choice between words."""
    for name, method in METHODS.items():
        for field, hint in get_type_hints(method).items():
            if any(get_origin(part) is Literal for part in (hint, *get_args(hint))):
                yield name, field


@pytest.mark.parametrize(("name", "field"), list(choices()))
def test_a_misspelt_choice_is_refused(name, field):
    with pytest.raises(ValueError, match=f"{field}='Sum'"):
        make(name, **{field: "Sum"})


def test_the_nearest_choice_is_named():
    with pytest.raises(ValueError, match=r"reduction='Sum': did you mean 'sum'\?"):
        make("bce", reduction="Sum")


def test_a_choice_changed_later_is_refused_by_start():
    method: Any = BCE()
    method.reduction = "means"
    with pytest.raises(ValueError, match="reduction='means'"):
        method.start(make_data()[1], 1)


def test_a_subclass_without_the_base_check_is_still_checked():
    @dataclasses.dataclass(kw_only=True)
    class Other(Method):
        def __post_init__(self):
            pass

    other: Any = Other
    with pytest.raises(ValueError, match="reduction='Sum'"):
        other(reduction="Sum").start(make_data()[1], 1)


@pytest.mark.parametrize("name", METHODS)
def test_a_negative_alpha_is_refused(name):
    with pytest.raises(ValueError, match="alpha must be at least 0"):
        METHODS[name](alpha=-1.0)


# Before and at the start.


@every_method
def test_a_method_that_has_not_started_says_so(name):
    method, (x, _) = METHODS[name](), make_data()
    index = torch.arange(SIZE)
    for use in (
        lambda: method.table,
        lambda: method.epoch,
        lambda: method.loss(method.build(make_model), x[index], index),
        lambda: method.batches(SIZE),
        lambda: method.end_epoch(torch.rand(len(x), K)),
        lambda: method.state_dict(),
        lambda: method.load_state_dict(make_method(name, make_data()[1]).state_dict()),
    ):
        with pytest.raises(ValueError, match=r"has not started: call start\(given, epochs\)"):
            use()


@every_method
def test_a_method_that_has_not_started_can_be_copied_and_compared(name):
    method: Any = METHODS[name]()
    assert copy.copy(method) == copy.deepcopy(method) == method
    with pytest.raises(AttributeError, match="no_such_thing"):
        method.no_such_thing  # noqa: B018


@every_method
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (torch.zeros(4), "N×K"),
        (torch.full((4, K), 2), "0, 1 or −1"),
        (torch.full((4, K), 0.5), "0, 1 or −1"),
        (torch.full((4, K), torch.nan), "all given labels are unknown"),
        (torch.full((4, K), torch.inf), "0, 1 or −1"),
        (torch.zeros(0, K), "no rows"),
        (torch.zeros(4, 0), "no classes"),
    ],
)
def test_given_labels_that_cannot_be_are_refused(name, given, message):
    with pytest.raises(ValueError, match=message):
        ready(METHODS[name](), given).start(given, EPOCHS)


@every_method
@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_a_seed_that_torch_cannot_hold_is_refused(name, seed):
    with pytest.raises(ValueError, match="seed must be"):
        ready(METHODS[name](), make_data()[1]).start(make_data()[1], EPOCHS, seed)


# In a step.


@every_method
@pytest.mark.parametrize(
    ("index", "message"),
    [
        (torch.tensor([1]), "8 rows of x and 1 row number"),
        (torch.arange(8) - 1, "between 0 and 39"),
        (torch.arange(8) + 33, "between 0 and 39"),
        (torch.arange(8.0), "whole numbers"),
        (torch.ones(8, dtype=torch.bool), "whole numbers"),
        (torch.zeros(8, 1, dtype=torch.int64), "one row number for each row"),
    ],
)
def test_row_numbers_that_cannot_be_are_refused(name, index, message):
    x, labels = make_data()
    method = make_method(name, labels)
    with pytest.raises(ValueError, match=message):
        method.loss(method.build(make_model), x[:8], index)


def test_views_of_unequal_length_are_refused():
    x, labels = make_data()
    with pytest.raises(ValueError, match="7 rows of x and 8 row numbers"):
        BCE().start(labels, 1).loss(make_model(), [x[:8], x[:7]], torch.arange(8))


@every_method
def test_a_model_of_too_few_classes_is_refused(name):
    x, labels = make_data()
    method, index = make_method(name, labels), torch.arange(8)
    model = method.build(lambda: torch.nn.Linear(x.shape[1], 1))
    with pytest.raises(ValueError, match=r"size|shape"):
        method.loss(model, x[index], index)


# At the end of an epoch.


def wants_confidence(name):
    """A method at the first epoch whose end asks for confidence, or None."""
    x, labels = make_data()
    training = Training(make_method(name, labels), x)
    while not training.method.request().passes:
        training.epoch()
        if training.method.epoch == EPOCHS:
            return None
    return training


@every_method
@pytest.mark.parametrize("wrong", ["missing", "shape", "nan", "logits"])
def test_confidence_that_cannot_be_is_refused_and_changes_nothing(name, wrong):
    training = wants_confidence(name)
    if training is None:
        return
    good = training.confidence()
    bad = {
        "missing": [],
        "shape": [matrix[1:] for matrix in good],
        "nan": [torch.full_like(matrix, torch.nan) for matrix in good],
        "logits": [matrix.logit() for matrix in good],
    }[wrong]
    before = copy.deepcopy(training.method.state_dict())
    with pytest.raises(ValueError, match="confidence"):
        training.method.end_epoch(*bad)
    assert same(training.method.state_dict(), before)
    training.method.end_epoch(*good)


@every_method
def test_an_end_of_epoch_that_fails_changes_nothing(name, monkeypatch):
    training = wants_confidence(name) or Training(make_method(name, make_data()[1]), make_data()[0])
    training.run(EPOCHS - 1 - training.method.epoch)
    method = training.method
    confidence = training.confidence() if method.request().passes else []
    before = copy.deepcopy(method.state_dict())

    def fail(*args):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(LabelTable, "write", fail)
        try:
            method.end_epoch(*confidence)
        except MemoryError:
            assert same(method.state_dict(), before)
            patch.undo()
            method.end_epoch(*confidence)
    assert method.epoch == before["epoch"] + 1


def test_bad_views_leave_the_table_of_balancemix_alone():
    _, labels = make_data()
    method = BalanceMix(warmup=0).start(labels, EPOCHS)
    before = copy.deepcopy(method.state_dict())
    with pytest.raises(ValueError, match="confidence"):
        method.end_epoch(torch.rand(labels.shape), torch.full(labels.shape, 2.0))
    assert same(method.state_dict(), before)


# A state of something else.


@every_method
def test_the_state_of_other_labels_is_refused(name):
    _, labels = make_data()
    method = make_method(name, labels)
    before = copy.deepcopy(method.state_dict())
    flipped = labels.clone()
    flipped[3, 2] = 1 - flipped[3, 2]
    for other in (labels[1:], labels[:, 1:], flipped):
        state = make_method(name, other).state_dict()
        with pytest.raises(ValueError, match="other given labels"):
            method.load_state_dict(state)
    assert same(method.state_dict(), before)


@every_method
def test_a_state_that_lacks_something_changes_nothing(name):
    method = make_method(name, make_data()[1])
    before = copy.deepcopy(method.state_dict())
    state = {**make_method(name, make_data()[1], seed=5).state_dict(), "epoch": 2}
    del state["generator"]
    with pytest.raises(KeyError):
        method.load_state_dict(state)
    assert same(method.state_dict(), before)


def test_focal_does_not_stretch_logits_of_one_class():
    with pytest.raises(ValueError, match="shape"):
        Focal().criterion(torch.zeros(4, 1), torch.zeros(4, 3))
