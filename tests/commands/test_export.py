"""`balancemix export` through main(argv): what it writes by default, and what it refuses."""

import csv

import numpy as np
import pytest

from balancemix.cli import main
from balancemix.data import read
from balancemix.data.decisions.answers import Decision
from balancemix.data.decisions.store import Store
from tests.auditing.people import write_npz
from tests.test_cli import refused


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, given = write_npz(tmp_path / "x.npz", rows=200)
    with Store.open(tmp_path / "x.npz.balancemix", create=True) as store:
        names = {1: "present", 0: "absent"}
        store.record(
            [
                Decision("0000.jpg", "ant", names[1 - given[0, 0]], "Ana"),
                Decision("0001.jpg", "ant", names[given[1, 0]], "Ana"),
                Decision("0002.jpg", "ant", "unsure", "Ana"),
                Decision("0003.jpg", "ant", "present", "Ana"),
                Decision("0003.jpg", "ant", "absent", "Ben"),
            ]
        )
    return given


def log(out: str) -> list[tuple[str, ...]]:
    with open(f"{out}.changes.csv", newline="", encoding="utf-8") as lines:
        return [tuple(line.values()) for line in csv.DictReader(lines)]


def test_a_run_gives_back_what_people_decided_and_nothing_else(here, capsys):
    assert main(["train", "x.npz", "--method", "ridge", "--out", "run"]) == 0
    for call in (["export", "run", "--out", "a.npz"], ["export", "x.npz", "--out", "b.npz"]):
        assert main(call) == 0
        out = call[-1]
        with np.load(out) as arrays:
            assert np.argwhere(arrays["labels"] != here).tolist() == [[0, 0]]
        words = {0: "absent", 1: "present"}
        values = words[here[0, 0]], words[1 - here[0, 0]]
        assert log(out) == [("0", "0000.jpg", "ant", *values, "decision")]
    assert main(["export", "run", "--no-verified", "--out", "c.npz"]) == 0
    assert log("c.npz") == []


def test_unsure_and_disputed_labels_become_unknown_on_request(here, capsys):
    assert main(["export", "x.npz", "--unsure", "unknown", "--out", "u.npz"]) == 0
    assert [line[1::3] for line in log("u.npz")] == [
        ("0000.jpg", log("u.npz")[0][4]),
        ("0002.jpg", "unknown"),
        ("0003.jpg", "unknown"),
    ]
    assert [line[-1] for line in log("u.npz")] == ["decision", "unsure", "unsure"]
    given = read("u.npz").given
    assert (given[2:4, 0] == -1).all()
    assert int((given < 0).sum()) == 2


def test_a_run_with_noise_keeps_its_noise(here, capsys):
    call = ["train", "x.npz", "--method", "ridge", "--noise", "flip:0.2", "--out", "run"]
    assert main(call) == 0
    assert main(["export", "run", "--out", "noisy.npz"]) == 0
    reasons = {line[-1] for line in log("noisy.npz")}
    assert reasons == {"decision", "flip:0.2"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--above", "0.9"], "settle 50 images first: `balancemix audit x.npz --sample 50`"),
        (["--threshold", "0.9"], "settle 50 images first"),
        (["--soft", "soft.npz"], "settle 50 images first"),
        (["--above", "0.4"], "more would be made wrong than right"),
        (["--above", "1.5"], "above must be between 0 and 1"),
        (["--above", "nan"], "above must be between 0 and 1"),
        (["--soft", "soft.csv"], "must end in .npz"),
        (["--soft", "out.npz", "--out", "out.npz"], "is --out too"),
        (["--soft", "x.npz", "--force"], "part of what this command reads"),
    ],
)
def test_what_could_do_harm_is_refused_and_writes_nothing(here, tmp_path, capsys, flags, said):
    before = sorted(path.name for path in tmp_path.iterdir())
    assert said in refused(capsys, "export", "x.npz", *flags)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_force_says_that_nothing_was_measured(here, capsys):
    assert main(["export", "x.npz", "--above", "0.6", "--force", "--out", "f.npz"]) == 0
    said = capsys.readouterr()
    assert "the probabilities are modelled, not measured" in said.err
    assert {line[-1].split("(")[-1] for line in log("f.npz")} == {"decision", "modelled)"}
