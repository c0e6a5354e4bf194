"""The loop by spreadsheet: answers go into the store, and every command trusts them."""

import json

import pytest
from PIL import Image

from balancemix.cli import main
from balancemix.data import ReadOptions, read
from balancemix.data.decisions.samples import Unit
from balancemix.data.decisions.store import Store

TABLE = "image,labels,split\n" + "".join(
    f"{i}.png,{'cat' if i % 2 else 'cat|dog'},{'test' if i > 5 else 'train'}\n" for i in range(8)
)


@pytest.fixture
def photos(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(8):
        Image.new("RGB", (6, 4), (20 * i, 0, 0)).save(folder / f"{i}.png")
    (folder / "labels.csv").write_text(TABLE)
    (tmp_path / "findings.csv").write_text(
        "image,class,problem,verdict\n0.png,dog,wrong,absent\n1.png,dog,missing,present\n"
        "2.png,dog,wrong,unsure\n3.png,dog,missing,\n"
    )
    return folder


def test_a_filled_table_is_read_shown_and_trusted(photos, capsys):
    assert main(["review", "photos", "--status"]) == 0
    assert "Nobody has decided anything about photos yet" in capsys.readouterr().out
    assert not (photos.parent / "photos.balancemix").exists()
    assert main(["review", "photos", "--read", "findings.csv", "--name", "Ana"]) == 0
    out = capsys.readouterr().out
    assert "findings.csv: 3 new answers, 1 row without an answer" in out
    assert "2 labels verified by a person (photos.balancemix)" in out
    assert "Ana: 3 labels" in out
    assert main(["review", "photos", "--read", "findings.csv", "--name", "Ana"]) == 0
    assert "0 new answers, 3 known already" in capsys.readouterr().out
    source = read("photos")
    assert source.given[:3, 1].tolist() == [0, 1, 1]
    assert source.verified.sum() == source.decided.sum() == 2
    assert read("photos", ReadOptions(verified=False)).verified is None
    assert main(["stats", "photos"]) == 0
    assert "2 labels verified by a person (photos.balancemix)" in capsys.readouterr().out
    assert main(["stats", "photos", "--no-verified"]) == 0
    assert "verified" not in capsys.readouterr().out
    assert main(["export", "photos", "--out", "new.csv"]) == 0
    assert "2 labels changed\n2 labels verified by" in capsys.readouterr().out
    assert main(["export", "photos", "--no-verified", "--out", "same.csv"]) == 0
    assert "0 labels changed" in capsys.readouterr().out


def test_a_run_trusts_answers_unless_told_not_to_and_remembers_it(photos, capsys):
    assert main(["review", "photos", "--read", "findings.csv"]) == 0
    capsys.readouterr()
    small = ["--backbone", "test_efficientnet", "--no-pretrained", "--image-size", "32"]
    small += ["--epochs", "1", "--workers", "0", "--method", "bce"]
    for flags, lines in (([], 1), (["--no-verified"], 0)):
        out = f"run{lines}"
        assert main(["train", "photos", *small, *flags, "--out", out]) == 0
        told = capsys.readouterr().out
        assert told.count("2 labels verified by a person (photos.balancemix)") == lines
        plan = json.loads((photos.parent / out / "plan.json").read_text())
        assert plan["data"]["verified"] is bool(lines)
        assert main(["review", out, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["verified"] == 2


def test_answers_go_out_and_come_back(photos, capsys):
    main(["review", "photos", "--read", "findings.csv", "--name", "Ana"])
    assert main(["review", "photos", "--csv", "out.csv"]) == 0
    assert "out.csv: 3 answers" in capsys.readouterr().out
    assert main(["review", "photos", "--csv", "out.csv"]) == 2
    assert "out.csv: already exists; pass --force" in capsys.readouterr().err
    assert main(["review", "photos", "--csv", "out.csv", "--force"]) == 0
    photos.with_name("photos.balancemix").rename("old")
    assert main(["review", "photos", "--read", "out.csv", "--name", "Ben"]) == 0
    assert "Ana: 3 labels" in capsys.readouterr().out
    assert read("photos").verified.sum() == 2


def test_a_sample_is_counted(photos, capsys):
    folder = photos.with_name("photos.balancemix")
    with Store.open(folder, create=True) as store:
        store.new_sample(0, "image", None, [Unit("5.png"), Unit("0.png")])
    with open("sample.csv", "w") as file:
        file.write("image,given_labels,true_labels,unsure\n5.png,cat,(none),\n0.png,cat|dog,,\n")
    assert main(["review", "photos", "--read", "sample.csv"]) == 0
    out = capsys.readouterr().out
    assert "sample 1: 1 of 2 images answered, 1 left" in out
    assert "next: balancemix train photos" in out
    assert "2 labels verified by a person" in out
    assert read("photos").given[5].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["digits"], "digits: is built in"),
        (["nothing"], "nothing: holds no run"),
        (["photos", "--name", "Ana"], "name the table with --read"),
        (["photos", "--read", "missing.csv"], "missing.csv: not found"),
        (["photos", "--read", "photos/0.png"], "photos/0.png: not a table"),
        (["photos", "--read", "findings.csv", "--name", ""], "name must have 1 to 200"),
        (["photos", "--csv", "out.csv"], "nobody has decided anything yet"),
        (["photos", "--csv", "photos/labels.csv", "--force"], "is part of what this command reads"),
        (["photos", "--read", "findings.csv", "--csv", "findings.csv", "--force"], "is part of"),
    ],
)
def test_mistakes_are_one_line(photos, capsys, argv, message):
    assert main(["review", *argv]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_no_force_replaces_the_store(photos, capsys):
    main(["review", "photos", "--read", "findings.csv"])
    file = photos.with_name("photos.balancemix") / "review.sqlite"
    before = file.read_bytes()
    for argv in (
        ["review", "photos", "--csv", str(file), "--force"],
        ["export", "photos", "--out", str(file), "--force"],
        ["audit", "photos", "--out", str(file), "--force"],
        ["train", "photos", "--out", str(file.parent), "--force"],
    ):
        assert main(argv) == 2, argv
        assert file.read_bytes() == before


def test_a_class_that_is_gone_is_refused_and_an_image_that_is_gone_is_told(photos, capsys):
    main(["review", "photos", "--read", "findings.csv"])
    (photos / "labels.csv").write_text(TABLE.replace("\n1.png,cat,train", ""))
    with pytest.warns(UserWarning, match=r"review\.sqlite: images that .* \(1\): '1\.png'"):
        assert read("photos").verified.sum() == 1
    (photos / "labels.csv").write_text(TABLE.replace("dog", "hound"))
    capsys.readouterr()
    assert main(["stats", "photos"]) == 2
    err = capsys.readouterr().err
    assert "review.sqlite: 'dog' is not a class of" in err
    assert main(["stats", "photos", "--no-verified"]) == 0


def test_a_settled_image_says_nothing_of_classes_that_are_gone(photos):
    (photos / "labels.csv").write_text(TABLE.replace("7.png,cat", "7.png,cat|owl"))
    with open("sample.csv", "w") as file:
        file.write("image,true_labels\n5.png,cat\n")
    main(["review", "photos", "--read", "sample.csv"])
    assert read("photos").decided.tolist()[5] == [True, True, True]
    (photos / "labels.csv").write_text(TABLE)
    assert read("photos").decided.tolist()[5] == [True, True]


def test_hostile_names_do_no_harm(photos, capsys):
    name = "'); DROP TABLE decision; --\x1b[2J"
    assert main(["review", "photos", "--read", "findings.csv", "--name", name]) == 0
    assert main(["review", "photos", "--status"]) == 0
    out = capsys.readouterr().out
    assert "\x1b[2J" not in out
    assert "DROP TABLE" in out
    assert read("photos").verified.sum() == 2
