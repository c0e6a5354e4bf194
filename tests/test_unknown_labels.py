"""Unknown and verified labels, from a file through a run and back into a file."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from balancemix.auditing.data import judge_run
from balancemix.auditing.findings import find
from balancemix.cli import main
from balancemix.data import load
from balancemix.labels.table import Status
from balancemix.report.summary import Summary
from balancemix.run import Run
from tests.conftest import tiny_arrays

SMALL = ["--epochs", "3", "--batch-size", "16", "--set", "model.hidden=16"]
NOISE = "mislabel:0.3+unknown:0.3+keep:0.2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("partly")
    np.savez(folder / "tiny.npz", **tiny_arrays())
    return folder


@pytest.fixture(scope="module")
def run(folder) -> Run:
    noisy, out = str(folder / "noisy.npz"), str(folder / "run")
    assert main(["noise", str(folder / "tiny.npz"), "--noise", NOISE, "--out", noisy]) == 0
    assert main(["train", noisy, "--set", "method.warmup=1", *SMALL, "--out", out]) == 0
    return Run.open(folder / "run")


def test_a_run_keeps_which_labels_are_unknown_and_verified(run, folder):
    data = load(folder / "noisy.npz")
    assert int((data.train.given < 0).sum()) > 50
    assert int(data.train.verified.sum()) == 18 * 5  # a fifth of 90 rows
    assert run.table.given.equal(data.train.given)
    assert (run.table.status == Status.VERIFIED).equal(data.train.verified)
    rates = run.noise["measured"]
    assert rates["verified"] == 0.2
    assert rates["unknown"] == pytest.approx(float((data.train.given < 0).float().mean()))


def test_labels_that_somebody_verified_are_not_found(run, folder):
    findings = find(judge_run(run), 1e-9)
    verified = load(folder / "noisy.npz").source.verified
    assert len(findings) > 0
    assert not verified[findings.row, findings.column].any()


def test_unknown_labels_are_a_list_of_their_own(run):
    findings = find(judge_run(run), 0.0)
    given = findings.labels
    assert int((given < 0).sum()) == len(findings.of("unknown")) > 50
    assert (findings.of("unknown").suggested == 1).all()
    assert (given[findings.row, findings.column] == findings.given).all()


def test_the_page_counts_them(run, tmp_path):
    summary = Summary(run)
    given = run.table.given
    unknown = int((given < 0).sum())
    assert summary.labels == {"given": 450 - unknown, "unknown": unknown, "verified": 90}
    negatives = (given == 0)[:, 0]
    mean = (1 - run.confidence.double())[negatives, 0].mean()
    assert float(summary.class_confidence[1][0]) == pytest.approx(float(mean))
    assert main(["report", str(run.path), "--out", str(tmp_path / "page.html")]) == 0
    text = re.sub(r"\s+", " ", (tmp_path / "page.html").read_text(encoding="utf-8"))
    assert f"{450 - unknown} labels are given, 90 of them verified; {unknown} are unknown" in text


def test_an_export_changes_the_findings_and_nothing_else(run, folder, tmp_path, capsys):
    out = tmp_path / "fixed.npz"
    assert main(["export", str(run.path), "--above", "0.3", "--force", "--out", str(out)]) == 0
    findings = find(judge_run(run), 0.3)
    findings = findings[findings.row < 90]  # rows that are scored on stay
    with np.load(folder / "noisy.npz") as before, np.load(out) as after:
        assert list(before) == list(after)
        for name in set(before) - {"labels"}:
            assert before[name].tobytes() == after[name].tobytes()
        changed = np.argwhere(before["labels"] != after["labels"])
    places = zip(findings.row.tolist(), findings.column.tolist(), strict=True)
    assert sorted(map(tuple, changed.tolist())) == sorted(places)
    assert main(["train", str(out), "--method", "bce", *SMALL, "--out", str(tmp_path / "run")]) == 0


def test_scores_are_those_of_the_known_test_labels(tmp_path, capsys):
    """Hiding a test label leaves it out; hiding all of a row is as if the row were not there."""
    whole = tiny_arrays()
    tested = np.flatnonzero(whole["split"] == "test")
    hidden, fewer = tested[::3], np.setdiff1d(np.arange(len(whole["labels"])), tested[::3])
    labels = whole["labels"].astype(np.float32)
    labels[hidden] = np.nan
    files = {
        "hidden": whole | {"labels": labels},
        "fewer": {k: v if k == "classes" else v[fewer] for k, v in whole.items()},
    }
    scores = {}
    call = ["--method", "bce", *SMALL, "--json"]
    for name, arrays in files.items():
        np.savez(tmp_path / f"{name}.npz", **arrays)
        capsys.readouterr()
        run = tmp_path / name
        assert main(["train", str(tmp_path / f"{name}.npz"), *call, "--out", str(run)]) == 0
        scores[name] = [json.loads(capsys.readouterr().out)["last"]]
        for convention in ("sklearn", "raw", "voc"):
            assert main(["evaluate", str(run), "--ap", convention, "--per-class", "--json"]) == 0
            facts = json.loads(capsys.readouterr().out)
            scores[name] += [facts.pop("per_class"), facts]
    for found, expected in zip(scores["hidden"], scores["fewer"], strict=True):
        assert found == pytest.approx(expected)
