"""Names that are no plain text, through the commands: handled, or refused in one line."""

import os

import numpy as np
import pytest
from PIL import Image

from balancemix.cli import main
from tests.conftest import tiny_arrays
from tests.data.formats.test_coco import changed
from tests.data.formats.test_coco import make as make_coco

LATIN = os.fsdecode(b"caf\xe9")
CLASSES = ["=1+1", "a|b", "a\rb", " c ", "\x1b[2J"]
SMALL = ("--epochs", "1", "--no-pretrained", "--image-size", "32", "--workers", "0")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a name in Latin-1, as the working directory."""
    folder = tmp_path / LATIN
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system has only names in UTF-8")
    monkeypatch.chdir(folder)
    return folder


def refused(capsys, *call: str) -> str:
    assert main(list(call)) == 2
    message = capsys.readouterr().err
    assert len(message.splitlines()) == 1
    return message


def test_classes_that_a_table_cannot_hold(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = np.array([f"-{i}" for i in range(119)] + ["x" * 300])
    np.savez("x.npz", **tiny_arrays() | {"classes": np.array(CLASSES), "images": names})
    assert main(["train", "x.npz", "--epochs", "2", "--out", "run", "--noise", "flip:0.2"]) == 0
    assert main(["audit", "run", "--above", "0.1"]) == 0
    assert main(["report", "run"]) == 0
    assert main(["predict", "run", "x.npz"]) == 0
    assert main(["export", "run", "--out", "corrected.npz"]) == 0
    capsys.readouterr()
    message = refused(capsys, "export", "run", "--out", "corrected.csv")
    assert message == (
        "balancemix: corrected.csv: class 'a|b' holds a |, which labels.csv cannot keep; "
        "rename it, or write an .npz\n"
    )
    for file in ("run/findings.csv", "predictions.csv"):
        lines = (tmp_path / file).read_bytes().split(b"\n")
        assert all(line.startswith(b"'-") for line in lines[1:-2])


@pytest.mark.filterwarnings("ignore:.*no training row has the class")
def test_files_with_names_that_are_not_utf8(place, capsys):
    make_coco(place)
    old = place / "train2014" / f"COCO_train2014_{9:012}.jpg"
    old.rename(old.with_name(f"{LATIN}.jpg"))
    changed(place, "train", lambda c: c["images"][0].update(file_name=f"{LATIN}.jpg"))
    data, run = str(place), f"{LATIN}-run"
    backbone = ("--backbone", "test_resnet")
    assert main(["train", data, *backbone, *SMALL, "--batch-size", "3", "--out", run]) == 0
    assert main(["audit", run, "--above", "0", "--out", f"{LATIN}.csv"]) == 0
    assert main(["report", run]) == 0
    assert main(["evaluate", run]) == 0
    assert main(["predict", run, "train2014", "--out", f"{LATIN}-new.csv"]) == 0
    assert (place / f"{LATIN}-new.csv").read_bytes().count(b"\ncaf\xe9.jpg,") == 1
    embed = ["embed", data, *backbone, "--no-pretrained", "--image-size", "32", "--workers", "0"]
    assert main([*embed, "--out", f"{LATIN}.npz"]) == 0
    with np.load(f"{LATIN}.npz") as arrays:
        assert arrays["images"][0] == f"train2014/{LATIN}.jpg"
    assert main(["train", f"{LATIN}.npz", "--epochs", "1", "--out", "features"]) == 0
    shown = capsys.readouterr().out
    assert f"{LATIN}-new.csv" not in shown
    assert "caf\\udce9-new.csv: 4 rows, 3 classes\n" in shown
    assert "caf\\udce9.npz: 5 images" in shown
    message = refused(capsys, "export", run, "--out", "corrected.csv")
    assert "corrected.csv: image 'train2014/caf\\udce9.jpg' is not UTF-8; rename it" in message


def test_outputs_with_names_that_no_file_can_have(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", **tiny_arrays())
    assert main(["train", "x.npz", "--epochs", "1", "--out", "run"]) == 0
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "photos" / "a.png")
    (tmp_path / "photos" / "labels.csv").write_text("image,labels\na.png,cat|dog\n")
    capsys.readouterr()
    long = "x" * 300
    for name in (f"{long}.csv", f"{long}/a.csv", "a\0b.csv"):
        for command in ("audit", "export"):
            refused(capsys, command, "run", "--out", name)
        refused(capsys, "predict", "run", "x.npz", "--out", name)
        refused(capsys, "noise", "x.npz", "--noise", "flip:0.1", "--out", name)
        refused(capsys, "embed", "photos", "--no-pretrained", "--out", name.replace("csv", "npz"))
        refused(capsys, "predict", "run", name.replace("csv", "npz"))
        refused(capsys, "train", name, "--out", "other")
