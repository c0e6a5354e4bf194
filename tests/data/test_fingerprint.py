"""The fingerprint of rows: what changes under a run is matched by name, told or refused."""

import os
from typing import Any

import numpy as np
import pytest
import torch

from balancemix.data import FeatureRows
from balancemix.data.fingerprint import check_fingerprint, fingerprint, matched
from balancemix.errors import InputError
from tests.toys import single

NAMES = ["a", "b", "c", "d"]


def make_rows(names=NAMES, classes=("cat", "dog")):
    generator = torch.Generator().manual_seed(0)
    features = torch.rand(4, 3, generator=generator)
    given = torch.tensor([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=torch.uint8)
    return FeatureRows(features, given, classes, names)


def test_the_same_rows_are_the_same():
    rows = make_rows()
    assert matched(rows, fingerprint(rows), "x.npz") is rows


def test_rows_in_another_order_are_matched_by_name():
    rows = make_rows()
    shuffled = rows.subset(torch.tensor([2, 0, 3, 1]))
    with pytest.warns(UserWarning, match="another order; matched by name"):
        again = matched(shuffled, fingerprint(rows), "x.npz")
    assert again.names == rows.names
    assert torch.equal(again.given, rows.given)
    assert torch.equal(single(again.plain.__getitems__([0, 1, 2, 3])[0]), rows.features)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.subset(torch.tensor([0, 1, 2])), "rows of the run are gone: 'd'"),
        (lambda rows: make_rows(classes=("dog", "cat")), "its classes, or their order"),
        (lambda rows: make_rows(["a", "b", "c", "x"]), "rows of the run are gone: 'd'"),
        (
            lambda rows: rows.with_given(1 - rows.given, None),
            "labels are not .*8 of them.*'a', 'cat' was present and is absent",
        ),
        (
            lambda rows: rows.with_given(rows.given - 2 * (rows.given == 1).char(), None),
            "labels are not .*4 of them.*'a', 'cat' was present and is unknown",
        ),
        (
            lambda rows: rows.with_verified(rows.given),
            "other labels are verified .*4 of them.*first: 'a', 'cat'",
        ),
        (
            lambda rows: FeatureRows(rows.features + 1, rows.given, rows.classes, rows.names),
            "inputs are not what they were: 'a', 'b', 'c' and 1 more",
        ),
    ],
)
def test_rows_that_changed_are_refused(change, message):
    rows = make_rows()
    with pytest.raises(InputError, match=f"x.npz: {message}.*start over with --force"):
        matched(change(rows), fingerprint(rows), "x.npz")


def test_unknown_and_verified_labels_are_kept(tmp_path):
    plain = make_rows()
    given = plain.given.clone()
    given[3, 0] = -1
    rows = plain.with_given(given, None).with_verified(given > 0)
    kept = fingerprint(rows)
    assert matched(rows, kept, "x.npz") is rows
    for changed in (plain.with_verified(given > 0), rows.with_verified(None)):
        with pytest.raises(InputError, match="start over with --force"):
            matched(changed, kept, "x.npz")
    with pytest.raises(InputError, match="was absent and is unknown"):
        matched(rows.with_verified(None), fingerprint(plain), "x.npz")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("train_given", np.full((4, 2), 255, np.uint8)),
        ("test_given", np.full((4, 2), -2, np.int8)),
        ("train_verified", np.ones((4, 3), np.bool_)),
        ("test_verified", np.ones((4, 2), np.uint8)),
    ],
)
def test_labels_that_cannot_be_are_refused(name, array):
    facts = fingerprint(make_rows())
    arrays = {
        f"{split}_{key}": value for split in ("train", "test") for key, value in facts.items()
    }
    check_fingerprint(arrays)
    with pytest.raises(ValueError, match=f"it does not hold .* of the {name.split('_')[0]} rows"):
        check_fingerprint(arrays | {name: array})


def test_a_fingerprint_without_them_is_as_it_was():
    kept = fingerprint(make_rows().with_verified(torch.zeros(4, 2)))
    assert list(kept) == ["names", "classes", "given", "marks", "dates"]
    assert kept["given"].dtype == np.uint8


def test_new_rows_are_refused():
    rows = make_rows()
    kept = fingerprint(rows.subset(torch.tensor([0, 1])))
    with pytest.raises(InputError, match="rows are new: 'c', 'd'"):
        matched(rows, kept, "x.npz")


def test_rows_in_another_order_that_share_a_name_are_refused():
    rows = make_rows(["a", "a", "b", "c"])
    with pytest.raises(InputError, match="some share a name"):
        matched(rows.subset(torch.tensor([3, 0, 1, 2])), fingerprint(rows), "x.npz")


def test_images_are_known_by_size_and_a_new_date_is_told(photos):
    rows, kept = photos, fingerprint(photos)
    path = rows.paths[0]
    os.utime(path, (0, 0))
    with pytest.warns(UserWarning, match="files have another date but their old size"):
        matched(rows, kept, "photos")
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(InputError, match="inputs are not what they were"):
        matched(rows, kept, "photos")


def test_a_fingerprint_survives_its_file(tmp_path):
    rows = make_rows(["é", "犬", "a|b", " x "])
    arrays: dict[str, Any] = fingerprint(rows)
    np.savez(tmp_path / "f.npz", **arrays)
    with np.load(tmp_path / "f.npz") as kept:
        assert matched(rows, dict(kept), "x.npz") is rows
