"""Labels come back in the file that they came from, with a log of what changed."""

import csv
import os

import numpy as np
import pytest
import torch
from PIL import Image

from balancemix.cli import main
from balancemix.data import load, read
from balancemix.data.writing import natural_ending, outputs_of, write_labels
from tests.data.formats.test_coco import make as make_coco
from tests.data.formats.test_voc import make as make_voc

TABLE = (
    "image,labels,split\na.png,cat|dog,train\nb.png,dog,train\n=c.png,cat,train\nd.png,cat,test\n"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "photos"
    place.mkdir()
    for name in ("a", "b", "=c", "d"):
        Image.new("RGB", (6, 4)).save(place / f"{name}.png")
    (place / "labels.csv").write_text(TABLE)
    return place


def log(out):
    with open(f"{out}.changes.csv", encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def test_each_change_is_logged(folder, tmp_path):
    source = read(folder)
    given = source.given.clone()
    given[0, 0], given[2, 1] = 0, 1
    out = tmp_path / "new.csv"
    assert write_labels(source, given, out, lambda i, k: f"{i}-{k}") == []
    assert log(out) == [
        ["0", "a.png", "cat", "present", "absent", "0-0"],
        ["2", "'=c.png", "dog", "absent", "present", "2-1"],
    ]
    write_labels(source, source.given, out, "nothing")
    assert log(out) == []
    assert out.read_text() == TABLE


def test_the_null_device_has_no_log(folder):
    if not os.path.exists("/dev/null"):
        pytest.skip("there is no null device")
    null = folder.parent / "null.csv"
    null.symlink_to("/dev/null")
    assert outputs_of(null) == [null]
    source = read(folder)
    write_labels(source, source.given, null, "")
    assert not outputs_of(folder / "x.csv")[1].exists()


def test_data_comes_back_with_what_people_decided(folder, capsys):
    beside = folder.with_name("photos.balancemix")
    beside.mkdir()
    lines = "image,class,verdict\na.png,dog,absent\n'=c.png,dog,present\nb.png,dog,present\n"
    (beside / "decisions.csv").write_text(lines)
    assert main(["export", "photos"]) == 0
    said = capsys.readouterr()
    assert "labels.corrected.csv: 4 rows, 2 labels changed" in said.out
    assert "each change, and why: " in said.out
    assert "does not say which labels are verified, as it has no column of that name" in said.err
    expected = TABLE.replace("cat|dog,train", "cat,train").replace("=c.png,cat", "=c.png,cat|dog")
    with open("labels.corrected.csv", encoding="utf-8") as file:
        assert file.read() == expected
    assert [line[-1] for line in log("labels.corrected.csv")] == ["decision", "decision"]
    assert main(["export", "photos"]) == 2
    assert "already exists; pass --force" in capsys.readouterr().err
    assert main(["export", "photos", "--force"]) == 0


@pytest.fixture
def noisy(tiny, tmp_path):
    """Write a small features file with wrong labels."""
    out = tmp_path / "noisy.npz"
    assert main(["noise", str(tiny), "--noise", "flip:0.1", "--out", str(out)]) == 0
    return out


def test_a_finding_about_a_decided_label_is_not_applied(noisy, tmp_path, capsys):
    run, out = str(tmp_path / "run"), str(tmp_path / "new.npz")
    call = ["train", str(noisy), "--epochs", "2", "--set", "model.hidden=8", "--out", run]
    assert main(call) == 0
    assert main(["audit", run, "--above", "0.05"]) == 0
    with open(f"{run}/findings.csv", encoding="utf-8") as file:
        worst = next(line for line in csv.DictReader(file) if line["split"] == "train")
    verdict = "present" if worst["given"] == "1" else "absent"
    beside = noisy.with_name(f"{noisy.name}.balancemix")
    (beside / "decisions.csv").write_text(
        f"image,class,verdict\n{worst['image']},{worst['class']},{verdict}\n"
    )
    assert main(["audit", run, "--above", "0.05"]) == 0
    with open(f"{run}/findings.csv", encoding="utf-8") as file:
        listed = [line for line in csv.DictReader(file) if line["split"] == "train"]
    others = {(line["image"], line["class"]) for line in listed}
    assert (worst["image"], worst["class"]) not in others
    capsys.readouterr()
    assert main(["export", run, "--above", "0.05", "--force", "--out", out]) == 0
    said = capsys.readouterr()
    assert f"{len(others):,} labels changed" in said.out
    assert {(line[1], line[2]) for line in log(out)} == others
    assert all(line[-1].endswith(" (modelled)") for line in log(out))
    assert all(line[-1].startswith("probability ") for line in log(out))


def test_embeddings_come_back_as_an_npz_that_can_be_trained_on(noisy, tmp_path, capsys):
    run = str(tmp_path / "run")
    call = ["train", str(noisy), "--epochs", "2", "--set", "model.hidden=8", "--out"]
    assert main([*call, run]) == 0
    assert main(["export", run, "--above", "0.05", "--force"]) == 0
    out = f"{run}/labels.corrected.npz"
    with np.load(noisy) as before, np.load(out) as after:
        assert list(after) == list(before)
        differing = np.argwhere(after["labels"] != before["labels"])
        assert len(differing) == len(log(out)) > 0
        for name in set(before) - {"labels"}:
            assert np.array_equal(after[name], before[name])
    assert [line[0] for line in log(out)] == [str(i) for i, _ in differing]
    call[1] = out
    assert main([*call, str(tmp_path / "again")]) == 0
    assert main(["export", run]) == 0  # ours, and nobody changed it


def test_what_has_no_writer_is_said_to_become_a_table(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_voc(tmp_path / "voc", "2007")
    assert main(["export", "voc"]) == 0
    said = capsys.readouterr().err
    assert "voc: its format is only read, so labels.corrected.csv is a new table of all its" in said
    assert said.count("\n") == 1


def test_coco_comes_back_as_coco(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "coco").mkdir()
    make_coco(tmp_path / "coco")
    assert natural_ending(read("coco")) == ".json"
    (tmp_path / "coco.balancemix").mkdir()
    name = load("coco").train.names[0]
    decisions = f"image,class,verdict\n{name},person,absent\n{name},hair drier,present\n"
    (tmp_path / "coco.balancemix" / "decisions.csv").write_text(decisions)
    assert main(["export", "coco"]) == 0
    said = capsys.readouterr()
    assert "labels.corrected.json: 5 rows, 2 labels changed" in said.out
    assert "labels.corrected.added.csv: 1 labels without a box" in said.err
    place = tmp_path / "coco" / "annotations" / "instances_train2014"
    os.replace("labels.corrected.json", place.with_suffix(".json"))
    os.replace("labels.corrected.added.csv", place.with_suffix(".added.csv"))
    decided = read("coco")
    assert torch.equal(decided.given, decided.file_given)


def test_data_is_converted_by_the_ending(tmp_path, tiny, capsys):
    out = tmp_path / "new.csv"
    assert main(["export", str(tiny), "--out", str(out)]) == 0
    assert out.read_text().startswith("image,labels,split\n")
    assert main(["export", str(tmp_path / "nowhere"), "--out", "x.csv"]) == 2
    assert "holds no run" in capsys.readouterr().err
