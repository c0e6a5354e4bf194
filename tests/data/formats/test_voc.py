"""VOC devkits in their own layout: small with images, and at full size with the real labels."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from balancemix.cli import main
from balancemix.data import ReadOptions, View, load
from balancemix.data.formats import voc
from balancemix.data.rows import Rows
from balancemix.data.splits import split
from balancemix.evaluation import metrics
from balancemix.labels.classes import imbalance
from balancemix.plan.plan import Plan
from balancemix.training.experiment import load_rows
from tests.conftest import SHARED
from tests.data.formats.contract import refused

CLASSES = ["aeroplane", "dog", "train"]  # the last one is also the name of a set of images
SETS = {
    "2007": {
        "train": {"000012": [1, -1, 0]},
        "val": {"000005": [-1, 1, -1], "000017": [-1, -1, 1]},
        "test": {"000001": [1, 0, -1], "000002": [-1, -1, 1], "000003": [0, 1, -1]},
    },
    "2012": {
        "train": {"2008_000008": [1, 1, 0], "2008_000015": [-1, -1, 1]},
        "val": {"2008_000002": [0, -1, 1], "2008_000003": [1, 1, -1]},
    },
}


def write(home: Path, images: str, numbers, values, classes=CLASSES) -> None:
    """Write the files of a set as the devkits have them, padded and ending in a blank."""
    main = home / "ImageSets" / "Main"
    main.mkdir(parents=True, exist_ok=True)
    (main / f"{images}.txt").write_text("".join(f"{number}\n" for number in numbers))
    for name, column in zip(classes, np.asarray(values).T.tolist(), strict=True):
        lines = "".join(f"{n} {v:2}\n" for n, v in zip(numbers, column, strict=True))
        (main / f"{name}_{images}.txt").write_text(lines)


def make(folder: Path, *years: str) -> Path:
    for year in years:
        home = folder / "VOCdevkit" / f"VOC{year}"
        sets = SETS[year]
        sets = {**sets, "trainval": dict(sorted({**sets["train"], **sets["val"]}.items()))}
        (home / "JPEGImages").mkdir(parents=True)
        for images, rows in sets.items():
            write(home, images, list(rows), list(rows.values()))
            for number in rows:
                Image.new("RGB", (12, 8)).save(home / "JPEGImages" / f"{number}.jpg")
    return folder


def text(folder: Path, name: str, content: str | None) -> Path:
    file = folder / "VOCdevkit" / "VOC2007" / "ImageSets" / "Main" / name
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    return folder


def test_both_years(tmp_path):
    data = load(make(tmp_path, "2007", "2012"), View(size=8))
    assert data.classes == CLASSES
    assert list(data.splits) == ["train", "test"]
    assert [Path(name).stem for name in data.train.names] == [
        "000005", "000012", "000017", "2008_000002", "2008_000003", "2008_000008", "2008_000015",
    ]  # fmt: skip
    assert data.train.names[0] == "VOCdevkit/VOC2007/JPEGImages/000005.jpg"
    assert data.train.given[:2].tolist() == [[0, 1, 0], [1, 0, 0]]
    assert [Path(name).stem for name in data.test.names] == ["000001", "000002", "000003"]
    assert data.train.__getitems__([0, 6])[0].shape == (2, 3, 8, 8)


def test_difficult_is_negative_in_training_and_unknown_in_evaluation(tmp_path):
    data = load(make(tmp_path, "2007"))
    assert data.train.truth is None
    assert data.test.given.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert data.test.truth.tolist() == [[1, -1, 0], [0, 0, 1], [-1, 1, 0]]
    assert data.test.truth.dtype == torch.int8
    plain = load(tmp_path, options=ReadOptions(difficult="negative"))
    assert plain.test.truth is None
    assert torch.equal(plain.test.given, data.test.given)
    refused(tmp_path, "difficult: 'negativ'; did you mean 'negative'?", difficult="negativ")
    plan = Plan.from_tree({"data": {"path": str(tmp_path), "difficult": "negative"}})
    assert load_rows(plan, tmp_path).test.truth is None


def test_one_year_alone(tmp_path):
    data = load(make(tmp_path / "old", "2007"))
    assert (len(data.train), len(data.test), list(data.splits)) == (3, 3, ["train", "test"])
    data = load(make(tmp_path / "new", "2012"))
    assert [Path(name).stem for name in data.train.names] == list(SETS["2012"]["train"])
    assert [Path(name).stem for name in data.test.names] == list(SETS["2012"]["val"])
    assert data.test is data.splits["val"]
    assert data.test.truth.tolist() == [[-1, 0, 1], [1, 1, 0]]


def test_the_devkit_itself_or_a_year_s_parent_may_be_named(tmp_path):
    inside = load(make(tmp_path, "2007", "2012") / "VOCdevkit")
    assert inside.train.names[0] == "VOC2007/JPEGImages/000005.jpg"
    assert len(inside.train) == 7


def test_missing_images_are_named_or_left_out(tmp_path):
    make(tmp_path, "2007")
    (tmp_path / "VOCdevkit" / "VOC2007" / "JPEGImages" / "000002.jpg").unlink()
    message = "1 of 6 images are missing: 'VOCdevkit/VOC2007/JPEGImages/000002.jpg'"
    refused(tmp_path, message)
    with pytest.warns(UserWarning, match="1 of 6 images are missing: .*; left out"):
        data = load(tmp_path, options=ReadOptions(skip_bad=True))
    assert data.test.truth.tolist() == [[1, -1, 0], [-1, 1, 0]]
    shutil.rmtree(tmp_path / "VOCdevkit" / "VOC2007" / "JPEGImages")
    refused(tmp_path, "6 of 6 images are missing", skip_bad=True)


TEST = "000001  1\n000002 -1\n000003  0\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "dog_test.txt",
            TEST.replace("-1", "2"),
            "dog_test.txt line 2: '000002 2' is not an image",
        ),
        ("dog_test.txt", TEST.replace(" 0", ""), "dog_test.txt line 3: '000003' is not an image"),
        ("dog_test.txt", "000001  1\n\n000002 -1\n", "dog_test.txt line 2: '' is not an image and"),
        ("dog_test.txt", "", "dog_test.txt line 1: '' is not an image and 1, 0 or -1"),
        ("dog_test.txt", TEST.replace("02", "07"), "line 2: not the image that aeroplane_test.txt"),
        (
            "dog_test.txt",
            TEST[:20],
            "dog_test.txt line 3: not the image that aeroplane_test.txt has",
        ),
        ("dog_test.txt", TEST + "000004  1\n", "line 4: not the image that aeroplane_test.txt has"),
        ("dog_test.txt", None, "dog_test.txt: not found; the whole devkit is needed"),
        ("train_trainval.txt", None, "train_trainval.txt: not found; the whole devkit is needed"),
    ],
)
def test_a_bad_line_is_named(tmp_path, name, content, message):
    refused(text(make(tmp_path, "2007"), name, content), message)


def test_a_missing_set_and_bytes_that_are_no_text(tmp_path):
    make(tmp_path, "2007", "2012")
    main = tmp_path / "VOCdevkit" / "VOC2007" / "ImageSets" / "Main"
    (main / "dog_test.txt").write_bytes(b"000001 \xff\n")
    refused(tmp_path, "dog_test.txt: not UTF-8 (byte 7)")
    for name in CLASSES:
        (main / f"{name}_test.txt").unlink()
    refused(tmp_path, "Main: holds no file CLASS_test.txt; the whole devkit is needed (of 2007: ")


def test_a_line_s_end_may_be_that_of_windows(tmp_path):
    make(tmp_path, "2007")
    main = tmp_path / "VOCdevkit" / "VOC2007" / "ImageSets" / "Main"
    for file in main.glob("*_test.txt"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert load(tmp_path).test.truth.tolist() == [[1, -1, 0], [0, 0, 1], [-1, 1, 0]]


def test_training_and_evaluation_leave_difficult_objects_out(tmp_path, capsys, monkeypatch):
    make(tmp_path, "2007")
    scored = []

    def evaluate(truth, logits, *rest, **options):
        scored.append(truth.tolist())
        return metrics.evaluate(truth, logits, *rest, **options)

    monkeypatch.setattr("balancemix.evaluation.scoring.evaluate", evaluate)
    call = ["train", str(tmp_path), "--method", "bce", "--epochs", "1", "--batch-size", "3"]
    call += ["--image-size", "32", "--no-pretrained", "--workers", "0", "--noise", "flip:0.2"]
    assert main([*call, "--out", str(tmp_path / "run"), "--json"]) == 0
    trained = json.loads(capsys.readouterr().out)["last"]
    assert scored == [[[1, -1, 0], [0, 0, 1], [-1, 1, 0]]]
    with np.load(tmp_path / "run" / "truth.npz") as arrays:  # what training knows has no −1
        assert arrays["truth"].dtype == np.uint8
    # The one aeroplane ranks below an image in which it is only a difficult object.
    logits = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    monkeypatch.setattr("balancemix.training.evaluate.predict_logits", lambda *_, **__: logits)
    assert main(["evaluate", str(tmp_path / "run"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mAP"] == 100
    monkeypatch.undo()
    assert main(["evaluate", str(tmp_path / "run"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == pytest.approx(trained)
    assert main(["evaluate", str(tmp_path / "run"), "--per-class"]) == 0
    assert capsys.readouterr().out.count(" 1 ") >= 3  # each class has one positive in test


def test_unknown_truth_is_for_scoring_alone():
    labels = torch.eye(2, dtype=torch.uint8).repeat(2, 1)
    truth = labels.to(torch.int8)
    truth[3, 0] = -1
    rows = Rows(labels, ["a", "b"], truth=truth)
    data = split("here", rows, ["train", "train", "val", "test"])
    assert data.train.truth is None
    assert data.splits["train"] is data.train
    assert all(data.splits[name].truth is not None for name in ("val", "test"))
    known = split("here", rows.with_given(labels, labels), ["train", "train", "val", "test"])
    assert known.train.truth is not None
    unknown = split("here", rows.with_given(truth, truth), ["train", "train", "val", "test"])
    assert unknown.train.truth is not None  # nothing that is given has an unknown truth


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    folder = tmp_path_factory.mktemp("voc")
    with np.load(SHARED / "labels" / "voc_image_labels.npz") as arrays:
        classes = arrays["classes"].tolist()
        for key in arrays:
            if key.endswith("_ids"):
                year, images, _ = key.split("_")
                values = arrays[key.replace("_ids", "_labels")]
                write(folder / "VOCdevkit" / year, images, arrays[key].tolist(), values, classes)
    return folder


@pytest.mark.shared
def test_the_real_labels_have_the_counts_of_the_paper(real):
    data = voc.read(real, ReadOptions())
    assert data.classes[:2] == ["aeroplane", "bicycle"]
    assert len(data.classes) == 20
    assert (data.split.count("train"), data.split.count("test")) == (16_551, 4_952)
    train = data.given[: data.split.count("train")]
    ratios = imbalance(train)
    assert round(ratios["class_ratio"], 2) == 14.48
    assert round(ratios["positive_negative_ratio"], 2) == 12.80
    assert int((train.sum(0) >= 1000).sum()) == 6
    with np.load(SHARED / "labels" / "voc_image_labels.npz") as arrays:
        values = torch.from_numpy(arrays["VOC2007_test_labels"])
    truth = data.truth[data.split.count("train") :]
    assert torch.equal(truth == -1, values == 0)
    assert torch.equal(truth == 1, values == 1)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("year", "rows", "ratio"), [("2007", (5_011, 4_952), 20.9), ("2012", (5_717, 5_823), None)]
)
def test_the_real_labels_of_one_year(real, tmp_path, year, rows, ratio):
    shutil.copytree(real / "VOCdevkit" / f"VOC{year}", tmp_path / f"VOC{year}")
    data = voc.read(tmp_path, ReadOptions())
    train = data.split.count("train")
    assert (train, len(data.split) - train) == rows
    if ratio is not None:
        assert round(imbalance(data.given[:train])["class_ratio"], 1) == ratio
