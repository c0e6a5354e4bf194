"""What a model said of the rows, as one matrix or batch by batch."""

import pytest
import torch

from balancemix.methods import METHODS, BalanceMix
from balancemix.methods.stream import as_matrix, by_batches
from balancemix.training.predict import predict, predictions
from tests.methods.test_methods import EPOCHS, TINY, Rows, make_data, make_model


def dealt(matrix, seed=0, size=7):
    """Batches of the matrix's rows in any order, as a loader might hand them out."""
    order = torch.randperm(len(matrix), generator=torch.Generator().manual_seed(seed))
    return ((index, matrix[index]) for index in torch.split(order, size))


def drawn(n=600, k=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    truth = torch.rand(n, k, generator=generator) < 0.3
    wrong = torch.rand(n, k, generator=generator) < 0.1
    noise = torch.randn(2, n, k, generator=generator)
    confidence, seen = (torch.where(truth, 2.5, -2.5) + noise).sigmoid()
    return (truth ^ wrong).to(torch.uint8), confidence, seen


def test_a_matrix_comes_back_from_its_batches():
    matrix = torch.rand(20, 3)
    assert as_matrix(dealt(matrix), (20, 3)).equal(matrix)
    assert as_matrix(matrix, (20, 3)).equal(matrix)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (None, "needs the N×K confidence"),
        (torch.zeros(4, 3), r"\(4, 3\)"),
        (torch.full((4, 2), torch.nan), "8 not finite"),
        ([(torch.arange(4), torch.zeros(4, 3))], r"\(4, 3\)"),
        ([(torch.arange(3), torch.zeros(4, 2))], r"\(4, 2\)"),
    ],
)
def test_what_is_no_confidence_is_refused(said, message):
    with pytest.raises(ValueError, match=message):
        list(by_batches(said, (4, 2)))


def test_predictions_are_what_predict_collects():
    x, model = make_data()[0], make_model()
    whole = predict(model, Rows(x), 9)
    for index, said in predictions(model, Rows(x), 9):
        assert said.equal(whole[index])
    assert model.training
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "epoch"},
        {"trust_positives": True},
        {"reweight": False},
        {"minority": False},
        {"score": "positive-mean"},
        {"score": "inverse-frequency"},
    ],
)
def test_balancemix_learns_the_same_from_batches(options):
    given, confidence, seen = drawn()
    first, second = (BalanceMix(**{"warmup": 0} | options).start(given, 4) for _ in range(2))
    facts = first.end_epoch(confidence, seen)
    assert second.end_epoch(dealt(confidence), dealt(seen, 1)) == pytest.approx(facts)
    for matrix, other in zip(second.table.whole(), first.table.whole(), strict=True):
        assert matrix.equal(other)
    left = 3 if first.reweight else 4  # ambiguous, or ignored
    assert set(first.table.status.unique().tolist()) == {0, 1, 2, left}
    if first.odds is not None:
        torch.testing.assert_close(second.odds, first.odds, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_batches(name):
    x, labels = make_data()
    first, second = (METHODS[name](**TINY.get(name, {})).start(labels, EPOCHS) for _ in range(2))
    model = first.build(make_model)
    for _ in range(2):
        said = predict(first.witness(model), Rows(x)) if first.needs_confidence else None
        first.end_epoch(said)
        second.end_epoch(None if said is None else dealt(said))
    for matrix, other in zip(first.table.whole(), second.table.whole(), strict=True):
        assert matrix.equal(other)
