"""Label files by themselves, and the flags that say how they are read."""

import json
from pathlib import Path

import pytest
from PIL import Image

from balancemix.cli import main
from balancemix.run import Run

TABLE = "Photo;What\r\n" + "".join(
    f"{i}.png;{'cat, dog' if i % 3 else 'cat' if i % 2 else 'dog'}\r\n" for i in range(12)
)
FLAGS = ["--label-column", "What", "--separator", ","]


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shots").mkdir()
    for i in range(12):
        Image.new("RGB", (8, 8), (20 * i, 0, 0)).save(tmp_path / "shots" / f"{i}.png")
    (tmp_path / "x.csv").write_text(TABLE, newline="")
    return "x.csv"


def test_stats_says_how_a_file_is_read_and_opens_no_image(file, capsys):
    assert main(["stats", file]) == 2
    assert "pass --label-column" in capsys.readouterr().err
    assert main(["stats", file, *FLAGS]) == 0
    said = capsys.readouterr().out
    assert "x.csv is a table of labels (--format)" in said
    assert "joined by ',': --separator says so (--separator)" in said
    assert "a class that is not named is absent" in said
    assert "12 rows, 2 classes" in said
    assert main(["stats", file, *FLAGS, "--unlabelled", "unknown", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["unknown"], facts["verified"], facts["rows"]) == (4, 0, 12)
    assert main(["stats", file, *FLAGS, "--unlabelled", "maybe"]) == 2
    assert "--unlabelled maybe: use one of: absent, unknown" in capsys.readouterr().err
    assert main(["stats", file, *FLAGS, "--skip-bad"]) == 2  # the images are in another folder


def test_a_run_remembers_how_its_file_was_read(file, capsys):
    call = ["train", file, *FLAGS, "--images", "shots", "--method", "bce", "--epochs", "1"]
    call += ["--no-pretrained", "--image-size", "32", "--out", "run"]
    assert main(call) == 0
    data = Run.open(Path("run")).plan.data
    assert (data.label_column, data.separator, data.images) == ("What", ",", "shots")
    assert main(["evaluate", "run"]) == 0
    assert main(["evaluate", "run", file, "--images", "shots"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "run", file, "--images", "nowhere"]) == 2
    assert "--images nowhere: is not a folder" in capsys.readouterr().err
    assert main(["predict", "run", file, *FLAGS, "--images", "shots", "--out", "p.csv"]) == 0


def test_noise_of_a_file_changes_labels_alone(file, capsys):
    call = ["noise", file, *FLAGS, "--images", "shots", "--noise", "flip:0.3", "--out", "n.csv"]
    assert main(call) == 0
    with open("n.csv", newline="") as written:
        lines = written.read().split("\r\n")
    before = TABLE.split("\r\n")
    assert [line.partition(";")[0] for line in lines] == [a.partition(";")[0] for a in before]
    assert lines != before
