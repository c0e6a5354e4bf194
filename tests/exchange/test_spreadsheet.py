"""The loop by a spreadsheet: findings out as CSV or workbook, edited as people do, and back in."""

import csv
import functools
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from balancemix.auditing.findings import HEADER, audit
from balancemix.cli import main
from balancemix.data.decisions.reading import Taken
from balancemix.errors import InputError
from balancemix.exchange import spreadsheet, writing
from balancemix.exchange.reading import read_answers
from tests.exchange.conftest import CLASSES, CONFIDENCE
from tests.exchange.sources import source_of

ODD = CLASSES[2]
SAID = {("0.png", "cat"): "absent", ("0.png", "dog"): "present", ("2.png", ODD): "unsure"}


def cells_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def text_of(rows: list[list[str]], between: str, end: str = "\r\n", every: bool = False) -> str:
    out = io.StringIO(newline="")
    marks: dict[str, Any] = {"delimiter": between, "lineterminator": end}
    csv.writer(out, **marks, quoting=csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL).writerows(rows)
    return out.getvalue()


def excel(rows):
    """Save as Excel does in most of Europe: semicolons, a mark, decimal commas, words for truth."""
    kept = [[cell.replace(".", ",") if k == 5 else cell for k, cell in enumerate(r)] for r in rows]
    kept[1:] = [[{"1": "TRUE", "0": "FALSE"}.get(cell, cell) for cell in row] for row in kept[1:]]
    return ("\ufeff" + text_of(kept, ";")).encode()


DIALECTS = {
    "Excel, semicolons": excel,
    "Excel, commas": lambda rows: ("\ufeff" + text_of(rows, ",")).encode(),
    "Excel, Unicode text": lambda rows: text_of(rows, "\t").encode("utf-16"),
    "LibreOffice, all quoted": lambda rows: text_of(rows, ",", "\n", every=True).encode(),
    "sorted, with a remark and blank rows": lambda rows: text_of(
        [[*rows[0], "remark"], *([*row, "seen; ok"] for row in rows[:0:-1]), [""] * 11, []], ";"
    ).encode(),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_csv_that_a_spreadsheet_saved_is_read(work, tmp_path, dialect):
    file = tmp_path / "findings.csv"
    assert writing.write(work.findings, file) == []
    rows = cells_of(file.read_text(encoding="utf-8"))
    assert tuple(rows[0]) == HEADER
    for row in rows[1:]:
        row[-1] = f" {SAID[row[0], row[1]].capitalize()} "
    file.write_bytes(DIALECTS[dialect](rows))
    assert work.take(file) == Taken(new=3)
    assert work.answers() == SAID
    assert work.take(file) == Taken(known=3)


@pytest.mark.parametrize("word", ["TRUE", "1", "yes", "0", "wrong", "ok"])
def test_a_word_that_could_mean_either_is_refused_with_its_row(work, tmp_path, word):
    file = tmp_path / "findings.csv"
    writing.write(work.findings, file)
    rows = cells_of(file.read_text(encoding="utf-8"))
    rows[1][-1], rows[2][-1] = "absent", word
    file.write_bytes(excel(rows) if word not in ("1", "0") else text_of(rows, ",").encode())
    with pytest.raises(InputError, match=f"row 3: verdict '{word}'; use one of: present, absent"):
        work.take(file)
    assert work.answers() == {}


def test_a_workbook_offers_the_verdicts_and_is_read(work, tmp_path):
    file = tmp_path / "findings.xlsx"
    assert writing.write(work.findings, file) == []
    book = openpyxl.load_workbook(file)
    sheet = book.active
    assert tuple(cell.value for cell in sheet[1]) == HEADER
    [choice] = sheet.data_validations.dataValidation
    assert choice.formula1 == '"present,absent,unsure"'
    assert "J2" in str(choice.sqref)
    assert sheet.freeze_panes == "A2"
    for row in list(sheet.iter_rows(min_row=2)):
        row[9].value = SAID[str(row[0].value), str(row[1].value)]
        assert isinstance(row[5].value, float)
    sheet.append([None] * 10)
    book.save(file)
    assert work.take(file) == Taken(new=3)
    assert work.answers() == SAID


def test_no_name_becomes_a_formula_in_a_workbook(tmp_path):
    names, classes = ["=1+1", "-x.png", "'tis.png"], ["@sum", "cat"]
    labels = torch.tensor([[1, 0], [0, 1], [1, 1]])
    found = audit(labels, confidence=1 - labels.float(), names=names, classes=classes, above=0)
    file = tmp_path / "x.xlsx"
    spreadsheet.write(found, file)
    book = openpyxl.load_workbook(file)
    assert "f" not in {cell.data_type for row in book.active for cell in row}
    for row in list(book.active.iter_rows(min_row=2)):
        row[9].value = "present"
    book.save(file)
    answers = read_answers(file, source_of(names, classes)).labels
    assert {(each.image, each.class_) for each in answers} == {
        (i, c) for i in names for c in classes
    }


@pytest.mark.parametrize("name", ["a\x01.png", "caf\udce9.png"])
def test_a_name_that_a_workbook_cannot_hold_is_refused_and_nothing_is_written(tmp_path, name):
    labels = torch.tensor([[1, 0], [0, 1]])
    found = audit(labels, confidence=1 - labels.float(), names=[name, "b.png"], above=0)
    with pytest.raises(InputError, match=r"x\.xlsx: a workbook cannot hold .*; write a \.csv"):
        spreadsheet.write(found, tmp_path / "x.xlsx")
    assert list(tmp_path.iterdir()) == []


NAMES = ["a, b;\t.png", "=é.png", '"c".png']


@functools.cache
def findings_of_odd_names():
    labels = torch.tensor([[1, 0], [0, 1], [1, 1]])
    return audit(labels, confidence=1 - labels.float(), names=NAMES, classes=["x;y", "z"], above=0)


VERDICTS = st.sampled_from(["present", "absent", "unsure", ""])


@settings(max_examples=40, deadline=None)
@given(st.lists(VERDICTS, min_size=6, max_size=6), st.sampled_from(sorted(DIALECTS)))
def test_whatever_is_filled_in_is_read_back(verdicts, dialect):
    names, classes = NAMES, ["x;y", "z"]
    found = findings_of_odd_names()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "findings.csv"
        found.write(file)
        rows = cells_of(file.read_text(encoding="utf-8"))
        for row, verdict in zip(rows[1:], verdicts, strict=True):
            row[-1] = verdict
        file.write_bytes(DIALECTS[dialect](rows))
        answers = read_answers(file, source_of(names, classes))
    pairs = [(names[f.row], classes[f.column]) for f in found]
    expected = {pair: word for pair, word in zip(pairs, verdicts, strict=True) if word}
    assert {(each.image, each.class_): each.verdict for each in answers.labels} == expected
    assert answers.blank == 6 - len(expected)


def test_the_command_writes_a_workbook_and_replaces_none(work, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("p.npy", np.array(CONFIDENCE))
    call = ["audit", "photos", "--minus-one", "unknown", "--confidence", "p.npy", "--above", "0"]
    assert main([*call, "--out", "findings.xlsx"]) == 0
    before = (tmp_path / "findings.xlsx").read_bytes()
    assert main([*call, "--out", "findings.xlsx"]) == 2
    assert "findings.xlsx: already exists" in capsys.readouterr().err
    assert (tmp_path / "findings.xlsx").read_bytes() == before
