"""The whole loop by commands: findings to a tool, decisions back, trusted and not asked again."""

import json

import numpy as np
import openpyxl
import pytest

from balancemix.cli import main
from balancemix.data import ReadOptions, read
from tests.exchange.conftest import CLASSES, CONFIDENCE
from tests.exchange.test_fiftyone import samples_of
from tests.exchange.test_label_studio import annotated

FLAGS = ["--minus-one", "unknown"]


def by_label_studio(folder):
    tasks = json.loads((folder / "findings.label-studio.json").read_text(encoding="utf-8"))
    done = [annotated(t, ["dog"] if t["data"]["name"] == "0.png" else CLASSES) for t in tasks]
    (folder / "back.json").write_text(json.dumps(done))
    return "back.json"


def by_fiftyone(folder):
    written = json.loads((folder / "findings.fiftyone.json").read_text(encoding="utf-8"))
    tags = {("0.png", "cat"): ["absent"], ("0.png", "dog"): ["present"]}
    (folder / "samples.json").write_text(json.dumps(samples_of(written, tags)))
    return "samples.json"


def by_cleanlab(folder):
    with np.load(folder / "findings.cleanlab.npz") as arrays:
        fixed = dict(arrays)
    row = fixed["names"].tolist().index("0.png")
    fixed["labels"][row, :2] = [0, 1]
    np.savez(folder / "fixed.npz", **{k: fixed[k] for k in ("labels", "given", "names", "classes")})
    return "fixed.npz"


def by_workbook(folder):
    book = openpyxl.load_workbook(folder / "findings.xlsx")
    said = {("0.png", "cat"): "absent", ("0.png", "dog"): "present"}
    for row in list(book.active.iter_rows(min_row=2)):
        row[9].value = said.get((str(row[0].value), str(row[1].value)))
    book.save(folder / "findings.xlsx")
    return "findings.xlsx"


@pytest.mark.parametrize(
    ("flags", "decide"),
    [
        (["--for", "label-studio"], by_label_studio),
        (["--for", "fiftyone"], by_fiftyone),
        (["--for", "cleanlab"], by_cleanlab),
        (["--out", "findings.xlsx"], by_workbook),
    ],
    ids=["Label Studio", "FiftyOne", "cleanlab", "a workbook"],
)
def test_what_people_decide_elsewhere_is_trusted_and_not_asked_again(
    work, tmp_path, monkeypatch, capsys, flags, decide
):
    monkeypatch.chdir(tmp_path)
    np.save("p.npy", np.array(CONFIDENCE))
    audit = ["audit", "photos", *FLAGS, "--confidence", "p.npy", "--above", "0"]
    assert main([*audit, *flags]) == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert main([*audit, *flags]) == 2  # nothing is written over
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before
    back = decide(tmp_path)
    assert main(["review", "photos", *FLAGS, "--read", back, "--name", "Ana"]) == 0
    source = read("photos", ReadOptions(minus_one="unknown"))
    assert source.given[0].tolist() == [0, 1, 0]
    assert source.verified is not None
    assert source.verified[0, :2].all()
    capsys.readouterr()
    assert main(["review", "photos", *FLAGS, "--read", back, "--name", "Ana", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["read"]["new"] == 0
    asked = ["audit", "photos", *FLAGS, "--confidence", "p.npy", "--out", "again.csv"]
    assert main([*asked, "--above", "0.01"]) == 0
    pairs = [line.split(",")[:2] for line in (tmp_path / "again.csv").read_text().splitlines()]
    assert ["0.png", "cat"] not in pairs
    assert ["0.png", "dog"] not in pairs
    assert main(["export", "photos", *FLAGS, "--out", "labels.csv"]) == 0
    assert (
        (tmp_path / "labels.csv")
        .read_text(encoding="utf-8")
        .splitlines()[1]
        .startswith("0.png,0,1")
    )


def test_an_interface_of_somebody_else_is_not_replaced(work, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("p.npy", np.array(CONFIDENCE))
    (tmp_path / "tasks.xml").write_text("mine")
    call = ["audit", "photos", *FLAGS, "--confidence", "p.npy", "--for", "label-studio"]
    assert main([*call, "--out", "tasks.json"]) == 2
    assert "tasks.xml: already exists; pass --force" in capsys.readouterr().err
    assert not (tmp_path / "tasks.json").exists()
    assert (tmp_path / "tasks.xml").read_text() == "mine"
