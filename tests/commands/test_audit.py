"""`balancemix audit`: of data, of a run, of arrays; what it writes and says, what it refuses."""

import csv
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

from balancemix.auditing.data import judge_data, judge_run
from balancemix.auditing.findings import audit, find
from balancemix.auditing.judged import weigh
from balancemix.cli import main
from balancemix.data import load
from balancemix.run import Run
from tests.conftest import tiny_arrays

SMALL = ["--epochs", "2", "--batch-size", "16", "--set", "model.hidden=16"]


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def summary(capsys, *call) -> dict:
    capsys.readouterr()
    assert main(["audit", *map(str, call), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *call) -> str:
    capsys.readouterr()
    assert main(["audit", *map(str, call)]) == 2
    message = capsys.readouterr().err
    assert len(message.splitlines()) == 1
    return message


@pytest.fixture
def noisy(tmp_path, monkeypatch) -> Path:
    """Write rows of which some labels are wrong, with their truth, and stand beside them."""
    monkeypatch.chdir(tmp_path)
    np.savez("tiny.npz", **tiny_arrays(300))
    assert main(["noise", "tiny.npz", "--noise", "mislabel:0.2", "--out", "noisy.npz"]) == 0
    return tmp_path / "noisy.npz"


def test_data_is_audited_without_training(noisy, capsys):
    facts = summary(capsys, noisy, "--out", "f.csv")
    findings = lines(noisy.parent / "f.csv")
    assert len(findings) == facts["findings"] == facts["wrong"] + facts["missing"] > 10
    assert facts["precision"] > 0.7
    assert facts["rows"] == 300
    assert facts["note"].startswith("modelled, assuming that mistakes do not depend on the image")
    assert facts["note"].endswith("on real data this was too low by up to 20 times. Settle 50 "
                                  "images to know.")  # fmt: skip
    assert all(float(line["probability"]) >= 0.5 for line in findings)
    assert {line["basis"] for line in findings} == {"modelled"}
    assert {line["verdict"] for line in findings} == {""}
    assert list(findings[0])[:7] == [
        "image", "class", "problem", "given", "suggested", "probability", "rank",
    ]  # fmt: skip


def test_every_label_of_every_split_is_written(noisy, capsys):
    facts = summary(capsys, noisy, "--above", "0", "--out", "all.csv")
    every = lines(noisy.parent / "all.csv")
    assert len(every) == facts["findings"] == 300 * 5
    assert {line["split"] for line in every} == {"train", "test"}
    given = load(noisy).source.given
    names = load(noisy).source.names
    places = {(line["image"], line["class"]): int(line["given"]) for line in every}
    assert [[places[name, f"c{k}"] for k in range(5)] for name in names] == given.tolist()
    for problem in ("wrong", "missing"):
        part = [line for line in every if line["problem"] == problem]
        assert [int(line["rank"]) for line in part] == list(range(1, len(part) + 1))
        rated = [float(line["probability"]) for line in part]
        assert rated == sorted(rated, reverse=True)
    assert [line["problem"] for line in every] == ["wrong"] * facts["wrong"] + ["missing"] * (
        facts["missing"]
    )


def test_a_run_is_audited_like_its_data_with_its_noise(noisy, capsys):
    call = ["train", str(noisy), *SMALL, "--method", "bce", "--out", "run"]
    assert main(call) == 0
    data = judge_data(str(noisy))
    run = judge_run(Run.open(Path("run")))
    assert torch.equal(run.given, data.given)
    assert torch.allclose(run.probability, data.probability)
    assert main([*call[:1], "tiny.npz", *call[2:-1], "added", "--noise", "mislabel:0.2"]) == 0
    added = judge_run(Run.open(Path("added")))
    table = Run.open(Path("added")).table.given
    assert torch.equal(added.given[: len(table)], table)
    assert torch.equal(added.truth[: len(table)], Run.open(Path("added")).truth)
    assert bool((added.truth[len(table) :] == -1).all())  # nobody said so
    assert summary(capsys, "added")["file"] == "added/findings.csv"


def test_inputs_that_changed_under_a_run_are_named(noisy, photos, capsys):
    assert main(["train", str(noisy), *SMALL, "--method", "bce", "--out", "run"]) == 0
    capsys.readouterr()
    assert main(["audit", "run"]) == 0
    assert capsys.readouterr().err == ""
    with np.load(noisy) as file:
        arrays = dict(file)
    arrays["features"][[7, 299]] += 1
    np.savez(noisy, **arrays)
    assert main(["audit", "run"]) == 0
    said = capsys.readouterr().err
    assert f"{noisy}: inputs are not what they were for run: 'row 7', 'row 299'; they" in said


def test_a_verified_label_of_a_run_with_noise_stays_as_it_was_decided(noisy, capsys):
    call = ["train", "tiny.npz", *SMALL, "--method", "bce", "--noise", "mislabel:0.2"]
    assert main([*call, "--out", "run"]) == 0
    before = judge_run(Run.open(Path("run")))
    row, column = (before.given != load("tiny.npz").source.given).nonzero()[0].tolist()
    Path("tiny.npz.balancemix").mkdir(exist_ok=True)
    verdict = "present" if before.truth[row, column] else "absent"
    decision = f"image,class,verdict\nrow {row},c{column},{verdict}\n"
    Path("tiny.npz.balancemix/decisions.csv").write_text(decision)
    after = judge_run(Run.open(Path("run")))
    assert int(after.given[row, column]) == int(before.truth[row, column])
    assert float(after.doubt[row, column]) == -torch.inf
    differs = (after.given != before.given).nonzero().tolist()
    assert differs == [[row, column]]


def test_arrays_of_any_model_are_audited(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    truth = generator.random((500, 3)) < 0.3
    given = np.where(generator.random(truth.shape) < 0.05, ~truth, truth)
    logits = 6.0 * truth - 3 + generator.normal(size=truth.shape)
    np.save("y.npy", given)
    np.save("p.npy", 1 / (1 + np.exp(-logits)))
    facts = summary(capsys, "--labels", "y.npy", "--confidence", "p.npy")
    assert facts["file"] == "findings.csv"
    assert facts["near_duplicates"] is None
    listed = lines(Path("findings.csv"))
    hits = [given[int(f["image"]), int(f["class"])] != truth[int(f["image"]), int(f["class"])]
            for f in listed]  # fmt: skip
    assert np.mean(hits) > 0.9
    np.save("narrow.npy", given[:, :2])
    np.save("text.npy", np.array(["a"]))
    Path("broken.npy").write_bytes(b"\x93NUMPY\x01\x00")
    more = ["--out", "other.csv"]
    for flags, message in (
        (["--labels", "y.npy"], "give both --labels and --confidence"),
        ([], "name DATA or a RUN, or give both --labels and --confidence"),
        (["digits", "--labels", "y.npy"], "--labels and --confidence stand for DATA"),
        (["--labels", "y.npy", "--confidence", "narrow.npy"], "narrow.npy: given and confidence"),
        (["--labels", "p.npy", "--confidence", "p.npy"], "p.npy: given labels must be 0, 1 or"),
        (["--labels", "text.npy", "--confidence", "p.npy"], "text.npy: is not an .npy file of"),
        (["--labels", "broken.npy", "--confidence", "p.npy"], "broken.npy: is not an .npy file"),
        (["--labels", "gone.npy", "--confidence", "p.npy"], "gone.npy: not found"),
    ):
        assert message in refused(capsys, *flags, *more)
    assert "findings.csv: already exists; pass --force" in refused(
        capsys, "--labels", "y.npy", "--confidence", "p.npy"
    )
    assert "y.npy: is part of what this command reads" in refused(
        capsys, "--labels", "y.npy", "--confidence", "p.npy", "--out", "y.npy", "--force"
    )


def test_mistakes_are_refused_before_anything_is_judged(noisy, capsys, monkeypatch):
    monkeypatch.setattr("balancemix.auditing.data.judge_data", None)
    assert "above must be between 0 and 1" in refused(capsys, noisy, "--above", "2")
    assert "noisy.npz: is part of what this command reads" in refused(
        capsys, noisy, "--out", noisy, "--force"
    )
    assert "nowhere: holds no run" in refused(capsys, "nowhere")


def test_images_are_embedded_and_audited(photos, capsys):
    how = ["--backbone", "test_resnet", "--no-pretrained", "--image-size", "32", "--workers", "0"]
    out = photos.parent / "f.csv"
    facts = summary(capsys, photos, *how, "--above", "0", "--out", out)
    assert facts["rows"] == 40
    assert {line["image"] for line in lines(out)} == {f"{i}.png" for i in range(40)}
    beside = photos.parent / "photos.balancemix"
    assert [path.name for path in beside.glob("features-*")]


def test_too_little_data_is_said_and_no_number(tmp_path, capsys):
    np.savez(tmp_path / "few.npz", **tiny_arrays(16))
    facts = summary(capsys, tmp_path / "few.npz", "--out", tmp_path / "f.csv")
    assert facts["expected"] is None
    assert facts["note"] == "There is too little data to say how many labels are wrong."
    assert main(["audit", str(tmp_path / "few.npz"), "--out", str(tmp_path / "g.csv")]) == 0
    shown = capsys.readouterr().out
    assert "There is too little data to say how many labels are wrong." in shown
    assert "about" not in shown


def test_people_read_what_to_do(noisy, capsys):
    capsys.readouterr()
    assert main(["audit", str(noisy), "--out", "f.csv"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for words in (
        "labels look wrong; the first 8", "labels look missing; the first",
        "missing in all: modelled, assuming that mistakes do not depend on the image",
        "Settle 50 images to know.", "worst classes: c", "confused: c", " looks like c",
        "most findings: row ", "against the truth:", "all of them: f.csv",
        f"decide in pictures: balancemix review {noisy}",
    ):  # fmt: skip
        assert words in shown
    assert "±" not in shown


def test_every_label_is_written_a_few_at_a_time(tmp_path):
    rows, classes = 20_000, 10
    generator = torch.Generator().manual_seed(0)
    given = (torch.rand(rows, classes, generator=generator) < 0.1).to(torch.int8)
    score = torch.rand(rows, classes, generator=generator)
    findings = find(weigh(given, score, score, score, torch.ones(classes, dtype=torch.bool)), 0.0)
    tracemalloc.start()  # of Python's objects: a line of each label would be tens of megabytes
    findings.write(tmp_path / "all.csv")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8e6
    assert len(lines(tmp_path / "all.csv")) == rows * classes


@pytest.mark.filterwarnings("ignore:.*rows have the same features")
@pytest.mark.parametrize("rows", [1500, pytest.param(5000, marks=pytest.mark.slow)])
def test_clean_data_has_hardly_a_finding(rows):
    """Of the built-in digits, with right labels, at most 1 % of the positives are listed."""
    source = load("digits").source
    given = source.given[:rows]
    facts = audit(given, features=source.features[:rows]).summary()
    positives = int((given > 0).sum())
    assert facts["expected"] is not None
    assert facts["wrong"] + facts["missing"] <= 0.01 * positives
