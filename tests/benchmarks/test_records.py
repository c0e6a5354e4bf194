"""What the long benchmarks have measured, line by line."""

import pytest


@pytest.fixture
def made(load, monkeypatch, tmp_path):
    """Make the records of a benchmark in a folder for the test."""
    records = load("records")
    monkeypatch.setattr(records, "HERE", tmp_path)
    return lambda: records.Records("some", ("set", "seed"))


def test_what_has_a_record_is_not_missing(made):
    cells = [("a", 0), ("a", 1), ("b", 0)]
    records = made()
    assert list(records.missing(cells)) == cells
    records.add({"set": "a", "seed": 1, "mAP": 50.0})
    assert list(records.missing(cells)) == [("a", 0), ("b", 0)]
    assert list(made().missing(cells)) == [("a", 0), ("b", 0)]


def test_records_are_stored_one_by_one_in_order(made):
    records = made()
    for seed in (1, 0):
        records.add({"set": "a", "seed": seed})
        assert made().all == records.all
    assert records.file.read_text().splitlines() == [
        '{"set": "a", "seed": 1}',
        '{"set": "a", "seed": 0}',
    ]


def test_records_to_measure_again_are_dropped(made):
    records = made()
    for seed in range(3):
        records.add({"set": "a", "seed": seed})
    records.keep(lambda record: record["seed"] != 1)
    assert [record["seed"] for record in records.all] == [0, 2]
    assert made().all == records.all
