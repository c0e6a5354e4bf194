"""Groups: rows that belong together are trained on together, or held out together."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from balancemix.cli import main
from balancemix.data import FeatureRows, ReadOptions, load, read
from balancemix.data.formats import npz, table
from balancemix.data.splits import draw_rows, hold_out
from balancemix.errors import InputError
from balancemix.plan.plan import Plan
from balancemix.training.experiment import load_experiment
from tests.conftest import tiny_arrays

PATIENTS = np.array([f"p{i // 4}" for i in range(120)])


def saved(folder, group=PATIENTS, *, split=False):
    arrays = tiny_arrays() | {"group": group}
    if not split:
        del arrays["split"]
    np.savez(folder / "x.npz", **arrays)
    return folder / "x.npz"


def groups_of(rows) -> set[int]:
    return set(rows.groups.tolist())


@pytest.mark.parametrize("seed", range(4))
def test_a_random_holdout_divides_no_group(tmp_path, seed):
    data = load(saved(tmp_path), options=ReadOptions(seed=seed))
    assert (len(data.train), len(data.test)) == (96, 24)
    assert not groups_of(data.train) & groups_of(data.test)
    assert len(groups_of(data.test)) == 6


def test_held_out_training_rows_divide_no_group(tmp_path):
    tree = {"data": {"path": str(saved(tmp_path)), "score": "held-out", "holdout": 0.25}}
    chosen = load_experiment(Plan.from_tree(tree))
    assert not groups_of(chosen.train) & groups_of(chosen.test)
    assert len(chosen.test) == 20  # of 90 rows, 22 fit


def test_without_groups_the_rows_are_those_of_before():
    order = torch.randperm(50, generator=torch.Generator().manual_seed(3))
    drawn, others = draw_rows(50, 12, 3)
    assert torch.equal(torch.cat([drawn, others]), order)
    each = draw_rows(50, 12, 3, torch.arange(50))
    assert set(each[0].tolist()) == set(drawn.tolist())  # a group for each row is none


@given(
    st.lists(st.integers(-3, 3), min_size=2, max_size=30),
    st.floats(0.05, 0.95),
    st.integers(0, 5),
)
def test_whatever_the_groups_are_both_parts_have_whole_ones(codes, share, seed):
    groups = torch.tensor(codes)
    if len(set(codes)) == 1:
        with pytest.raises(InputError, match="x: all rows are of one group"):
            hold_out("x", len(codes), share, seed, groups)
        return
    names = hold_out("x", len(codes), share, seed, groups)
    parts = [
        {code for code, name in zip(codes, names, strict=True) if name == part}
        for part in ("train", "test")
    ]
    assert all(parts)
    assert not parts[0] & parts[1]
    held = names.count("test")
    smallest = min(map(codes.count, set(codes)))
    assert held <= max(round(share * len(codes)), 1) or held == smallest


def test_a_file_that_divides_a_group_is_told(tmp_path):
    divided = PATIENTS.copy()
    divided[-1] = "p0"
    with pytest.warns(UserWarning, match=r"x\.npz: groups of the rows .* trained on \(2 of 9\)"):
        data = load(saved(tmp_path, divided, split=True))
    assert (len(data.train), len(data.test)) == (90, 30)


@pytest.mark.parametrize(
    ("group", "numbers"),
    [
        (PATIENTS, [0, 0, 0, 0, 1]),
        (np.array([s.encode() for s in PATIENTS]), [0, 0, 0, 0, 1]),
        (np.arange(120) // 2 - 7, [0, 0, 1, 1, 2]),
        (np.array(["", "", "a", "", "a", *"b" * 115]), [0, 1, 2, 3, 2]),
    ],
)
def test_what_an_npz_may_say(tmp_path, group, numbers):
    source = read(saved(tmp_path, group))
    assert source.group_numbers[:5].tolist() == numbers


@pytest.mark.parametrize(
    ("group", "message"),
    [
        (PATIENTS[:-1], "group are 119; 120 names are needed"),
        (np.zeros((120, 2), int), "group are 120×2; 120 names are needed"),
        (np.zeros(120), "group are float64; write them as text"),
        (np.zeros(120, bool), "group are bool; write them as text"),
    ],
)
def test_what_an_npz_may_not_say(tmp_path, group, message):
    with pytest.raises(InputError, match=message) as caught:
        read(saved(tmp_path, group))
    assert "\n" not in str(caught.value)


def test_groups_go_along(tmp_path):
    rows = load(saved(tmp_path), options=ReadOptions(holdout=0.1)).train
    index = torch.tensor([9, 0, 3])
    assert torch.equal(rows.subset(index).groups, rows.groups[index])
    assert torch.equal(rows.with_views(2, 1).groups, rows.groups)
    assert torch.equal(rows.with_given(rows.given, None).groups, rows.groups)
    assert rows.for_workers().groups is None
    assert rows.with_groups(None).groups is None
    plain = FeatureRows(torch.eye(2), torch.eye(2, dtype=torch.uint8), ["a", "b"])
    assert plain.groups is None
    assert plain.with_groups(np.array([5, 5])).groups.dtype == torch.int64
    for wrong in ([1.0, 2.0], [1], [[1], [2]]):
        with pytest.raises(InputError, match="groups must be 2 whole numbers, not"):
            plain.with_groups(torch.tensor(wrong))


def folder_of(tmp_path, text):
    folder = tmp_path / "photos"
    folder.mkdir(exist_ok=True)
    for line in text.splitlines()[1:]:
        Image.new("RGB", (2, 2)).save(folder / line.partition(",")[0])
    (folder / "labels.csv").write_text(text)
    return folder


TABLE = "image,group,labels\na.png,x,cat\nb.png, x ,dog\nc.png,,cat|dog\nd.png,y,dog\ne.png,,cat\n"


@pytest.mark.filterwarnings("ignore:.*no training row has the class")
def test_a_column_of_groups(tmp_path):
    folder = folder_of(tmp_path, TABLE)
    source = read(folder)
    assert source.groups == ["x", "x", "", "y", ""]
    assert source.group_numbers.tolist() == [0, 0, 1, 2, 3]
    assert source.subset([3, 1]).groups == ["y", "x"]
    for seed in range(6):
        data = load(folder, options=ReadOptions(holdout=0.4, seed=seed))
        assert ("a.png" in data.train.names) == ("b.png" in data.train.names)
    table.write(source, source.given, tmp_path / "same.csv")
    assert (tmp_path / "same.csv").read_text() == TABLE


def test_groups_are_written_in_other_formats(tmp_path):
    source = read(saved(tmp_path))
    table.write(source, source.given, tmp_path / "x.csv")
    again = read(tmp_path / "x.csv", ReadOptions(labels_only=True))
    assert again.groups == PATIENTS.tolist()
    npz.write(source, source.given, tmp_path / "same.npz")
    assert read(tmp_path / "same.npz").groups == PATIENTS.tolist()
    part = source.subset([5, 0])
    npz.write(part, part.given, tmp_path / "part.npz")
    assert read(tmp_path / "part.npz").groups == ["p1", "p0"]
    odd = read(saved(tmp_path, np.array(["a ", *PATIENTS[1:]])))
    with pytest.raises(InputError, match="group 'a ' begins or ends with a blank"):
        table.write(odd, odd.given, tmp_path / "odd.csv")


@pytest.mark.filterwarnings("ignore:.*no training row has the class")
def test_embed_stores_them(tmp_path):
    folder = folder_of(tmp_path, TABLE)
    out = tmp_path / "x.npz"
    how = ["--backbone", "test_resnet", "--no-pretrained", "--image-size", "32", "--views", "0"]
    assert main(["embed", str(folder), "--out", str(out), "--workers", "0", *how]) == 0
    assert read(out).group_numbers.tolist() == [0, 0, 1, 2, 3]
