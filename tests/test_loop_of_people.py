"""The whole loop: rank, look, know, give back, and see whether it helped.

A person is simulated by the truth: the CSV that `audit --sample` writes is filled in from it.
"""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from balancemix.cli import main
from balancemix.data import load, read
from balancemix.labels.table import Status
from balancemix.run import Run
from tests.auditing.people import CLASSES, present, write_npz

COLOURS = ["red", "green", "blue"]


def rows(file: str | Path) -> list[dict[str, str]]:
    with open(file, newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def fill(file: Path, answers: dict[str, list[str]]) -> None:
    """Fill in what is in each image, as a person would in a spreadsheet."""
    lines = rows(file)
    assert all(line["true_labels"] == "" for line in lines)
    for line in lines:
        line["true_labels"] = "|".join(answers[line["image"]]) or "(none)"
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


def told(capsys, *call: str) -> str:
    assert main(list(call)) == 0
    return capsys.readouterr().out


def test_features_are_ranked_looked_at_measured_given_back_and_compared(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    truth, given = write_npz(tmp_path / "x.npz", wrong=0.3, missing=0.1)
    answers = {f"{i:04}.jpg": present(truth, f"{i:04}.jpg") for i in range(len(truth))}
    train = ("--method", "ridge")
    told(capsys, "train", "x.npz", *train, "--out", "before")

    # Rank: probabilities are modelled, and say so.
    assert "modelled" in told(capsys, "audit", "x.npz", "--out", "first.csv")
    assert {line["basis"] for line in rows("first.csv")} == {"modelled"}
    assert main(["export", "x.npz", "--above", "0.9", "--out", "no.npz"]) == 2
    assert "--sample 50" in capsys.readouterr().err

    # Look.
    assert "review x.npz --read" in told(capsys, "audit", "x.npz", "--sample", "50")
    sheet = tmp_path / "x.npz.balancemix" / "sample.csv"
    fill(sheet, answers)
    told(capsys, "review", "x.npz", "--read", str(sheet), "--name", "Ana")
    settled = {line["image"] for line in rows(sheet)}
    filled = rows(sheet)
    told(capsys, "audit", "x.npz", "--sample", "50")  # changes nothing that somebody typed
    assert rows(sheet) == filled

    # Know.
    call = ("audit", "x.npz", "--out", "second.csv", "--above", "0.2", "--passport", "card.md")
    facts = json.loads(told(capsys, *call, "--json"))
    for problem, side in (("wrong", 1), ("missing", 0)):
        total = facts["measured"]["figures"][problem]["total"]
        assert total["low"] <= ((given == side) & (truth != given))[:600].sum() <= total["high"]
    listed = rows("second.csv")
    assert {line["basis"] for line in listed} == {"measured"}
    assert not settled & {line["image"] for line in listed}  # not asked again
    assert "answered by Ana" in Path("card.md").read_text(encoding="utf-8")

    # Give back: only what Ana decided, and then what was measured to be wrong.
    told(capsys, "export", "x.npz", "--out", "decided.npz")
    decided = load("decided.npz").source.given.numpy()
    drawn = [int(name[:4]) for name in sorted(settled)]
    others = np.setdiff1d(np.arange(len(given)), drawn)
    assert np.array_equal(decided[drawn], truth[drawn])
    assert np.array_equal(decided[others], given[others])
    told(capsys, "export", "x.npz", "--above", "0.9", "--out", "fixed.npz", "--soft", "soft.npz")
    fixed = read("fixed.npz").given.numpy()
    assert np.array_equal(fixed[drawn], truth[drawn])
    assert np.array_equal(fixed[600:], given[600:])
    reasons = [line["why"] for line in rows("fixed.npz.changes.csv")]
    assert set(reasons) > {"decision"}
    assert all(why == "decision" or why.endswith("(measured)") for why in reasons)
    assert (fixed != truth)[others].sum() < (given != truth)[others].sum()
    with np.load("soft.npz", allow_pickle=False) as soft:
        assert np.array_equal(soft["targets"][drawn], truth[drawn])

    # Verified labels are trusted by the next training and audit.
    told(capsys, "train", "x.npz", *train, "--out", "trusted")
    table = Run.open(tmp_path / "trusted").table
    assert bool((table.status[drawn] == Status.VERIFIED).all())
    assert table.given[drawn].tolist() == truth[drawn].tolist()
    assert "measured by 50 images" in told(capsys, "audit", "trusted", "--above", "0.2")
    assert not settled & {line["image"] for line in rows("trusted/findings.csv")}

    # Did it help?
    told(capsys, "train", "fixed.npz", *train, "--out", "after")
    result = json.loads(told(capsys, "compare", "before", "after", "--json", "--figure", "g.svg"))
    assert result["mAP"]["low"] <= result["mAP"]["difference"] <= result["mAP"]["high"]
    assert result["verdict"] != "worse"
    assert set(result["classes"]) == set(CLASSES)
    assert Path("g.svg").exists()


@pytest.fixture
def photos(tmp_path):
    """Write images with the colours of their classes, and labels of which a sixth is wrong."""
    folder = tmp_path / "photos"
    folder.mkdir()
    generator = np.random.default_rng(0)
    truth = generator.random((90, 3)) < 0.5
    given = truth ^ (generator.random((90, 3)) < 0.16)
    lines = ["image,labels,split,note"]
    for i in range(90):
        pixels = np.where(truth[i], 200, 30) + generator.integers(0, 30, (8, 8, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i}.png")
        labels = "|".join(name for name, there in zip(COLOURS, given[i], strict=True) if there)
        lines.append(f"{i}.png,{labels},{'train' if i < 70 else 'test'},n{i}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return truth


def test_images_go_round_the_same_loop(photos, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {
        f"{i}.png": [c for c, v in zip(COLOURS, photos[i], strict=True) if v] for i in range(90)
    }
    small = ("--backbone", "test_efficientnet", "--no-pretrained", "--image-size", "32")
    train = (*small, "--method", "ridge", "--workers", "0")
    before = (tmp_path / "photos" / "labels.csv").read_text()
    told(capsys, "train", "photos", *train, "--out", "before")
    told(capsys, "audit", "photos", *small, "--sample", "50")
    sheet = tmp_path / "photos.balancemix" / "sample.csv"
    fill(sheet, names)
    told(capsys, "review", "photos", "--read", str(sheet), "--name", "Ana")
    settled = {line["image"] for line in rows(sheet)}
    text = told(capsys, "audit", "photos", *small, "--above", "0.1", "--workers", "0")
    assert "measured by 50 images drawn at random of 70 (train)" in text
    assert not settled & {line["image"] for line in rows("findings.csv")}
    told(capsys, "export", "photos", "--out", "new.csv")
    assert (tmp_path / "photos" / "labels.csv").read_text() == before  # nothing else is written
    for old, new in zip(rows("photos/labels.csv"), rows("new.csv"), strict=True):
        assert (old["image"], old["split"], old["note"]) == (
            new["image"],
            new["split"],
            new["note"],
        )
        if old["image"] in settled:
            assert set(new["labels"].split("|")) - {""} == set(names[old["image"]])
        else:
            assert new["labels"] == old["labels"]
    told(capsys, "train", "new.csv", "--images", "photos", *train, "--out", "after")
    told(capsys, "train", "photos", *train, "--out", "trusted")
    verified = (Run.open(tmp_path / "trusted").table.status == Status.VERIFIED).sum()
    assert int(verified) == 3 * len(settled)
    told(capsys, "audit", "trusted", "--above", "0.1")
    assert not settled & {line["image"] for line in rows("trusted/findings.csv")}
    result = json.loads(told(capsys, "compare", "before", "after", "--json"))
    assert result["rows"] == 20
