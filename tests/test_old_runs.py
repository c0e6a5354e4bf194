"""Runs of earlier versions still open: what is read of them is what was written then.

tests/runs/version-*.zip holds data.npz, three finished runs on it (4 epochs, mislabel:0.3), and
under expected/ what that version's own audit, export, predict and evaluate made of them.
"""

import csv
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from balancemix.cli import main
from balancemix.labels.table import Status
from balancemix.run import Run

ARCHIVES = sorted((Path(__file__).parent / "runs").glob("version-*.zip"))
METHODS = ("balancemix", "coteaching", "role")


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.stem)
def old(request, tmp_path, monkeypatch) -> Path:
    with zipfile.ZipFile(request.param) as archive:
        archive.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)  # the runs name their data by a relative path
    return tmp_path


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def assert_same(path: Path, expected: Path) -> None:
    """Compare words exactly, and numbers to the last digit written but one."""
    found, wanted = lines(path), lines(expected)
    assert len(found) == len(wanted)
    for line, other in zip(found, wanted, strict=True):
        assert line.keys() == other.keys()
        for key, value in other.items():
            if "." in value and value.replace(".", "").isdigit():
                assert float(line[key]) == pytest.approx(float(value), abs=1e-3), key
            else:
                assert line[key] == value, key


@pytest.mark.parametrize("method", METHODS)
def test_labels_are_audited_by_todays_judge_and_exported(old, method):
    assert main(["audit", method, "--out", "findings.csv", "--above", "0"]) == 0
    findings = {(line["image"], line["class"]): line for line in lines(old / "findings.csv")}
    with np.load(old / method / "labels.npz") as stored:
        given, names, classes = (stored[name] for name in ("given", "names", "classes"))
    for i, name in enumerate(names.tolist()):
        for k, class_ in enumerate(classes.tolist()):
            assert findings[name, class_]["given"] == str(given[i, k])
    then = lines(old / "expected" / method / "findings.csv")  # by another judge
    assert {(line["image"], line["class"]) for line in then} <= findings.keys()
    assert main(["export", method, "--out", "labels.csv"]) == 0
    expected = lines(old / "expected" / method / "labels.csv")
    exported = lines(old / "labels.csv")
    assert [line["image"] for line in exported] == [line["image"] for line in expected]


@pytest.mark.parametrize("method", METHODS)
def test_the_model_predicts_and_scores_as_then(old, method, capsys):
    expected = old / "expected" / method
    assert main(["predict", method, "data.npz", "--out", "predictions.csv"]) == 0
    assert_same(old / "predictions.csv", expected / "predictions.csv")
    capsys.readouterr()
    assert main(["evaluate", method, "--json"]) == 0
    scores = json.loads((expected / "scores.json").read_text())
    assert json.loads(capsys.readouterr().out) == pytest.approx(scores)


@pytest.mark.parametrize("method", METHODS)
def test_its_page_is_made(old, method):
    assert main(["report", method]) == 0
    assert "<html" in (old / method / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("method", METHODS)
def test_its_labels_are_read_in_todays_codes(old, method):
    with pytest.warns(UserWarning, match="older version, without checksums"):
        labels = Run.open(old / method).table
    target, weight, status = (matrix.numpy() for matrix in labels[1:4])
    relabelled = (status == Status.PRESENT) | (status == Status.ABSENT)
    assert ((target > 0.5) == (status == Status.PRESENT))[relabelled].all()
    assert (weight[status == Status.IGNORED] == 0).all()
    assert (weight[status == Status.AMBIGUOUS] > 0).all()
    with np.load(old / method / "labels.npz") as stored:
        assert (relabelled == (stored["status"] == 1)).all()
        assert ((status == Status.CLEAN) == (stored["status"] == 0)).all()


@pytest.mark.parametrize("method", METHODS)
def test_its_checkpoint_is_refused_in_one_line(old, method, capsys):
    (old / method / "metrics.json").unlink()
    before = (old / method / "checkpoint.pt").read_bytes()
    assert main(["train", "--resume", "--out", method]) == 2
    message = capsys.readouterr().err.strip().splitlines()[-1]
    refusal = "checkpoint.pt: is of another version of balancemix; start over with --force"
    assert message.endswith(refusal)
    assert (old / method / "checkpoint.pt").read_bytes() == before


def test_starting_over_removes_files_by_their_old_names_too(old):
    assert (old / "role" / "labels.npz").exists()
    flags = ["--epochs", "1", "--method", "bce", "--force", "--out", "role"]
    assert main(["train", "data.npz", *flags]) == 0
    assert not (old / "role" / "labels.npz").exists()
    assert not (old / "role" / "classes.json").exists()
    assert {"label_table.npz", "per_class.json"} <= {path.name for path in (old / "role").iterdir()}


def test_there_is_an_old_version():
    assert ARCHIVES
