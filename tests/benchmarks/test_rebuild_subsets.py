"""The subsets anew from downloads in their official layout, generated here and small."""

import csv
import io

import numpy as np
import pytest
import torch
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from balancemix.data.formats import deepfashion
from balancemix.data.source import ReadOptions
from balancemix.data.tables.new import label_cells
from benchmarks import rebuild_subsets as subsets
from tests.conftest import SHARED
from tests.data.formats.test_coco import make as make_coco
from tests.data.formats.test_deepfashion import make as make_deepfashion

shared = pytest.mark.shared


def lines(file):
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


def photo(seed: int, size=(90, 60)) -> Image.Image:
    generator = np.random.default_rng(seed)
    small = generator.integers(0, 256, (6, 7, 3), dtype=np.uint8)
    return Image.fromarray(small).resize(size, Image.Resampling.BICUBIC)


@pytest.fixture
def listed(tmp_path, monkeypatch):
    folder = tmp_path / "lists"
    folder.mkdir()
    monkeypatch.setattr(subsets, "LISTS", folder)

    def write(name: str, text: str) -> None:
        (folder / f"{name}.txt").write_text(f"# what it is\n{text}")

    return write


@pytest.mark.parametrize("year", ["2014", "2017"])
def test_coco(tmp_path, listed, year):
    source = tmp_path / "coco"
    source.mkdir()
    make_coco(source, year)
    listed("coco160", "train 12\ntrain 9\ntest 42\n")
    out = tmp_path / "out"
    assert subsets.main(["coco160", str(source), "--out", str(out)]) == 0
    found = lines(out / "labels.csv")
    assert [line["image"] for line in found] == [f"{i:012}.jpg" for i in (12, 9, 42)]
    assert [line["labels"] for line in found] == ["person", "person|cat", "hair drier|cat"]
    assert [line["split"] for line in found] == ["train", "train", "test"]
    with Image.open(out / "images" / "000000000042.jpg") as image:
        assert image.size == (160, 160)
        assert abs(np.asarray(image)[80, 80, 0] - 42) < 4


def test_coco_that_lacks_something(tmp_path, listed, capsys):
    source = tmp_path / "coco"
    source.mkdir()
    run = ["coco160", str(source), "--out", str(tmp_path / "out")]
    listed("coco160", "train 9\ntrain 500\n")
    assert subsets.main(run) == 2
    assert "holds no annotations" in capsys.readouterr().err
    make_coco(source)
    assert subsets.main(run) == 2
    assert "1 of 2 images were not found there, such as 000000000500" in capsys.readouterr().err
    listed("coco160", "train 9\n")
    (source / "train2014" / "COCO_train2014_000000000009.jpg").unlink()
    assert subsets.main(run) == 2
    assert "1 images are missing: COCO_train2014_000000000009.jpg" in capsys.readouterr().err


def test_deepfashion(tmp_path, listed, capsys):
    source = make_deepfashion(tmp_path / "official")
    official = deepfashion.read(source, ReadOptions())
    for i, path in enumerate(official.images):
        photo(i).save(path, quality=80)
    chosen = [8, 0, 5]  # of the official test, train and val
    text = ""
    for split, row in zip(("train", "train", "test"), chosen, strict=True):
        key = subsets.fingerprint(photo(row, (240, 160)))
        text += f"{split} {row:05} {key}\n"
    listed("deepfashion", text)
    out = tmp_path / "out"
    assert subsets.main(["deepfashion", str(source), "--out", str(out)]) == 0
    found = lines(out / "labels.csv")
    assert [line["image"] for line in found] == [
        "train_00008.jpg",
        "train_00000.jpg",
        "test_00005.jpg",
    ]
    for line, row in zip(found, chosen, strict=True):
        present = {official.classes[k] for k in official.given[row].nonzero().flatten()}
        assert set(line["labels"].split("|")) == present
        with Image.open(out / "images" / line["image"]) as image:
            assert image.size == (240, 160)
            near = np.asarray(image, dtype=float) - np.asarray(photo(row, (240, 160)))
            assert abs(near).mean() < 6
    listed("deepfashion", text + "test 00077 " + subsets.fingerprint(photo(77)) + "\n")
    assert subsets.main(["deepfashion", str(source), "--out", str(out)]) == 2
    assert "1 of 4 images were not found there, such as test_00077" in capsys.readouterr().err


def test_copies_of_one_photo_are_each_taken_once(tmp_path):
    source = make_deepfashion(tmp_path)
    official = deepfashion.read(source, ReadOptions())
    for i, path in enumerate(official.images):
        photo(i // 2).save(path)
    key = subsets.fingerprint(photo(1))
    members = [subsets.Member("train", "a.jpg", key), subsets.Member("train", "b.jpg", key)]
    assert isinstance(official.images, list)
    assert sorted(subsets.find_deepfashion(official.images, members)) == [2, 3]


@pytest.mark.parametrize(("name", "count"), [("coco160", 7000), ("deepfashion", 4000)])
def test_the_lists_are_whole(name, count):
    members = subsets.read_list(name)
    assert len(members) == count == len({member.name for member in members})
    assert {member.split for member in members} == {"train", "test"}


@shared
@pytest.mark.parametrize("name", ["coco160", "deepfashion"])
def test_the_lists_are_those_of_the_subsets(name):
    found = [(line["image"], line["split"]) for line in lines(SHARED / name / "labels.csv")]
    assert [(member.name, member.split) for member in subsets.read_list(name)] == found


@shared
def test_coco_s_labels_are_those_of_the_subset():
    with np.load(SHARED / "labels" / "coco2014_labels.npz") as arrays:
        numbers = np.concatenate([arrays["train_ids"], arrays["val_ids"]]).tolist()
        labels = np.concatenate([arrays["train_labels"], arrays["val_labels"]])
        classes = arrays["classes"].tolist()
    rows = dict(zip(numbers, labels, strict=True))
    members = subsets.read_list("coco160")
    listed = torch.from_numpy(np.stack([rows[int(member.key)] for member in members]))
    found = [line["labels"] for line in lines(SHARED / "coco160" / "labels.csv")]
    assert label_cells(listed, classes) == found


@shared
@pytest.mark.parametrize("name", ["coco160", "deepfashion"])
def test_sizes_and_quality_are_those_of_the_subset(name):
    for line in lines(SHARED / name / "labels.csv")[::500]:
        with Image.open(SHARED / name / "images" / line["image"]) as ours:
            assert subsets.shrink(ours, name).size == ours.size
            again = io.BytesIO()
            ours.convert("RGB").save(again, "JPEG", quality=subsets.QUALITY[name])
            written = Image.open(again)
            assert isinstance(written, JpegImageFile)
            assert isinstance(ours, JpegImageFile)
            assert written.quantization == ours.quantization


@shared
def test_copies_of_deepfashion_are_found_by_their_fingerprints():
    members = subsets.read_list("deepfashion")
    known = np.stack([subsets.bits(member.key) for member in members])
    for i in range(0, 4000, 80):
        with Image.open(SHARED / "deepfashion" / "images" / members[i].name) as ours:
            larger = ours.resize((ours.width * 15 // 8, ours.height * 15 // 8))
        copy = io.BytesIO()
        larger.save(copy, "JPEG", quality=75)
        key = subsets.bits(subsets.fingerprint(Image.open(copy)))
        distance = subsets.differing(known, key)
        assert distance[i] <= subsets.NEAR
        assert distance[i] == distance.min()
