"""The round trips with the tools themselves, each in an environment of its own; nothing skips."""

import json
import subprocess

import numpy as np
import pytest
import torch

from balancemix.auditing.findings import audit
from balancemix.cli import main
from balancemix.data.decisions.reading import Taken
from balancemix.exchange import cleanlab, fiftyone, label_studio
from tests.conftest import ROOT
from tests.exchange.conftest import CLASSES, environment

pytestmark = pytest.mark.slow
ODD = CLASSES[2]


def run(tool: str, folder) -> None:
    python = environment(tool)
    script = ROOT / "tests" / "exchange" / f"in_{tool.replace('-', '_')}.py"
    done = subprocess.run(
        [str(python), "-I", str(script), str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_label_studio_imports_the_tasks_and_its_export_is_read(work, tmp_path):
    label_studio.write(work.findings, tmp_path / "tasks.json", None)
    said = {
        "0.png": [{"labels": ["dog"]}, {"labels": ["dog", "cat"]}],
        "2.png": [{"labels": ["cat", ODD], "unsure": ["dog"]}],
    }
    (tmp_path / "annotations.json").write_text(json.dumps(said))
    run("label-studio", tmp_path)
    checked = json.loads((tmp_path / "checked.json").read_text())
    assert (checked["imported"]["task_count"], checked["imported"]["prediction_count"]) == (2, 2)
    assert checked["pictures"] == [[200, "image/png"]] * 2
    results = [each["result"] for found in checked["predictions"] for each in found]
    assert [r[0]["value"]["choices"] for r in results] == [["dog"], ["cat", "dog", ODD]]
    assert work.take(tmp_path / "export.json") == Taken(new=7)
    assert work.answers() == {
        ("0.png", "cat"): "disputed", ("0.png", "dog"): "present",
        ("2.png", "cat"): "present", ("2.png", "dog"): "unsure", ("2.png", ODD): "present",
    }  # fmt: skip
    assert work.take(tmp_path / "export.json") == Taken(known=7)


def test_fiftyone_imports_the_labels_and_its_samples_are_read(work, tmp_path):
    """By its importer, exporter and documents; not by its database, which needs MongoDB."""
    fiftyone.write(work.findings, tmp_path / "labels.json")
    run("fiftyone", tmp_path)
    checked = json.loads((tmp_path / "checked.json").read_text())
    assert checked["classes"] == CLASSES
    labels = checked["labels"][str(work.folder / "0.png")]
    assert labels == [["dog", 0.97, ["missing"], 0.97], ["cat", 0.1, ["wrong"], 0.9]]
    assert work.take(tmp_path / "samples.json") == Taken(new=2, blank=2)
    assert work.answers() == {("0.png", "dog"): "present", ("2.png", "dog"): "present"}
    assert work.take(tmp_path / "exported.json", "Ben") == Taken(new=2, blank=0)


def test_cleanlab_takes_the_arrays_and_what_it_flags_is_listed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(600, 8, generator=generator)
    truth = (features[:, :3] > 0.8).to(torch.int8)
    flipped = torch.rand(truth.shape, generator=generator) < 0.04
    given = torch.where(flipped, 1 - truth, truth)
    findings = audit(given, features=features)
    cleanlab.write(findings, tmp_path / "x.npz")
    run("cleanlab", tmp_path)
    issues = np.load("issues.npy")
    assert issues.shape == (600, 3)
    assert issues.dtype == bool
    hits = (torch.from_numpy(issues) & flipped).sum() / flipped.sum()
    assert hits > 0.5, "cleanlab finds the planted errors by what the audit believes"
    kept = cleanlab.flagged(findings, tmp_path / "issues.npy")
    assert len(kept) == issues[findings.row, findings.column].sum() > 0
    rows = set(np.load("ranked.npy").tolist())
    assert rows == set(np.flatnonzero(np.load("mask.npy")).tolist())
    assert set(cleanlab.flagged(findings, tmp_path / "ranked.npy").row.tolist()) <= rows
    assert np.load("scores.npy").shape == (600,)
    with np.load("x.npz") as arrays:
        np.save("p.npy", arrays["pred_probs"])
    call = ["audit", "--labels", "labels.json", "--confidence", "p.npy", "--issues", "issues.npy"]
    assert main([*call, "--out", "listed.csv", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["wrong"] + listed["missing"] == issues.sum()
