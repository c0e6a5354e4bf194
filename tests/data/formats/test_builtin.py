import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score

from balancemix.data import ReadOptions, load, load_inputs
from balancemix.data.formats.builtin import CELLS, strips
from tests.data.formats.contract import feature_rows


@pytest.fixture(scope="module")
def data():
    return load("digits")


def test_what_is_in_it(data):
    assert data.classes == [str(k) for k in range(10)]
    assert (len(data.train), len(data.test)) == (4000, 1000)
    assert data.train.features.dtype == torch.float32
    assert data.train.features.shape[1] == data.test.features.shape[1] == 300
    for rows in (data.train, data.test):
        assert rows.given.dtype == torch.int8
        assert rows.given.sum(1).min() == 1
        assert rows.given.sum(1).max() == 4
        assert rows.picture(0).size == (32, 8)
        assert torch.isfinite(rows.features).all()


def test_training_is_long_tailed_and_the_test_is_not(data):
    trained, tested = data.train.given.sum(0), data.test.given.sum(0)
    assert 20 < trained.max() / trained.min() < 40
    assert trained.argmax() == 0
    assert tested.min() >= 30
    assert tested.max() / tested.min() < 2


def test_same_seed_same_digits(data):
    again, other = load("digits"), load("digits", options=ReadOptions(seed=1))
    assert torch.equal(again.train.given, data.train.given)
    pictures = feature_rows(again.train).pictures
    assert isinstance(pictures, torch.Tensor)
    assert torch.equal(pictures, data.train.pictures)
    torch.testing.assert_close(feature_rows(again.test).features, data.test.features)
    assert not torch.equal(other.train.given, data.train.given)


def test_train_and_test_share_no_digit(data):
    def cells(rows) -> set[bytes]:
        split = rows.pictures.view(-1, 8, CELLS, 8).transpose(1, 2).reshape(-1, 64).numpy()
        return {cell.tobytes() for cell in split if cell.any()}

    trained, tested = cells(data.train), cells(data.test)
    assert len(trained) > 900
    assert len(tested) > 400
    assert not trained & tested


def test_pixels_are_what_is_shown(data):
    raw = load("digits:pixels")
    assert torch.equal(raw.train.given, data.train.given)
    features = feature_rows(raw.train).features
    assert features.shape == (4000, 256)
    shown = torch.from_numpy(np.asarray(raw.train.picture(5)).copy()).flatten() / 255
    torch.testing.assert_close(features[5], shown, atol=2e-3, rtol=0)


def test_strips_hold_one_to_four():
    digit = np.array([3, 3, 7, 10])
    cells = strips(np.array([0, 1, 2]), digit, np.ones(10), 2000, np.random.default_rng(0))
    held = (cells != 3).sum(1)
    assert np.bincount(held, minlength=5)[0] == 0
    assert (np.bincount(held)[1:] > 400).all()
    share = (cells[cells != 3] == 2).mean()
    assert abs(share - 0.5) < 0.05  # odds are of digits, not of pictures of them
    assert ((cells == 3).mean(0) > 0.3).all()  # any cell may stay blank


def test_clean_labels_can_be_learnt(data):
    x, target = data.train.features, data.train.given.float()
    ridge = x.T @ x + 100 * torch.eye(x.shape[1])
    weight = torch.linalg.solve(ridge, x.T @ (target - target.mean(0)))
    logits = (data.test.features @ weight).numpy()
    assert average_precision_score(data.test.given.numpy(), logits) > 0.97


def test_rows_to_predict_are_made_with_the_seed_of_their_run():
    wanted = load("digits", options=ReadOptions(seed=1)).test
    rows = load_inputs("digits", wanted.classes, options=ReadOptions(seed=1))
    torch.testing.assert_close(feature_rows(rows).features, feature_rows(wanted).features)
