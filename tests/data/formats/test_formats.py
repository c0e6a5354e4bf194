"""The registry: what is recognised, why, and what other packages add."""

import re
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest
import torch
from PIL import Image

from balancemix.cli import main
from balancemix.data import formats, load
from balancemix.data.formats import FORMATS, find_format
from balancemix.data.source import Source
from balancemix.errors import InputError
from tests.conftest import ROOT
from tests.data.formats.contract import check_reading, check_writing
from tests.data.formats.test_coco import make as make_coco
from tests.data.formats.test_deepfashion import make as make_deepfashion
from tests.data.formats.test_voc import make as make_voc

DOCUMENT = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
LINES = ["a 1 0 train", "b 0 1 train", "c 1 1 test"]


def declare(monkeypatch, name: str, value: str) -> None:
    point = EntryPoint(name, value, formats.GROUP)
    monkeypatch.setattr(formats, "entry_points", lambda group: [point] * (group == point.group))


def test_each_format_says_why(tmp_path):
    for name in ("coco", "table"):
        (tmp_path / name).mkdir()
    make_coco(tmp_path / "coco", "2017")
    make_voc(tmp_path / "voc", "2007")
    make_deepfashion(tmp_path / "deepfashion")
    (tmp_path / "table" / "labels.csv").write_text("")
    places = {name: tmp_path / name for name in ("table", "coco", "voc", "deepfashion")}
    places |= {"builtin": Path("digits"), "npz": Path("any.npz")}
    assert {name: FORMATS[name].recognise(place) for name, place in places.items()} == {
        "table": "it holds labels.csv",
        "coco": "it holds annotations/instances_train2017.json",
        "voc": "it holds VOC2007/ImageSets/Main",
        "deepfashion": "it holds Anno_fine",
        "builtin": "it is the name of built-in data",
        "npz": "it ends in .npz",
    }
    for name, place in places.items():
        assert find_format(place) is FORMATS[name]
    for name in ("builtin", "coco", "voc", "deepfashion"):
        check_reading(FORMATS[name], places[name])


def test_a_folder_that_is_named_like_built_in_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert len(load("digits").train) == 4000
    with pytest.raises(InputError, match=r"digits.labels\.csv: not found"):
        load("./digits")


class Lines:
    """Features in a text file, as another package might read them."""

    @staticmethod
    def recognise(path):
        return "it ends in .lines" if path.suffix == ".lines" else None

    @staticmethod
    def read(path, options):
        cells = [line.split() for line in path.read_text().splitlines()]
        given = torch.tensor([[int(value) for value in row[1:3]] for row in cells]).to(torch.int8)
        return Source(
            path=path,
            classes=["cat", "dog"],
            names=[row[0] for row in cells],
            given=given,
            split=[row[3] for row in cells],
            features=given.float(),
        )


def test_another_package_may_add_a_format(tmp_path, monkeypatch):
    declare(monkeypatch, "lines", f"{__name__}:Lines")
    file = tmp_path / "x.lines"
    file.write_text("\n".join(LINES))
    data = load(file)
    assert (data.train.names, data.test.given.tolist()) == (["a", "b"], [[1, 1]])
    assert data.source.split == ["train", "train", "test"]
    file.write_text("\n".join(LINES).replace("a 1 0", "a 1 -1"))
    assert load(file).train.given.tolist() == [[1, -1], [0, 1]]


def test_a_format_that_cannot_be_loaded_is_named(tmp_path, monkeypatch):
    declare(monkeypatch, "lines", "no_such_package:lines")
    with pytest.raises(
        InputError, match=r"format 'lines' \(no_such_package:lines\) cannot be load"
    ):
        load(tmp_path)


def test_our_formats_come_first(tmp_path, monkeypatch):
    declare(monkeypatch, "npz", f"{__name__}:Lines")
    assert find_format(tmp_path / "x.npz") is FORMATS["npz"]


def test_the_format_of_the_documentation(tmp_path, monkeypatch, capsys):
    """The example of docs/data.md keeps to the contract, and all commands know it."""
    code, _ = re.findall(r"```(?:python|toml)\n(.*?)```", DOCUMENT, re.DOTALL)
    cxr = ModuleType("cxr")
    exec(compile(code, "docs/data.md", "exec"), vars(cxr))
    folder = tmp_path / "chest"
    folder.mkdir()
    lines = ["image,effusion,nodule"]
    for i in range(8):
        Image.new("RGB", (6, 4)).save(folder / f"{i}.png")
        lines.append(f"{i}.png,{i % 2},{i // 4}")
    (folder / "findings.csv").write_text("\n".join(lines) + "\n")
    check_writing(cxr, folder, folder / "findings.csv", tmp_path / "same.csv")
    monkeypatch.setitem(FORMATS, "cxr", cxr)
    out = tmp_path / "noisy.csv"
    assert main(["stats", str(folder)]) == 0
    assert main(["noise", str(folder), "--noise", "flip:0.3", "--out", str(out)]) == 0
    assert out.read_text().startswith("image,effusion,nodule\n0.png,")
    (folder / "findings.csv").write_text("image,effusion,nodule\n0.png,1\n")
    assert main(["stats", str(folder)]) == 2
    assert "findings.csv line 2: write an image and a 0 or 1" in capsys.readouterr().err


def test_every_format_is_in_the_documentation():
    for name in ("`digits`", "`labels.csv`", "COCO", "VOC", "DeepFashion", "`.npz`"):
        assert name in DOCUMENT.partition("## ")[0]
    assert len(FORMATS) == 7
