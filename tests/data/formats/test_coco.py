"""COCO in its own layout: small with images, and at full size with the real labels alone."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from balancemix.cli import main
from balancemix.data import ReadOptions, View, load, read
from balancemix.data.formats import coco
from balancemix.data.images import ImageRows
from balancemix.errors import InputError
from balancemix.labels.classes import class_groups, imbalance
from tests.conftest import SHARED
from tests.data.formats.contract import refused

CLASSES = ["person", "hair drier", "cat"]
NUMBERS = [1, 89, 17]  # as in COCO, neither without gaps nor, by then, in order
TRAIN = [[1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 0, 0]]
VAL = [[0, 1, 1], [0, 0, 0], [1, 0, 0]]


def annotations(part, year, ids, labels, classes=CLASSES, numbers=NUMBERS):
    """Lay labels out as COCO does; the second annotation of a class is a crowd."""
    found: list[dict[str, int]] = []
    for row, k in np.argwhere(np.asarray(labels)).tolist():
        found.append({"image_id": ids[row], "category_id": numbers[k], "iscrowd": len(found) % 2})
    prefix = f"COCO_{part}{year}_" if year == "2014" else ""
    return {
        "info": {"year": int(year)},
        "images": [{"id": i, "file_name": f"{prefix}{i:012}.jpg"} for i in ids],
        "annotations": [{"id": n, **entry} for n, entry in enumerate(found)],
        "categories": [
            {"id": number, "name": name} for number, name in zip(numbers, classes, strict=True)
        ],
    }


def write(folder: Path, part, year, content) -> Path:
    file = folder / "annotations" / f"instances_{part}{year}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content))
    return file


def make(folder: Path, year="2014", images="") -> Path:
    for part, labels, first in (("train", TRAIN, 9), ("val", VAL, 42)):
        content = annotations(part, year, list(range(first, first + len(labels))), labels)
        content["annotations"] += content["annotations"][:1]  # two of one kind in an image
        write(folder, part, year, content)
        place = folder / images / f"{part}{year}"
        place.mkdir(parents=True)
        for entry in content["images"]:
            Image.new("RGB", (12, 8), (entry["id"],) * 3).save(place / entry["file_name"])
    return folder


def changed(folder: Path, part: str, change) -> Path:
    file = folder / "annotations" / f"instances_{part}2014.json"
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    return folder


def test_categories_may_stand_in_another_order_in_val(tmp_path):
    expected = load(make(tmp_path)).test.given
    data = load(changed(tmp_path, "val", lambda content: content["categories"].reverse()))
    assert data.classes == CLASSES
    assert torch.equal(data.test.given, expected)


@pytest.mark.parametrize("images", ["", "images"])
def test_both_splits(tmp_path, images):
    data = load(make(tmp_path, images=images), View(size=8))
    assert data.classes == CLASSES
    assert isinstance(data.train, ImageRows)
    assert data.train.given.tolist() == [TRAIN[0], TRAIN[1], TRAIN[3]]
    assert data.test is data.splits["val"]
    assert data.test.given.tolist() == [VAL[0], VAL[2]]
    names = [f"train2014/COCO_train2014_{i:012}.jpg" for i in (9, 10, 12)]
    assert data.train.names == [(Path(images) / name).as_posix() for name in names]
    assert data.train.__getitems__([0, 2])[0].shape == (2, 3, 8, 8)
    assert np.asarray(data.train.picture(2))[0, 0, 0] == pytest.approx(12, abs=2)
    assert data.train.truth is data.test.truth is None


def test_images_without_annotations_can_be_kept(tmp_path):
    data = load(make(tmp_path), options=ReadOptions(unannotated="keep"))
    assert data.train.given.tolist() == TRAIN
    assert data.test.given.tolist() == VAL
    refused(tmp_path, "unannotated: 'kept'; did you mean 'keep'?", unannotated="kept")


def test_2017_is_chosen_where_both_years_are_whole(tmp_path):
    make(make(tmp_path), "2017")
    with pytest.warns(UserWarning, match="holds COCO 2017 and 2014; 2017 is read"):
        assert load(tmp_path).train.names[0] == "train2017/000000000009.jpg"
    (tmp_path / "annotations" / "instances_val2017.json").unlink()
    assert load(tmp_path).train.names[0].startswith("train2014/COCO_train2014_")
    (tmp_path / "annotations" / "instances_val2014.json").unlink()
    refused(tmp_path, "instances_val2017.json: not found; both splits of one year are needed")


def test_a_table_of_labels_comes_first(tmp_path):
    make(tmp_path)
    names = [f"train2014/COCO_train2014_{i:012}.jpg" for i in (9, 10)]
    lines = f"image,labels,split\n{names[0]},cat|dog,train\n{names[1]},cat,val\n"
    (tmp_path / "labels.csv").write_text(lines)
    assert load(tmp_path).classes == ["cat", "dog"]


def test_missing_images_are_named_or_left_out(tmp_path):
    make(tmp_path)
    (tmp_path / "train2014" / f"COCO_train2014_{12:012}.jpg").unlink()
    message = "1 of 5 images are missing: 'train2014/COCO_train2014_000000000012.jpg'"
    refused(tmp_path, f"{message}; restore them, or pass --skip-bad")
    with pytest.warns(UserWarning, match=f"{message}; left out"):
        data = load(tmp_path, options=ReadOptions(skip_bad=True))
    assert data.train.given.tolist() == [TRAIN[0], TRAIN[1]]
    assert len(data.test) == 2
    for file in tmp_path.glob("*2014/*.jpg"):
        file.unlink()
    refused(tmp_path, "5 of 5 images are missing", skip_bad=True)


def test_names_of_files_need_not_be_utf8(tmp_path):
    make(tmp_path)
    old = tmp_path / "train2014" / f"COCO_train2014_{9:012}.jpg"
    name = os.fsdecode(b"caf\xe9.jpg")
    try:
        old.rename(old.with_name(name))
    except OSError:
        pytest.skip("this file system has only names in UTF-8")
    changed(tmp_path, "train", lambda c: c["images"][0].update(file_name=name))
    assert load(tmp_path).train.names[0] == f"train2014/{name}"


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("train", lambda c: c.pop("categories"), "no list 'categories', only 'info', 'images', 'a"),
        ("val", lambda c: c.pop("annotations"), "instances_val2014.json: no list 'annotations'"),
        ("train", lambda c: c["images"][1].pop("file_name"), "images[1] has no 'file_name', or no"),
        ("train", lambda c: c["images"].insert(0, 7), "images[0] has no 'id', or not as a number"),
        ("train", lambda c: c["images"][1].update(id=9), "images[1]: id 9 is used twice; give eac"),
        ("train", lambda c: c["images"][1].update(id=True), "images[1] has no 'id', or not as a n"),
        ("train", lambda c: c["categories"][2].update(id=1), "categories[2]: id 1 is used twice;"),
        ("train", lambda c: c["annotations"][2].update(image_id=[]), "annotations[2] has no"),
        ("val", lambda c: c["annotations"][0].update(image_id=5), "image_id 5 is not among the im"),
        ("val", lambda c: c["annotations"][1].update(category_id=2), "[1]: category_id 2 is not"),
        ("val", lambda c: c["categories"].reverse() or c["categories"][0].update(name="dog"),
         "instances_val2014.json: its categories are not those of train2014"),
        ("train", lambda c: c["categories"].append({"id": 5, "name": "cat"}), "repeated: 'cat'"),
        ("train", lambda c: c["annotations"].clear(), "no image has an annotation"),
        ("train", lambda c: c["categories"][0].update(name="\ud800"), "'\\ud800' is not UTF-8"),
        ("train", lambda c: c["categories"][0].update(name="a\0"), "class 'a\\x00' holds a NUL"),
        ("train", lambda c: c["images"][0].update(file_name=""), "missing: 'train2014'; restore"),
        ("train", lambda c: c["images"][0].update(file_name="\ud800/a.jpg"), "1 of 5 images"),
        ("train", lambda c: c["images"][0].update(file_name="a\0/a.jpg"), "1 of 5 images"),
        ("train", lambda c: c["images"][0].update(file_name="x" * 300), "1 of 5 images"),
        ("train", lambda c: c["images"][0].update(file_name="/etc/hosts"), "not below this folder"),
        ("train", lambda c: c["images"][0].update(file_name="../../x.jpg"), "not below this"),
        ("train", lambda c: c["images"][0].update(c["images"][1] | {"id": 9}), "named twice: 't"),
    ],
)  # fmt: skip
def test_a_bad_file_is_named_with_the_place(tmp_path, part, change, message):
    refused(changed(make(tmp_path), part, change), message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "instances_val2014.json: not JSON (Expecting value"),
        (b'{"images": [', "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b'{"images": [], "annotations": [], "images": []}', "the key 'images' is given twice"),
        (b"[1, 2]", "not COCO's JSON, which holds images, annotations, categories"),
    ],
)
def test_a_file_that_is_not_coco_s(tmp_path, content, message):
    (make(tmp_path) / "annotations" / "instances_val2014.json").write_bytes(content)
    refused(tmp_path, message)


def test_the_plan_reaches_the_reader(tmp_path, capsys):
    make(tmp_path)
    call = ["train", str(tmp_path), "--method", "bce", "--epochs", "1", "--batch-size", "4"]
    call += ["--image-size", "32", "--no-pretrained", "--workers", "0"]
    call += ["--set", "data.unannotated=keep", "--out", str(tmp_path / "run"), "--json"]
    assert main(call) == 0
    assert json.loads(capsys.readouterr().out)["epochs"] == 1
    with np.load(tmp_path / "run" / "label_table.npz") as arrays:
        assert arrays["given"].tolist() == TRAIN


@pytest.mark.shared
def test_the_real_labels_have_the_counts_of_2014(tmp_path):
    with np.load(SHARED / "labels" / "coco2014_labels.npz") as arrays:
        classes = arrays["classes"].tolist()
        numbers = [k + 1 + k // 10 for k in range(80)]
        for part in ("train", "val"):
            ids, labels = arrays[f"{part}_ids"].tolist(), arrays[f"{part}_labels"]
            content = annotations(part, "2014", [*ids, 0], labels, classes, numbers)
            write(tmp_path, part, "2014", content)
        expected = torch.from_numpy(arrays["train_labels"])
    data = coco.read(tmp_path, ReadOptions())
    assert [data.split.count(part) for part in ("train", "val")] == [82_081, 40_137]
    train = data.given[: data.split.count("train")]
    assert torch.equal(train, expected.to(torch.int8))
    assert data.classes == classes
    assert round(imbalance(train)["class_ratio"]) == 353
    sizes = [len(index) for index in class_groups(train.sum(0), "paper").values()]
    assert sizes == [1, 72, 7]
    assert len(coco.read(tmp_path, ReadOptions(unannotated="keep"))) == 82_082 + 40_138


def content_of(folder: Path, part="train") -> dict:
    return json.loads((folder / "annotations" / f"instances_{part}2014.json").read_text())


def test_what_is_read_is_written(tmp_path):
    folder, out = tmp_path / "coco", tmp_path / "same.json"
    folder.mkdir()
    source = read(make(folder))
    assert coco.write(source, source.given, out) == []
    file = folder / "annotations" / "instances_train2014.json"
    assert out.read_bytes() == file.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["coco", "same.json"]


def test_a_removed_label_loses_its_annotations_and_an_added_one_goes_to_a_csv(tmp_path):
    folder, out = tmp_path / "coco", tmp_path / "new.json"
    folder.mkdir()
    source = read(make(folder))
    assert source.given[:3].tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 0]]
    given = source.given.clone()
    given[0, 0], given[1, 2] = 0, 1  # of the first, two annotations
    (note,) = coco.write(source, given, out)
    assert note.endswith("new.added.csv: 1 labels without a box, which new.json cannot hold")
    before, after = content_of(folder), json.loads(out.read_text())
    gone = [entry for entry in before["annotations"] if entry not in after["annotations"]]
    assert [(entry["image_id"], entry["category_id"]) for entry in gone] == [(9, 1), (9, 1)]
    before["annotations"] = [entry for entry in before["annotations"] if entry not in gone]
    assert after == before
    name = before["images"][1]["file_name"]
    added = tmp_path / "new.added.csv"
    assert added.read_text() == f"image,class\n{name},cat\n"
    place = folder / "annotations" / "instances_train2014"
    shutil.copy(out, place.with_suffix(".json"))
    shutil.copy(added, place.with_suffix(".added.csv"))
    again = read(folder)
    assert torch.equal(again.given, given)
    coco.write(again, source.given, out)  # and back: the box is gone, so the label is in the CSV
    assert added.read_text().splitlines()[1:] == [f"{before['images'][0]['file_name']},person"]


def test_labels_of_val_go_to_a_file_of_their_own(tmp_path):
    folder, out = tmp_path / "coco", tmp_path / "new.json"
    folder.mkdir()
    source = read(make(folder))
    given = source.given.clone()
    given[3, 1] = 0
    (note,) = coco.write(source, given, out)
    assert "new.val.json: the labels of instances_val2014.json, which changed too" in note
    assert out.read_bytes() == (folder / "annotations" / "instances_train2014.json").read_bytes()
    assert len(json.loads((tmp_path / "new.val.json").read_text())["annotations"]) == 2


def test_images_that_were_not_read_keep_their_annotations(tmp_path):
    folder, out = tmp_path / "coco", tmp_path / "new.json"
    folder.mkdir()
    make(folder)
    (folder / "train2014" / f"COCO_train2014_{12:012}.jpg").unlink()
    with pytest.warns(UserWarning, match="left out"):
        source = read(folder, ReadOptions(skip_bad=True))
    given = source.given.clone()
    given[0, 0] = 0
    coco.write(source, given, out)
    ids = [entry["image_id"] for entry in json.loads(out.read_text())["annotations"]]
    assert ids == [9, 10, 12]


def test_a_file_that_changed_meanwhile_is_refused(tmp_path):
    folder = tmp_path / "coco"
    folder.mkdir()
    source = read(make(folder))
    changed(folder, "train", lambda c: c["annotations"].clear())
    with pytest.raises(InputError, match=r"train2014\.json: has changed since it was read"):
        coco.write(source, source.given, tmp_path / "x.json")
    with pytest.raises(InputError, match="cannot say that a label is unknown"):
        coco.write(source, source.given - 1, tmp_path / "x.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class\n", "instances_train2014.added.csv row 1: needs one column 'image'"),
        ("image,class\nx.jpg,cat\n", "row 2: image 'x.jpg' is not in instances_train2014.json"),
        (f"image,class\nCOCO_train2014_{9:012}.jpg,dog\n", "class 'dog' is not in inst"),
    ],
)
def test_a_bad_label_without_a_box_is_named(tmp_path, text, message):
    (make(tmp_path) / "annotations" / "instances_train2014.added.csv").write_text(text)
    refused(tmp_path, message)
