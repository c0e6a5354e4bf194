"""A pandas frame is read like a table, and written to a file with its other columns."""

from typing import Any

import numpy as np
import pandas
import pytest
import torch
from PIL import Image

from balancemix.data import ReadOptions, load, read
from balancemix.data.tables import open_sheet
from balancemix.data.writing import write_labels


@pytest.fixture
def options(tmp_path):
    for name in "abcd":
        Image.new("RGB", (6, 4)).save(tmp_path / f"{name}.png")
    return ReadOptions(images=tmp_path)


FRAMES: dict[str, dict[str, Any]] = {
    "joined": {"labels": ["cat|dog", "dog", "", "cat"]},
    "lists": {"labels": [["cat", "dog"], ["dog"], [], ["cat"]]},
    "arrays": {"labels": [np.array(["cat", "dog"]), np.array(["dog"]), np.array([]), ["cat"]]},
    "numbers": {"cat": [1, 0, 0, 1], "dog": [1.0, 1.0, 0.0, 0.0]},
    "truths": {"cat": [True, False, False, True], "dog": [True, True, False, False]},
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_is_read(options, name):
    frame = pandas.DataFrame({"image": [f"{x}.png" for x in "abcd"], **FRAMES[name]}, index=[7] * 4)
    frame["split"] = ["train", "train", "test", "test"]
    source = read(frame, options)
    assert source.classes == ["cat", "dog"]
    assert source.given.tolist() == [[1, 1], [0, 1], [0, 0], [1, 0]]
    assert load(frame, options=options).train.names == ["a.png", "b.png"]


def test_what_is_missing_is_unknown(options):
    frame = pandas.DataFrame({"image": ["a.png", "b.png", "c.png"], "cat": [1, None, 0]})
    frame["dog"] = pandas.array([True, pandas.NA, False], dtype="boolean")
    assert read(frame, options).given.tolist() == [[1, 1], [-1, -1], [0, 0]]


@pytest.mark.parametrize("ending", [".csv", ".xlsx", ".parquet", ".json"])
def test_a_frame_is_written_with_all_its_columns(options, tmp_path, ending):
    frame = pandas.DataFrame({"image": ["a.png", "b.png"], "labels": ["cat|dog", "dog"]})
    frame["when"] = pandas.Timestamp("2020-02-03")
    source = read(frame, options)
    given = source.given.clone()
    given[0, 1] = 0
    out = tmp_path / f"new{ending}"
    assert write_labels(source, given, out, "by hand") == []
    again = read(out, options)
    assert torch.equal(again.given, given)
    sheet = open_sheet(out)
    assert sheet.header == ["image", "labels", "when"]
    assert next(iter(sheet.records()))[2] == "2020-02-03 00:00:00"
    assert frame["labels"].tolist() == ["cat|dog", "dog"]
