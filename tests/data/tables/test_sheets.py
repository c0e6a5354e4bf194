"""Workbooks with several sheets: which one is read, and how to choose another."""

import zipfile
from pathlib import Path

import openpyxl
import pytest
from PIL import Image

from balancemix.cli import main
from balancemix.data import ReadOptions, read
from balancemix.errors import InputError
from balancemix.run import Run
from tests.data.formats.contract import labels_of


@pytest.fixture
def book(tmp_path, monkeypatch) -> Path:
    """A workbook with an empty sheet, notes, and two sheets of labels."""
    monkeypatch.chdir(tmp_path)
    made = openpyxl.Workbook()
    made.active.title = "empty"
    first, second = made.create_sheet("2023"), made.create_sheet("second look")
    for i in range(8):
        Image.new("RGB", (8, 8), (30 * i, 0, 0)).save(tmp_path / f"{i}.png")
    for sheet, labels in ((first, ("cat", "dog")), (second, ("dog", "owl"))):
        sheet.append(["image", "labels"])
        for i in range(8):
            sheet.append([f"{i}.png", "|".join(labels) if i % 3 else labels[i % 2]])
    made.save(tmp_path / "x.xlsx")
    return tmp_path / "x.xlsx"


def parts(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_first_sheet_that_holds_anything_is_read_and_said(book, capsys):
    assert read(book).classes == ["cat", "dog"]
    assert main(["stats", "x.xlsx"]) == 0
    assert "its sheet '2023' is read, not 'second look' (--sheet)" in capsys.readouterr().out
    assert main(["stats", "x.xlsx", "--sheet", "second look"]) == 0
    said = capsys.readouterr().out
    assert "its sheet 'second look' is read, not '2023' (--sheet)" in said
    assert "owl" in said


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("third", "--sheet third: .*x.xlsx has no such sheet; use one of: empty, 2023, second"),
        ("second loo", "did you mean 'second look'"),
        ("empty", "--sheet empty: holds nothing; begin it with a header"),
    ],
)
def test_a_sheet_that_cannot_be_read_is_refused(book, name, message):
    with pytest.raises(InputError, match=message):
        read(book, ReadOptions(sheet=name))


def test_other_files_have_no_sheets(tmp_path):
    (tmp_path / "x.csv").write_text("image,labels\na,cat|dog\n")
    with pytest.raises(InputError, match=r"--sheet 2023: .*x\.csv has no sheets; leave it out"):
        read(tmp_path / "x.csv", ReadOptions(sheet="2023", labels_only=True))


def test_a_run_remembers_the_sheet_and_the_others_come_back_as_they_were(book, capsys):
    call = ["train", "x.xlsx", "--sheet", "second look", "--method", "bce", "--epochs", "1"]
    call += ["--no-pretrained", "--backbone", "test_efficientnet", "--image-size", "32"]
    assert main([*call, "--workers", "0", "--out", "run"]) == 0
    assert Run.open(Path("run")).plan.data.sheet == "second look"
    assert main(["evaluate", "run"]) == 0
    Path("x.xlsx.balancemix").mkdir()
    Path("x.xlsx.balancemix/decisions.csv").write_text("image,class,verdict\n1.png,dog,absent\n")
    assert main(["export", "x.xlsx", "--sheet", "second look", "--out", "new.xlsx"]) == 0
    before, after = parts(book), parts(Path("new.xlsx"))
    changed = [name for name in before if before[name] != after[name]]
    assert changed == ["xl/worksheets/sheet3.xml"]
    new = read(Path("new.xlsx"), ReadOptions(sheet="second look"))
    assert labels_of(new)[:2] == [{"dog"}, {"owl"}]
