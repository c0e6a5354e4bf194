"""The pictures of the review page: JPEGs by row number, kept, and refused with a status."""

import io
import os

import numpy as np
import pytest
from PIL import Image

from balancemix.data import read
from balancemix.data.source import ReadOptions
from balancemix.pictures import NotShown
from balancemix.review.decoders import Decoders
from balancemix.review.pictures import WIDTHS, Pictures
from balancemix.review.refused import Refused
from tests.conftest import tiny_arrays


@pytest.fixture
def folder(tmp_path):
    """A folder with a large and a small picture."""
    path = tmp_path / "photos"
    path.mkdir()
    Image.new("RGB", (3000, 1500), "red").save(path / "large.jpg")
    Image.new("RGB", (30, 60), "blue").save(path / "small.png")
    return path


@pytest.fixture(autouse=True)
def ended(monkeypatch):
    """End what decodes after each test."""
    made, begin = [], Pictures.__init__

    def noted(self, *arguments, **options):
        begin(self, *arguments, **options)
        made.append(self)

    monkeypatch.setattr(Pictures, "__init__", noted)
    yield
    for each in made:
        each.close()


@pytest.fixture
def pictures(folder):
    names = ("large.jpg", "small.png", "gone.jpg", "out.jpg", "text.jpg")
    (folder / "text.jpg").write_text("<svg></svg>")
    Image.new("RGB", (3, 3)).save(folder.parent / "out.jpg")
    (folder / "out.jpg").symlink_to(folder.parent / "out.jpg")
    return Pictures([folder / name for name in names], folder, folder.parent / "thumbs")


def size_of(content):
    with Image.open(io.BytesIO(content)) as image:
        assert image.format == "JPEG"
        return image.size


def refusal(pictures, row, width=256):
    with pytest.raises(Refused) as raised:
        pictures.jpeg(row, width)
    return raised.value.status, raised.value.sentence


@pytest.mark.parametrize("width", WIDTHS)
def test_widths(pictures, width):
    assert size_of(pictures.jpeg(0, width)) == (width, width // 2)
    assert size_of(pictures.jpeg(1, width)) == (30, 60)


@pytest.mark.parametrize("width", [0, -1, 255, 4096, 10**9])
def test_other_widths_are_refused(pictures, width):
    assert refusal(pictures, 0, width)[0] == 404


@pytest.mark.parametrize("row", [-1, 5, 10**12])
def test_rows_that_are_not_there(pictures, row):
    assert refusal(pictures, row) == (404, f"There is no picture {row}.")
    assert (pictures.size(row), pictures.version(row), pictures.has(row)) == (None, "", False)


def test_facts_of_each_row(pictures):
    assert [pictures.size(row) for row in range(5)] == [(3000, 1500), (30, 60), None, None, None]
    assert [pictures.has(row) for row in range(5)] == [True, True, False, True, True]
    assert [len(pictures.version(row)) for row in range(5)] == [8, 8, 0, 0, 8]


def test_each_refusal_has_its_status(pictures, folder):
    assert refusal(pictures, 2) == (404, "gone.jpg is not there.")
    assert refusal(pictures, 3) == (403, f"out.jpg leads out of {folder}; it is not shown.")
    message = "text.jpg cannot be read (not a picture of a known kind)."
    assert refusal(pictures, 4) == (415, message)
    strict = Pictures(pictures.paths, folder, folder.parent / "thumbs", max_pixels=10)
    message = "small.png has 0.0018 megapixels, the limit is 1e-05 (`--max-pixels`)."
    assert refusal(strict, 1) == (413, message)
    assert strict.size(1) is None


def test_a_limit_above_that_of_pillow(folder, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    pictures = Pictures([folder / "small.png"], folder, folder.parent / "thumbs", 2000)
    assert size_of(pictures.jpeg(0, 256)) == (30, 60)


@pytest.mark.parametrize(("reason", "times"), [("slow", 1), ("unreadable", 1), ("later", 2)])
def test_what_cannot_be_decoded_is_tried_once(pictures, monkeypatch, reason, times):
    asked = []

    def fail(self, file, width, quality):
        asked.append(file.name)
        raise NotShown(reason, "large.jpg takes too long.")

    monkeypatch.setattr(Decoders, "jpeg", fail)
    first = refusal(pictures, 0)
    assert refusal(pictures, 0, 512) == first
    assert len(asked) == times  # a decoder that could not start is no fault of the picture


def test_a_picture_is_decoded_once(pictures, folder, monkeypatch):
    content = pictures.jpeg(0, 256)
    monkeypatch.setattr(Decoders, "jpeg", lambda *_: pytest.fail("it was read again"))
    assert pictures.jpeg(0, 256) == content
    again = Pictures(pictures.paths, folder, folder.parent / "thumbs")
    assert again.jpeg(0, 256) == content


def test_a_file_that_changes_is_read_again(pictures, folder):
    before, version = pictures.jpeg(1, 256), pictures.version(1)
    Image.new("RGB", (60, 30), "green").save(folder / "small.png")
    os.utime(folder / "small.png", ns=(1, 1))
    assert pictures.version(1) != version
    assert pictures.size(1) == (60, 30)
    assert pictures.jpeg(1, 256) != before


def test_a_cache_that_cannot_be_written(folder):
    (folder.parent / "thumbs").write_text("a file")
    pictures = Pictures([folder / "small.png"], folder, folder.parent / "thumbs")
    assert size_of(pictures.jpeg(0, 256)) == (30, 60)


def test_a_data_set_without_pictures(tmp_path):
    np.savez(tmp_path / "x.npz", **tiny_arrays())
    pictures = Pictures.of(read(str(tmp_path / "x.npz")), ReadOptions(), tmp_path / "thumbs")
    assert (pictures.has(0), pictures.size(0)) == (False, None)


def test_embeddings_of_a_folder(tmp_path, folder):
    names = ["large.jpg", "small.png", *(f"{i}.jpg" for i in range(118))]
    arrays = tiny_arrays() | {"images": np.array(names), "root": np.array("photos")}
    np.savez(tmp_path / "x.npz", **arrays)
    pictures = Pictures.of(read(str(tmp_path / "x.npz")), ReadOptions(), tmp_path / "thumbs")
    assert [pictures.size(row) for row in range(3)] == [(3000, 1500), (30, 60), None]


def test_a_folder_with_labels(photos):
    source = read(str(photos))
    pictures = Pictures.of(source, ReadOptions(), photos.parent / "thumbs")
    assert all(pictures.has(row) for row in range(len(source)))
    assert size_of(pictures.jpeg(0, 256)) == pictures.size(0)
