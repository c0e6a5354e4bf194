"""The demo's pictures of digits: what is drawn is what the features and the truth say."""

import numpy as np
import pytest
from PIL import Image

from balancemix.data import read
from balancemix.data.drawn import CELL, INK, PAPER, draw, write_digits


def test_each_cell_has_its_place():
    for cell, (row, column) in enumerate(((0, 0), (0, 1), (1, 0), (1, 1))):
        strip = np.zeros((8, 32), dtype=np.uint8)
        strip[:, 8 * cell : 8 * cell + 8] = 255
        picture = draw(strip)
        assert picture.size == (2 * CELL, 2 * CELL)
        for other in ((0, 0), (0, 1), (1, 0), (1, 1)):
            middle = (CELL * other[1] + CELL // 2, CELL * other[0] + CELL // 2)
            assert picture.getpixel(middle) == (INK if other == (row, column) else PAPER)


@pytest.fixture
def few(monkeypatch):
    """Make the data small."""
    monkeypatch.setattr("balancemix.data.formats.builtin.TRAIN", 60)
    monkeypatch.setattr("balancemix.data.formats.builtin.TEST", 20)


def test_a_folder_that_can_be_read_and_looked_at(few, tmp_path):
    file = write_digits(tmp_path / "seed-0", "mislabel:0.4", 0)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.parent == tmp_path) == [
        "seed-0"
    ]
    source, plain = read(str(file)), read("digits")
    assert source.truth is not None
    assert (source.truth == plain.given).all()
    wrong = (source.given != source.truth).any(1)
    assert wrong[:60].any()
    assert not wrong[60:].any()
    assert (source.features == plain.features).all()
    assert isinstance(source.images, list)
    with Image.open(source.images[7]) as image:
        drawn = np.asarray(image.convert("L"), dtype=np.float64)
    expected = np.asarray(draw(plain.images[7].numpy()).convert("L"), dtype=np.float64)
    assert np.abs(drawn - expected).mean() < 3


def test_drawn_again_only_the_labels_are_written(few, tmp_path):
    file = write_digits(tmp_path / "seed-0", "mislabel:0.4", 0)
    before = file.read_bytes()
    (tmp_path / "seed-0/images/0001.jpg").write_text("mine")
    file.write_text("damaged")
    assert write_digits(tmp_path / "seed-0", "mislabel:0.4", 0).read_bytes() == before
    assert (tmp_path / "seed-0/images/0001.jpg").read_text() == "mine"
