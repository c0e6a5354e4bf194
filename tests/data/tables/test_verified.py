"""The column verified: it follows what people decide, and no other cell does."""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import torch

from balancemix.cli import main
from balancemix.data import ReadOptions, read
from balancemix.data.tables.new import WRITERS

PLAIN = ReadOptions(labels_only=True)
HEADER = "image,class,verdict\n"


def decided(file: Path, decisions: str) -> str:
    """Export a table with decisions; returns what was said."""
    beside = file.with_name(f"{file.name}.balancemix")
    beside.mkdir(exist_ok=True)
    (beside / "decisions.csv").write_text(HEADER + decisions)
    out = file.with_name(f"out{file.suffix}")
    assert main(["export", str(file), "--out", str(out), "--force"]) == 0
    before, after = read(file, PLAIN), read(out, PLAIN)
    columns = [after.classes.index(name) for name in before.classes]
    rows = [after.names.index(name) for name in before.names]
    assert torch.equal(after.given[rows][:, columns], before.given)
    assert after.verified is not None
    assert torch.equal(after.verified[rows][:, columns], before.verified)
    return out.read_text() if file.suffix != ".parquet" else ""


@pytest.mark.parametrize(
    ("before", "decisions", "after"),
    [
        (
            "image,labels,verified,note\na,cat|dog,,x\nb,dog,dog,\nc,cat|owl,*,\n",
            "a,cat,absent\nb,cat,absent\nb,owl,present\nc,owl,present\n",
            "image,labels,verified,note\na,dog,cat,x\nb,dog|owl,*,\nc,cat|owl,*,\n",
        ),
        (
            'image;tags;verified\na;"cat, dog";\nb;dog;"dog"\nc;cat;\n',
            "a,cat,present\nb,cat,present\n",
            'image;tags;verified\na;"cat, dog";"cat"\nb;cat, dog;"*"\nc;cat;\n',
        ),
        (
            "image,verified,cat,dog,owl\na,,1,0,1\nb,dog;owl,,1,0\n",
            "a,cat,absent\na,dog,absent\nb,cat,present\n",
            "image,verified,cat,dog,owl\na,cat|dog,0,0,1\nb,*,1,1,0\n",
        ),
        (
            "image,class,verified\na,cat,\na,dog,dog\nb,cat,cat\nc,owl,\nd,cat,\n",
            "a,cat,absent\na,owl,present\nb,cat,absent\nb,dog,present\nc,dog,absent\n",
            "image,class,verified\na,dog,*\na,owl,\nb,dog,cat|dog\nc,owl,dog\nd,cat,\n",
        ),
        (
            "image,labels,verified\na,cat|dog,cat\nb,dog,\n",
            "a,cat,present\nb,dog,unsure\n",
            "image,labels,verified\na,cat|dog,cat\nb,dog,\n",
        ),
    ],
)
def test_what_is_decided_is_verified_in_the_file(tmp_path, capsys, before, decisions, after):
    file = tmp_path / "x.csv"
    file.write_text(before)
    assert decided(file, decisions) == after
    assert "verified" not in capsys.readouterr().err


def test_lists_of_names_and_of_marks_stay_lists(tmp_path, capsys):
    names = [["cat"], None, []]
    marks = [[1, 0], None, [0, 0]]
    for verified, name in ((names, "names"), (marks, "marks")):
        rows = [
            {"image": f"{i}.jpg", "labels": labels, "verified": each}
            for i, (labels, each) in enumerate(
                zip([["cat", "dog"], ["dog"], ["cat"]], verified, strict=True)
            )
        ]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / f"{name}.parquet")
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
        for ending in (".parquet", ".json"):
            decided(tmp_path / f"{name}{ending}", "0.jpg,dog,absent\n1.jpg,dog,present\n")
            out = tmp_path / f"out{ending}"
            found = (
                pyarrow.parquet.read_table(out).to_pylist()
                if ending == ".parquet"
                else json.loads(out.read_text())
            )
            expected = (
                [["cat", "dog"], ["dog"], []] if name == "names" else [[1, 1], [0, 1], [0, 0]]
            )
            assert [row["verified"] for row in found] == expected
            assert [row["labels"] for row in found] == [["cat"], ["dog"], ["cat"]]


def test_a_class_that_no_image_has_any_more_is_not_named(tmp_path, capsys):
    """Its name would not be that of a class when the file is read."""
    file = tmp_path / "x.csv"
    file.write_text("image,labels,verified\na,cat|dog,\nb,dog,dog\nc,owl,\n")
    (tmp_path / "x.csv.balancemix").mkdir()
    decisions = HEADER + "a,cat,absent\na,owl,absent\nb,cat,absent\nb,owl,absent\n"
    (tmp_path / "x.csv.balancemix" / "decisions.csv").write_text(decisions)
    out = tmp_path / "out.csv"
    assert main(["export", str(file), "--out", str(out)]) == 0
    assert out.read_text() == "image,labels,verified\na,dog,owl\nb,dog,*\nc,owl,\n"
    assert read(out, PLAIN).classes == ["dog", "owl"]


@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_every_kind_of_file_keeps_it(tmp_path, capsys, ending):
    (tmp_path / "new.csv").write_text(
        "image,labels,verified\na,cat|dog,cat\nb,dog,\nc,owl,*\nd,,\n"
    )
    file = tmp_path / f"x{ending}"
    assert main(["export", str(tmp_path / "new.csv"), "--out", str(file)]) == 0
    beside = tmp_path / f"x{ending}.balancemix"
    beside.mkdir()
    (beside / "decisions.csv").write_text(HEADER + "a,owl,present\nd,cat,absent\n")
    out = tmp_path / f"out{ending}"
    assert main(["export", str(file), "--out", str(out)]) == 0
    after = read(out, PLAIN)
    assert after.given.tolist() == [[1, 1, 1], [0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert after.verified is not None
    assert after.verified.int().tolist() == [[1, 0, 1], [0, 0, 0], [1, 1, 1], [1, 0, 0]]
