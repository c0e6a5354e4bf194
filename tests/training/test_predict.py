"""Confidence of all rows: views averaged, rows in order, processes together."""

import pytest
import torch

from balancemix import processes
from balancemix.training.predict import predict, predict_logits, write_predictions
from tests.toys import D, K, N, Rows, make_data, make_model


def test_no_name_is_a_formula_in_the_file(tmp_path):
    out, confidence = tmp_path / "predictions.csv", torch.tensor([[0.75, 0.25], [0.0, 1.0]])
    write_predictions(out, ["=1+1", "b.png"], ["-cat", "dog"], confidence, 0.5)
    assert out.read_text(encoding="utf-8").splitlines() == [
        "image,labels,'-cat,dog",
        "'=1+1,'-cat,0.7500,0.2500",
        "b.png,dog,0.0000,1.0000",
    ]


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


class Numbered(Rows):
    """Rows that come under other numbers than those asked for."""

    def __init__(self, x, numbers):
        super().__init__(x)
        self.numbers = numbers

    def __getitem__(self, i):
        return self.x[i], self.numbers[i]


@pytest.mark.parametrize(
    ("row", "number"),
    [(8, 7), (3, N), (3, -1), (3, 5)],
    ids=["twice", "beyond the end", "negative", "another's"],
)
def test_rows_under_wrong_numbers_are_refused(row, number):
    x, _ = make_data()
    numbers = list(range(N))
    numbers[row] = number
    with pytest.raises(ValueError, match=rf"data\[{row}\] came as row {number}: .*\(x, {row}\)"):
        predict(make_model(), Numbered(x, numbers), batch_size=7)


def test_logits_that_are_not_one_row_each_are_refused():
    x, _ = make_data()
    model = torch.nn.Sequential(make_model(), torch.nn.Flatten(0))
    with pytest.raises(ValueError, match=r"B×K logits, not of shape \(35,\) for 7 rows"):
        predict(model, Rows(x), batch_size=7)


@pytest.mark.parametrize("size", [0, -3])
def test_a_batch_size_below_one_is_refused(size):
    with pytest.raises(ValueError, match=f"batch_size must be at least 1, it is {size}"):
        predict(make_model(), Rows(make_data()[0]), batch_size=size)
