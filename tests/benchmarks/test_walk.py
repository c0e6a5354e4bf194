"""The newcomer's walk: what it makes, and that the document has its steps."""

import csv

from benchmarks import walk
from tests.conftest import ROOT


def test_the_workbook_says_what_is_given_and_some_of_it_is_wrong(tmp_path, monkeypatch):
    monkeypatch.setattr(walk, "COUNT", 20)
    truth, given = walk.make(tmp_path)
    assert len(list((tmp_path / "photos").glob("*.jpg"))) == 20
    assert walk.labels_in(tmp_path / "labels.xlsx") == given
    assert 0 < walk.errors(given, truth) < 20
    assert walk.errors(truth, truth) == 0


def test_answers_are_filled_in_where_there_are_any(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("image,rank,verdict\na,1,\nb,2,\n")
    answered = walk.fill(file, lambda row: {"verdict": "absent"} if row["rank"] == "1" else {})
    assert answered == 1
    with file.open(newline="") as stream:
        assert [row["verdict"] for row in csv.DictReader(stream)] == ["absent", ""]


def test_the_document_has_a_place_for_the_table():
    text = (ROOT / "docs" / "walk.md").read_text(encoding="utf-8")
    table = text.split(walk.BEGIN)[1]
    assert "| **all commands** |" in table.split(walk.END)[0]
    assert "`balancemix export labels.xlsx --out labels.corrected.xlsx`" in table
