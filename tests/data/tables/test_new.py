"""Data of any format becomes a new table, and is the same when it is read again."""

import json
from dataclasses import replace

import pytest
import torch
from PIL import Image

from balancemix.data import ReadOptions, read
from balancemix.data.formats import find_writer
from balancemix.errors import InputError

ENDINGS = [".csv", ".tsv", ".txt", ".xlsx", ".parquet", ".json", ".jsonl"]
TABLE = (
    'image,labels,split,group\na.png,cat|=1+1,train,x\nb.png,"é, ö",train,\nc.png,cat,train,x\n'
    "d.png,cat|=1+1,test,y\ne.png,,test,\n"
)


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in "abcde":
        Image.new("RGB", (6, 4)).save(folder / f"{name}.png")
    (folder / "labels.csv").write_text(TABLE, encoding="utf-8")
    return replace(read(folder), origin=None)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("case", ["known", "verified", "unknown"])
def test_a_new_table_says_the_same(source, tmp_path, ending, case):
    if case != "known":
        verified = torch.zeros(5, 3, dtype=torch.bool)
        verified[0, 1] = verified[2] = True
        source = replace(source, verified=verified)
    given = source.given.clone()
    if case == "unknown":
        given[1, 0] = given[4, 2] = -1
    out = tmp_path / f"new{ending}"
    find_writer(out).write(source, given, out)
    again = read(out, ReadOptions(images=tmp_path / "photos"))
    columns = [again.classes.index(name) for name in source.classes]
    assert torch.equal(again.given[:, columns], given)
    assert (again.names, again.split) == (source.names, source.split)
    assert again.groups == source.groups
    if case == "known":
        assert again.verified is None
    else:
        assert torch.equal(again.verified[:, columns], source.verified)


def test_classes_that_cannot_be_columns_are_refused(source, tmp_path):
    odd = replace(source, classes=["cat", "Split", "dog"])
    with pytest.raises(InputError, match="class 'Split' cannot be the name of a column"):
        find_writer(tmp_path / "x.csv").write(odd, source.given - 1, tmp_path / "x.csv")


def test_a_list_of_0_and_1_says_what_is_verified(tmp_path):
    rows = [
        {"image": "a.png", "labels": ["cat", "dog"], "verified": [0, 1]},
        {"image": "b.png", "labels": ["dog"], "verified": [1, 1]},
        {"image": "c.png", "labels": [], "verified": ["cat"]},
    ]
    (tmp_path / "labels.json").write_text(json.dumps(rows))
    source = read(tmp_path / "labels.json", ReadOptions(labels_only=True))
    assert source.verified.tolist() == [[False, True], [True, True], [True, False]]
