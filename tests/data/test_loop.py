"""The whole loop in every layout: read, train, audit, export, train on what came back.

What came back is compared with what went in by readers of this file: the labels that the log names
differ, and nothing else.
"""

import csv
import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow
import pyarrow.parquet
import pytest
from openpyxl.styles import Font
from PIL import Image

from balancemix.cli import main
from balancemix.data import ReadOptions, read

CLASSES = ["red", "green", "blue"]
COUNT = 24
LABELS = [[name for k, name in enumerate(CLASSES) if (i >> k) & 1] for i in range(COUNT)]
SPLIT = ["test" if i % 4 == 3 else "train" for i in range(COUNT)]
SMALL = [
    "--backbone",
    "test_efficientnet",
    "--no-pretrained",
    "--image-size",
    "32",
    "--epochs",
    "2",
]
SMALL += ["--batch-size", "8", "--workers", "0", "--method", "bce"]
KINDS = ("wrong", "missing")  # of each, two are decided


def text(rows: list[list[str]], between: str, end: str, code: str = "utf-8") -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=between, lineterminator=end).writerows(rows)
    return out.getvalue().encode(code)


def joined(mark: str) -> list[list[str]]:
    rows = [[f"{i}.png", mark.join(LABELS[i]), SPLIT[i], 'a, "b"; c'] for i in range(COUNT)]
    return [["image", "labels", "split", "note"], *rows]


def flags(yes: Any, no: Any, other: Any = "ü") -> list[list[Any]]:
    marks = [[yes if name in labels else no for name in CLASSES] for labels in LABELS]
    rows = [[f"{i}.png", other, *marks[i], SPLIT[i]] for i in range(COUNT)]
    return [["file_name", "note", *CLASSES, "split"], *rows]


def lists() -> list[list[str]]:
    header, *rows = joined("|")
    return [header, *([row[0], json.dumps(LABELS[i]), *row[2:]] for i, row in enumerate(rows))]


def lines() -> list[list[str]]:
    rows = [[f"{i}.png", name, SPLIT[i]] for i in range(COUNT) for name in LABELS[i] or [""]]
    return [["image", "class", "split"], *rows]


def objects() -> list[dict[str, Any]]:
    return [
        {"image": f"{i}.png", "labels": LABELS[i], "split": SPLIT[i], "extra": {"n": [i, None]}}
        for i in range(COUNT)
    ]


def workbook(rows: list[list[Any]]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.active["A1"].font = Font(bold=True)
    book.create_sheet("notes")["B2"] = "kept"
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    table = pyarrow.Table.from_pylist(rows).replace_schema_metadata({"made": "here"})
    pyarrow.parquet.write_table(table, out, row_group_size=10)
    return out.getvalue()


LAYOUTS = {
    "joined.csv": lambda: b"\xef\xbb\xbf" + text(joined("|"), ",", "\r\n"),
    "commas.tsv": lambda: text(joined(","), "\t", "\n"),
    "semicolons.csv": lambda: text(flags("yes", "no"), ";", "\r\n"),
    "columns.csv": lambda: text(flags("1", "0"), ",", "\n"),
    "excel.csv": lambda: text(flags("1", "0"), "\t", "\r\n", "utf-16"),
    "lists.csv": lambda: text(lists(), ",", "\n"),
    "lines.csv": lambda: text(lines(), ",", "\n"),
    "joined.xlsx": lambda: workbook(joined("|")),
    "columns.xlsx": lambda: workbook(flags(1, 0)),
    "truths.xlsx": lambda: workbook(flags(True, False)),
    "lines.xlsx": lambda: workbook(lines()),
    "lists.parquet": lambda: parquet(objects()),
    "lists.json": lambda: json.dumps(objects(), indent=2).encode(),
    "lists.jsonl": lambda: "".join(json.dumps(each) + "\n" for each in objects()).encode(),
}  # fmt: skip


@pytest.fixture
def photos(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(COUNT):
        colour = tuple(200 * (name in LABELS[i]) + i for name in CLASSES)
        Image.new("RGB", (8, 8), colour).save(folder / f"{i}.png")
    return folder


def correct(data: str, out: str, *flags: str) -> list[dict[str, str]]:
    """Train, audit, decide some findings and export; returns the log of changes."""
    assert main(["train", data, *SMALL, *flags, "--out", "run"]) == 0
    assert main(["audit", "run", "--above", "0"]) == 0
    with open("run/findings.csv", encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    verdicts = {"1": "present", "0": "absent"}
    worst = [line for kind in KINDS for line in [x for x in found if x["problem"] == kind][:2]]
    rows = {(x["image"], x["class"]): verdicts[x["suggested"]] for x in worst}
    images = Path(flags[flags.index("--images") + 1]) if "--images" in flags else None
    source = read(data, ReadOptions(images=images, labels_only=True))
    for i in (source.rows_in("train") or range(len(source)))[:2]:  # and some that were not found
        if int(source.given[i, 0]) >= 0:
            name = source.names[i], source.classes[0]
            rows.setdefault(name, verdicts[str(1 - int(source.given[i, 0]))])
    beside = Path(f"{data}.balancemix")
    beside.mkdir(exist_ok=True)
    with (beside / "decisions.csv").open("w", encoding="utf-8", newline="") as file:
        lines = [(*place, verdict) for place, verdict in rows.items()]
        csv.writer(file).writerows([("image", "class", "verdict"), *lines])
    assert main(["export", data, *flags, "--out", out]) == 0
    by_run = Path("by-run").with_suffix(Path(out).suffix)
    assert main(["export", "run", "--out", str(by_run)]) == 0  # by the other door, the same
    assert by_run.read_bytes() == Path(out).read_bytes()
    with open(f"{out}.changes.csv", encoding="utf-8", newline="") as file:
        log = list(csv.DictReader(file))
    assert len(log) == len(rows) > 1
    assert {(x["image"], x["class"]): x["after"] for x in log} == rows
    assert {x["why"] for x in log} == {"decision"}
    shutil.rmtree(beside)  # the new file has what was decided
    return log


def content(file: Path) -> tuple[Any, list[dict[str, Any]]]:
    """Read a table by other means: what is around its rows, and the rows."""
    if file.suffix == ".xlsx":
        with zipfile.ZipFile(file) as archive:
            parts = {n: archive.read(n) for n in archive.namelist() if "sheet1" not in n}
        values = openpyxl.load_workbook(file).worksheets[0].iter_rows(values_only=True)
        names = [str(name) for name in next(values)]
        return parts, [dict(zip(names, row, strict=True)) for row in values]
    if file.suffix == ".parquet":
        table = pyarrow.parquet.read_table(file)
        return (str(table.schema), table.schema.metadata), table.to_pylist()
    if file.suffix == ".json":
        return None, json.loads(file.read_text())
    if file.suffix == ".jsonl":
        return None, [json.loads(line) for line in file.read_text().splitlines()]
    raw = file.read_bytes()
    plain = raw.decode("utf-16" if raw[:2] == b"\xff\xfe" else "utf-8-sig")
    header = plain.split("\n")[0]
    mark = next(mark for mark in "\t;," if mark in header)
    around = raw[:3], "\r\n" in plain, plain.endswith("\n"), header
    return around, list(csv.DictReader(io.StringIO(plain, newline=""), delimiter=mark))


def pairs(rows: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """The labels of a line each."""
    return {(row["image"], row["class"]) for row in rows if row["image"] and row["class"]}


@pytest.mark.filterwarnings("ignore:.*no training row has the class")
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_table_comes_back_and_is_trained_on(photos, tmp_path, capsys, name):
    file = tmp_path / name
    file.write_bytes(LAYOUTS[name]())
    out = Path(f"new{file.suffix}")
    log = correct(name, str(out), "--images", "photos")
    around, before = content(file)
    around_after, after = content(out)
    assert around_after == around
    changed = {(line["image"], line["class"]): line["after"] for line in log}
    if name.startswith("lines"):
        assert pairs(before) ^ pairs(after) == set(changed)
        assert {key for key in changed if key in pairs(after)} == {
            key for key, value in changed.items() if value == "present"
        }
    else:
        check_cells(before, after, changed)
    options = ReadOptions(images=photos)
    old, new = read(name, options), read(out, options)
    expected = old.given.clone()
    for (image, class_), value in changed.items():
        expected[old.names.index(image), old.classes.index(class_)] = value == "present"
    assert sorted(new.names) == sorted(old.names)
    rows = [new.names.index(image) for image in old.names]
    assert new.given[rows].tolist() == expected.tolist()
    again = ["train", str(out), *SMALL, "--images", "photos", "--out", "again"]
    assert main(again) == 0
    with np.load("again/label_table.npz") as table:
        train = [i for i, split in enumerate(new.split) if split == "train"]
        assert table["given"].tolist() == new.given[train].tolist()


def check_cells(before, after, changed) -> None:
    """Only the cells of labels that changed differ, and they keep their types."""
    assert len(after) == len(before)
    touched = {image for image, _ in changed}
    for old, new in zip(before, after, strict=True):
        image = old.get("image", old.get("file_name"))
        differing = {key for key in old if old[key] != new[key]}
        assert list(old) == list(new)
        if "labels" in old:
            assert differing == ({"labels"} if image in touched else set())
        else:
            assert differing == {class_ for name, class_ in changed if name == image}
        assert all(type(old[key]) is type(new[key]) or None in (old[key], new[key]) for key in old)


@pytest.mark.filterwarnings("ignore:.*no training row has the class")
def test_a_folder_s_table_comes_back_by_default(photos, capsys):
    (photos / "labels.xlsx").write_bytes(workbook(flags(1, 0)))
    assert main(["train", "photos", *SMALL, "--out", "run"]) == 0
    assert main(["export", "run", "--above", "0.3", "--force"]) == 0
    out = Path("run/labels.corrected.xlsx")
    shutil.copy(out, photos / "labels.xlsx")
    assert main(["train", "photos", *SMALL, "--out", "again"]) == 0


@pytest.mark.filterwarnings("ignore:.*no training row has the class")
def test_noise_goes_through_the_same_door(photos, capsys):
    (photos / "labels.xlsx").write_bytes(workbook(flags(1, 0)))
    assert main(["noise", "photos", "--noise", "flip:0.2"]) == 0
    with open("noisy.xlsx.changes.csv", encoding="utf-8", newline="") as file:
        log = list(csv.DictReader(file))
    assert {line["why"] for line in log} == {"flip:0.2, seed 0"}
    changed = {(line["image"], line["class"]): line["after"] for line in log}
    around, before = content(photos / "labels.xlsx")
    around_after, after = content(Path("noisy.xlsx"))
    assert around_after == around
    check_cells(before, after, changed)
