"""What docs/review-numbers.md says of the probes holds, and can be measured again."""

import json
from itertools import product

import pytest

from tests.conftest import ROOT

DOCUMENT = ROOT / "docs" / "review-numbers.md"


def stored(name):
    text = (ROOT / "benchmarks" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def looks():
    """List what was said after so many answers, unless people skipped what is hard."""
    records = [record for record in stored("probes") if record["way"] != "hard"]
    return [look for record in records for look in record["looks"] if "covers" in look]


def test_every_cell_was_measured(load):
    script = load("probes")
    done = [tuple(record[key] for key in script.KEY) for record in stored("probes")]
    assert sorted(done) == sorted(product(script.NAMES, script.ABOVE, script.WAYS))


def test_what_is_left_holds_the_truth():
    covers = [look["covers"] for look in looks()]
    assert len(covers) > 60
    assert min(covers) >= 0.9
    assert sum(covers) / len(covers) >= 0.95


def test_what_is_left_is_right_on_average():
    for look in looks():
        if look["truth"] >= 20:
            assert 0.8 <= look["ratio"] <= 1.1, look


def test_without_errors_few_may_be_left():
    for record in stored("probes"):
        if record["errors"] == 0:
            for look in record["looks"]:
                assert look.get("covers", 1) == 1
                assert look.get("most", 0) <= 0.17 * look["left"]  # none of twenty


@pytest.mark.parametrize("name", ["probes", "needs"])
def test_the_tables_are_those_of_the_records(load, name):
    assert load(name).table(stored(name)) in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.shared
def test_cells_can_be_measured_again(load):
    """Every review of a list of each real-noise set: the numbers are the document's.

    Left out are the simulated sets, the clean ones, and the longer list of birds, which take many
    minutes; benchmarks/probes.py measures all of them, once benchmarks/probes.jsonl is taken away.
    """
    script = load("probes")
    lists = ("captions", 0.1), ("birds", 0.5)  # of captions, 0.5 is too short for an estimate
    cells = [each for each in stored("probes") if (each["set"], each["above"]) in lists]
    assert len(cells) == 2 * len(script.WAYS)
    assert all(any("covers" in look for look in each["looks"]) for each in cells)
    for record in cells:
        again = script.measure(*(record[key] for key in script.KEY))
        assert again["findings"] == pytest.approx(record["findings"], rel=0.02)
        for look, before in zip(again["looks"], record["looks"], strict=True):
            # Rounding alone changes the order of a list, and so what is drawn: of a share of 200
            # reviews, a standard error is up to 0.035.
            assert look.get("covers", 1) == pytest.approx(before.get("covers", 1), abs=0.07)
            assert look.get("ratio", 1) == pytest.approx(before.get("ratio", 1), abs=0.05)
