"""`balancemix audit --sample` and `--passport` through main(argv)."""

import csv
import json

import numpy as np
import pytest

from balancemix.cli import main
from balancemix.data.decisions.store import Store
from tests.auditing.people import CLASSES, settle, write_npz
from tests.test_cli import refused


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path, *write_npz(tmp_path / "x.npz")


def sheet(folder, name="sample.csv") -> list[dict[str, str]]:
    with (folder / "x.npz.balancemix" / name).open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def answer(folder, truth) -> None:
    """Settle what was drawn, without a file."""
    with Store.open(folder / "x.npz.balancemix") as store:
        settle(store, [unit.image for unit in store.units(1)], truth, sample=1)


def test_a_sample_is_drawn_extended_and_explained(here, capsys):
    folder, _, _ = here
    assert main(["audit", "x.npz", "--sample", "50"]) == 0
    text = capsys.readouterr().out
    assert "50 images drawn at random from the 600 images of train (seed 0), 0 answered" in text
    assert "balancemix review x.npz --read" in text
    first = sheet(folder)
    assert len(first) == 50
    assert not (folder / "findings.csv").exists()
    assert main(["audit", "x.npz", "--sample", "70", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["drawn"], facts["answered"], facts["blank"], facts["seed"]) == (70, 0, 70, 0)
    assert sheet(folder)[:50] == first
    assert len(sheet(folder)) == 70
    classes = (folder / "x.npz.balancemix" / "sample.classes.txt").read_text().splitlines()
    assert classes == sorted(CLASSES)


def test_a_run_s_sample_is_that_of_its_data(here, capsys):
    folder, _, _ = here
    assert main(["train", "x.npz", "--method", "ridge", "--out", "run"]) == 0
    assert main(["audit", "run", "--sample", "50"]) == 0
    from_run = sheet(folder)
    (folder / "x.npz.balancemix" / "sample.csv").unlink()
    assert main(["audit", "x.npz", "--sample", "50"]) == 0
    assert sheet(folder) == from_run


def test_a_run_holds_its_passport_and_replaces_only_its_own(here, capsys):
    folder, truth, _ = here
    assert main(["train", "x.npz", "--method", "ridge", "--out", "run"]) == 0
    assert main(["audit", "run", "--sample", "50"]) == 0
    answer(folder, truth)
    call = ["audit", "run", "--passport", "run/card.md"]
    assert main(call) == 0
    assert main(call) == 0
    (folder / "run/card.md").write_text("mine")
    capsys.readouterr()
    assert "run/card.md" in refused(capsys, *call)


def test_labels_by_rank_are_drawn_without_findings(here, capsys):
    folder, _, given = here
    assert main(["audit", "x.npz", "--sample", "wrong:200"]) == 0
    text = capsys.readouterr().out
    assert "60 given labels drawn at random" in text
    assert "the other 140 are drawn by what these show" in text
    for line in sheet(folder, "sample-wrong.csv"):
        assert given[int(line["image"][:4]), CLASSES.index(line["class"])] == 1
        assert line["verdict"] == ""


def test_the_audit_states_what_was_measured(here, capsys):
    folder, truth, given = here
    assert main(["audit", "x.npz", "--sample", "50"]) == 0
    answer(folder, truth)
    capsys.readouterr()
    assert main(["audit", "x.npz", "--json", "--passport", "card.md"]) == 0
    facts = json.loads(capsys.readouterr().out)
    for problem, side in (("wrong", 1), ("missing", 0)):
        total = facts["measured"]["figures"][problem]["total"]
        errors = int(((given == side) & (truth != given))[:600].sum())
        assert total["low"] <= errors <= total["high"]
    with open("findings.csv", newline="", encoding="utf-8") as lines:
        assert {line["basis"] for line in csv.DictReader(lines)} == {"measured"}
    assert "measured" in (folder / "card.md").read_text()
    assert main(["audit", "x.npz", "--force"]) == 0
    text = capsys.readouterr().out
    assert "measured by 50 images drawn at random of 600 (train), 95 % intervals" in text
    assert "of the given labels are wrong" in text
    assert "modelled" not in text


def test_the_page_asks_on_about_what_is_measured_to_be_improbable(here, capsys):
    folder, _, given = here
    assert main(["audit", "x.npz", "--sample", "50"]) == 0
    answer(folder, given)  # as if nothing was wrong: the audit errs throughout
    assert main(["audit", "x.npz"]) == 0
    with Store.open(folder / "x.npz.balancemix") as store:
        kept = store.newest_snapshot().findings
    with open("findings.csv", newline="", encoding="utf-8") as lines:
        listed = [line for line in csv.DictReader(lines) if float(line["probability"]) >= 0.5]
    assert len(kept) > len(listed)
    assert {each.probability >= 0.1 for each in kept} == {True}


def test_no_verified_measures_nothing(here, capsys):
    folder, truth, _ = here
    assert main(["audit", "x.npz", "--sample", "50"]) == 0
    answer(folder, truth)
    capsys.readouterr()
    assert main(["audit", "x.npz", "--no-verified"]) == 0
    text = capsys.readouterr().out
    assert "modelled" in text
    assert "measured by" not in text


def test_settled_labels_are_not_listed_again(here, capsys):
    folder, truth, _ = here
    assert main(["audit", "x.npz", "--sample", "50"]) == 0
    answer(folder, truth)
    assert main(["audit", "x.npz", "--above", "0.01"]) == 0
    drawn = {line["image"] for line in sheet(folder)} or {
        unit.image for unit in Store.open(folder / "x.npz.balancemix").units(1)
    }
    with open("findings.csv", newline="", encoding="utf-8") as lines:
        listed = {line["image"] for line in csv.DictReader(lines)}
    assert listed
    assert not listed & drawn


def test_what_cannot_be_sampled_is_refused(here, capsys):
    folder, _, _ = here
    assert "such as wrong:200" in refused(capsys, "audit", "x.npz", "--sample", "some")
    assert "--split dev" in refused(capsys, "audit", "x.npz", "--sample", "50", "--split", "dev")
    assert "built in" in refused(capsys, "audit", "digits", "--sample", "50")
    assert "name a .csv" in refused(capsys, "audit", "x.npz", "--sample", "5", "--out", "a.xls")
    assert "name a .csv" in refused(capsys, "audit", "x.npz", "--sample", "5", "--out", "x.npz")
    assert "nothing is measured" in refused(capsys, "audit", "x.npz", "--passport", "card.md")
    assert not (folder / "card.md").exists()
    assert not (folder / "findings.csv").exists()
    (folder / "mine.csv").write_text("a,b\n1,2\n")
    said = refused(capsys, "audit", "x.npz", "--sample", "5", "--out", "mine.csv", "--force")
    assert "other columns" in said
    assert (folder / "mine.csv").read_text() == "a,b\n1,2\n"
    np.save("y.npy", np.eye(3))
    call = ("audit", "--labels", "y.npy", "--confidence", "y.npy", "--sample", "50")
    assert "--sample needs DATA" in refused(capsys, *call)
