"""The whole loop in the layouts of published sets: read, train, audit, export, train on the result.

COCO comes back as COCO. VOC and DeepFashion are only read, and come back as a table of all rows.
"""

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from balancemix.cli import main
from balancemix.data import ReadOptions, read
from balancemix.run import Run
from tests.data.formats import test_deepfashion, test_voc
from tests.data.formats.test_coco import annotations
from tests.data.test_loop import CLASSES, COUNT, LABELS, SMALL, SPLIT, correct

MARKS = [[int(name in labels) for name in CLASSES] for labels in LABELS]
ROWS = {name: [i for i in range(COUNT) if SPLIT[i] == name] for name in ("train", "test")}
DIFFICULT = (ROWS["test"][0], ROWS["train"][0])  # rows in which the last class is hard to see


def picture(file: Path, i: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), tuple(200 * mark + i for mark in MARKS[i])).save(file)


def make_coco(folder: Path) -> None:
    for part, name in (("train", "train"), ("val", "test")):
        rows = ROWS[name]
        content = annotations(part, "2017", rows, [MARKS[i] for i in rows], CLASSES, [5, 3, 9])
        file = folder / "annotations" / f"instances_{part}2017.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
        for entry in content["images"]:
            picture(folder / f"{part}2017" / entry["file_name"], entry["id"])


def make_voc(folder: Path) -> dict[str, list[int]]:
    home = folder / "VOCdevkit" / "VOC2007"
    marks = [[2 * mark - 1 for mark in row] for row in MARKS]
    for i in DIFFICULT:
        assert not MARKS[i][-1]  # so that nobody finds it missing
        marks[i][-1] = 0
    for part, name in (("trainval", "train"), ("test", "test")):
        numbers = [f"{i:06}" for i in ROWS[name]]
        test_voc.write(home, part, numbers, [marks[i] for i in ROWS[name]], CLASSES)
    for i in range(COUNT):
        picture(home / "JPEGImages" / f"{i:06}.jpg", i)
    values = {1: 1, -1: 0, 0: 0}
    expected = [[values[mark] for mark in row] for row in marks]
    expected[DIFFICULT[0]][-1] = -1  # not scored
    return {f"VOCdevkit/VOC2007/JPEGImages/{i:06}.jpg": expected[i] for i in range(COUNT)}


def make_fine(folder: Path) -> dict[str, list[int]]:
    parts = {"train": ROWS["train"][:10], "val": ROWS["train"][10:], "test": ROWS["test"]}
    names = [f"img/Top_{i % 3}/img_{i}.jpg" for i in range(COUNT)]
    for i, name in enumerate(names):
        picture(folder / name, i)
    listed = {part: ([names[i] for i in r], [MARKS[i] for i in r]) for part, r in parts.items()}
    test_deepfashion.write(folder, CLASSES, listed)
    return {name: MARKS[i] for i, name in enumerate(names)}


def make_coarse(folder: Path) -> dict[str, list[int]]:
    """Every fifth label is unknown, and two images are not there."""
    values = np.array(MARKS)
    values[np.arange(values.size).reshape(values.shape) % 5 == 4] = -1
    names = [f"img/Top_{i % 3}/img_{i}.jpg" for i in range(COUNT)]
    words = {1: "1", 0: "-1", -1: "0"}
    lines = {
        "Anno_coarse/list_attr_cloth.txt": [f"{name}  {k}" for k, name in enumerate(CLASSES)],
        "Anno_coarse/list_attr_img.txt": [
            f"{name}  {' '.join(words[value] for value in row)}"
            for name, row in zip(names, values.tolist(), strict=True)
        ],
        "Eval/list_eval_partition.txt": [f"{n}  {s}" for n, s in zip(names, SPLIT, strict=True)],
    }
    for name, rows in lines.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join([str(len(rows)), "header", *rows]) + "\n")
    for i, name in enumerate(names):
        if i not in (6, 7):
            picture(folder / "Img" / name, i)
    rows_ = values.tolist()
    return {f"Img/{name}": rows_[i] for i, name in enumerate(names) if i not in (6, 7)}


def table_of(file: Path) -> tuple[dict[str, list[int]], dict[str, str]]:
    """Read a new table literally: the labels of each image, and its split."""
    with file.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    labels = {}
    for row in rows:
        if "labels" in row:
            labels[row["image"]] = [int(name in row["labels"].split("|")) for name in CLASSES]
        else:
            labels[row["image"]] = [int(row[name] or -1) for name in CLASSES]
    return labels, {row["image"]: row["split"] for row in rows}


@pytest.mark.parametrize("make", [make_voc, make_fine, make_coarse])
def test_what_is_only_read_comes_back_as_a_table_and_is_trained_on(
    tmp_path, monkeypatch, capsys, make
):
    monkeypatch.chdir(tmp_path)
    expected = make(tmp_path / "set")
    files = {file: file.read_bytes() for file in Path("set").rglob("*") if file.is_file()}
    log = correct("set", "new.csv")
    assert "its format is only read, so new.csv is a new table" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in Path("set").rglob("*") if file.is_file()} == files
    for line in log:
        value = int(line["after"] == "present")
        assert expected[line["image"]][CLASSES.index(line["class"])] != value
        expected[line["image"]][CLASSES.index(line["class"])] = value
    labels, splits = table_of(Path("new.csv"))
    assert labels == expected
    assert splits == {name: SPLIT[int(re.findall(r"\d+", name)[-1])] for name in splits}
    assert main(["train", "new.csv", *SMALL, "--images", "set", "--out", "again"]) == 0
    columns = [CLASSES.index(name) for name in Run.open(Path("again")).classes]
    with np.load("again/label_table.npz") as table:
        train = [[labels[name][k] for k in columns] for name in labels if splits[name] == "train"]
        assert table["given"].tolist() == train


def test_coco_comes_back_and_is_trained_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make_coco(tmp_path / "coco")
    log = correct("coco", "new.json")
    place = tmp_path / "coco" / "annotations" / "instances_train2017"
    old = place.with_suffix(".json")
    before, after = (json.loads(file.read_text()) for file in (old, Path("new.json")))
    removed = [entry for entry in before["annotations"] if entry not in after["annotations"]]
    trained = [line for line in log if line["image"].startswith("train")]
    assert len(removed) == sum(line["after"] == "absent" for line in trained)
    before["annotations"] = [entry for entry in before["annotations"] if entry not in removed]
    assert after == before
    shutil.copy("new.json", old)
    if Path("new.added.csv").exists():
        shutil.copy("new.added.csv", place.with_suffix(".added.csv"))
    given = read("coco")
    for line in trained:
        if line["image"] in given.names:
            i, k = given.names.index(line["image"]), given.classes.index(line["class"])
            assert given.given[i, k] == (line["after"] == "present")
    assert main(["train", "coco", *SMALL, "--out", "again"]) == 0


def test_a_file_of_coco_comes_back_by_itself_and_is_trained_on(tmp_path, monkeypatch, capsys):
    """One file, as tools for annotation write it: no split, and images in any folder."""
    monkeypatch.chdir(tmp_path)
    rows = [i for i in range(COUNT) if any(MARKS[i])]
    content = annotations("train", "2017", rows, [MARKS[i] for i in rows], CLASSES, [5, 3, 9])
    content["images"].append({"id": 99, "file_name": "blank.jpg"})
    old = Path("mine.json")
    old.write_text(json.dumps(content, indent=1))
    for entry in content["images"][:-1]:
        picture(Path("pictures", entry["file_name"]), entry["id"])
    assert main(["stats", "mine.json"]) == 0
    said = capsys.readouterr().out
    assert "mine.json is read as coco: it is an object in JSON (--format)" in said
    assert "1 images without an annotation are left out (data.unannotated)" in said
    assert f"{len(rows)} rows, 3 classes" in said
    flags = ["--images", "pictures"]
    log = correct("mine.json", "new.json", *flags)
    before, after = (json.loads(file.read_text()) for file in (old, Path("new.json")))
    removed = [entry for entry in before["annotations"] if entry not in after["annotations"]]
    assert len(removed) == sum(line["after"] == "absent" for line in log)
    before["annotations"] = [entry for entry in before["annotations"] if entry not in removed]
    assert after == before
    assert main(["train", "new.json", *SMALL, *flags, "--out", "again"]) == 0
    options = ReadOptions(images=Path("pictures"), unannotated="keep", skip_bad=True)
    with pytest.warns(UserWarning, match="1 of .* images are missing"):
        new = read("new.json", options)
    for line in log:
        i, k = new.names.index(line["image"]), new.classes.index(line["class"])
        assert new.given[i, k] == (line["after"] == "present")
    assert main(["predict", "again", "pictures", "--out", "p.csv"]) == 0
    assert main(["predict", "again", "mine.json", *flags, "--out", "q.csv"]) == 2
    assert f"1 of {len(rows) + 1} images are missing: 'blank.jpg'" in capsys.readouterr().err
