"""What docs/estimates.md says of coverage holds, and can be measured again."""

import json

import pytest

from tests.conftest import ROOT


@pytest.fixture(params=["estimates", "calibration", "applied"])
def name(request):
    return request.param


def stored(name):
    text = (ROOT / "benchmarks" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def totals():
    return [record for record in stored("estimates") if record["what"] in ("wrong", "missing")]


def test_every_cell_was_measured(load):
    script = load("estimates")
    done = {tuple(record[key] for key in script.KEY) for record in stored("estimates")}
    assert done == {*script.cells(ppi=False), *script.cells(ppi=True)}


def test_intervals_hold_the_truth_as_often_as_required():
    covers = [record["covers"] for record in totals()]
    assert len(covers) == 42
    assert min(covers) >= 0.91
    assert sum(each >= 0.93 for each in covers) >= 0.95 * len(covers)


def test_intervals_are_hardly_wider_than_those_of_plain_random_sampling():
    for record in totals():
        if record["truth"]:
            assert record["half"] <= 1.1 * record["plain_half"], record


def test_without_errors_the_upper_end_is_small():
    sizes = {"50": 5000, "100": 5000, "200": 5000, "wrong:200": 5000}  # pictures; given labels
    none = [record for record in totals() if not record["truth"]]
    assert len(none) == 4
    for record in none:
        count = int(record["sample"].removeprefix("wrong:"))
        assert record["covers"] == 1
        assert record["most"] <= 3.7 * sizes[record["sample"]] / count


def test_the_tables_are_those_of_the_records(load, name):
    script = load(name)
    text = (ROOT / "docs" / "estimates.md").read_text(encoding="utf-8")
    assert script.table(stored(name)) in text
    assert name != "estimates" or script.ppi_table(stored(name)) in text


def test_probabilities_are_calibrated_after_fifty_pictures():
    for record in stored("calibration"):
        if record["empty"] < 0.5:
            assert record["apart"] <= 0.1, record
            assert record["brier"] < record["constant"], record


def test_what_is_applied_unseen_is_right_as_often_as_it_says(load):
    script = load("applied")
    records = stored("applied")
    assert len(records) == 12
    for record in records:
        for above in script.ABOVE:
            applied, right = record[f"cautious_{above}"]
            assert right >= above * applied, record


def is_drawn_again(script, record) -> bool:
    """Tell whether the slow test draws a cell: the others take half an hour."""
    if record["set"] not in ("captions", "birds", "mislabel 20 %"):
        return False  # mislabel 40 %, flip 10 % and single positive, simulated as well
    if record["what"] == "missing rate":
        return record["sample"] == script.SAMPLES[0]  # of more pictures it takes a minute a set
    return not record["what"].startswith("ppi")  # needs ppi-python


@pytest.mark.slow
@pytest.mark.shared
def test_cells_can_be_measured_again(load):
    """All draws of the real-noise sets and a simulated one: the numbers are the document's.

    Left out is what `is_drawn_again` names; benchmarks/estimates.py measures all cells, once
    benchmarks/estimates.jsonl is taken away.
    """
    script = load("estimates")
    cells = [record for record in stored("estimates") if is_drawn_again(script, record)]
    assert len(cells) == 3 * 8
    for record in cells:
        again = script.measure(*(record[key] for key in script.KEY))
        assert again["covers"] == pytest.approx(record["covers"], abs=0.01)
        assert again["half"] == pytest.approx(record["half"], rel=0.05)
        assert again["bias"] == pytest.approx(
            record["bias"], abs=0.01
        )  # ratio to the truth, less 1
