import os
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from balancemix.data import ReadOptions, load, read
from balancemix.data.features import FeatureRows
from balancemix.data.formats import npz
from balancemix.errors import InputError
from tests.data.formats.contract import feature_rows

ARRAYS = {
    "features": np.arange(12, dtype=np.float16).reshape(4, 3),
    "labels": np.array([[1, 0], [0, 1], [1, 1], [0, 1]]),
    "classes": np.array(["cat", "dog"]),
    "split": np.array(["train", "train", "test", "val"]),
    "images": np.array(["a.png", "b.png", "c.png", "d.png"]),
    "truth": np.array([[1, 0], [0, 1], [1, 1], [1, 1]], dtype=bool),
}


def refused(file: Path, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load(file)
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def saved(place: Path, **changes) -> Path:
    arrays = {k: v for k, v in (ARRAYS | changes).items() if v is not None}
    np.savez(place / "data.npz", **arrays)
    return place / "data.npz"


def test_npz(tmp_path):
    Image.new("RGB", (3, 2)).save(tmp_path / "b.png")
    data = load(saved(tmp_path))
    assert isinstance(data.train, FeatureRows)
    assert data.train.features.dtype == torch.float16
    assert data.classes == ["cat", "dog"]
    assert data.train.names == ["a.png", "b.png"]
    assert data.test.given.tolist() == [[1, 1]]
    assert data.splits["val"].truth.tolist() == [[1, 1]]
    assert data.splits["val"].given.tolist() == [[0, 1]]
    assert data.train.picture(0) is None
    assert data.train.picture(1).size == (3, 2)
    assert data.train.__getitems__([1])[0].tolist() == [[3, 4, 5]]


@pytest.mark.filterwarnings("ignore:.*no training row")
def test_npz_of_features_and_labels_alone(tmp_path):
    plain = dict.fromkeys(("classes", "split", "images", "truth"))
    data = load(
        saved(tmp_path, **plain, labels=ARRAYS["labels"].astype(float)),
        options=ReadOptions(holdout=0.5),
    )
    assert data.classes == ["class 0", "class 1"]
    assert (len(data.train), len(data.test)) == (2, 2)
    assert data.train.given.dtype == torch.int8
    assert all(name.startswith("row ") for name in data.train.names)
    assert data.train.truth is None


@pytest.mark.parametrize("kind", [np.float64, np.int32, np.uint8])
def test_npz_features_of_other_types(tmp_path, kind):
    data = load(saved(tmp_path, features=ARRAYS["features"].astype(kind)))
    assert feature_rows(data.train).features.dtype == torch.float32


def changed(name: str, place: tuple[int, ...], value) -> dict[str, np.ndarray]:
    array = ARRAYS[name].astype(type(value)) if name != "split" else ARRAYS[name].copy()
    array[place] = value
    return {name: array}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": None}, "no array 'features', only labels, classes"),
        ({"labels": None}, "no array 'labels'"),
        ({"labels": ARRAYS["labels"][:3]}, "labels are 3×2, features 4×3"),
        ({"labels": ARRAYS["labels"][:, 0]}, "labels are 4, features 4×3"),
        ({"truth": ARRAYS["truth"][:, :1]}, "truth is 4×1, labels are 4×2"),
        ({"features": np.zeros(4)}, "features are 4; they must be N×D"),
        ({"features": np.zeros((0, 3)), "labels": np.zeros((0, 2))}, "features are 0×3"),
        ({"features": np.full((4, 3), "x")}, "features are <U1; they must be numbers"),
        (changed("features", (2, 1), float("nan")), "row 2: features hold NaN or infinity"),
        (changed("features", (1, 0), float("inf")), "row 1: features hold NaN or infinity"),
        (changed("features", (3, 0), 1e300), "row 3: features hold NaN or infinity"),
        (
            changed("labels", (2, 1), -1),
            "row 2, class 'dog': labels hold -1; say what it means with --minus-one absent or",
        ),
        (
            changed("labels", (0, 0), 0.5),
            "row 0, class 'cat': labels hold 0.5; shares of votes and other soft labels are not",
        ),
        (changed("labels", (0, 0), float("inf")), "row 0, class 'cat': labels hold inf; they must"),
        (changed("labels", (0, 0), -2), "row 0, class 'cat': labels hold -2; they must be 0 or 1"),
        ({"minus_one": np.array("maybe")}, "minus_one must be the text 'absent' or 'unknown'"),
        ({"minus_one": np.array(["unknown"])}, "minus_one must be the text 'absent' or 'unknown'"),
        ({"minus_one": np.array(b"unknown")}, "minus_one must be the text 'absent' or 'unknown'"),
        ({"verified": ARRAYS["truth"][:3]}, "verified must be 4×2 of 0 and 1, like labels"),
        ({"verified": ARRAYS["truth"].astype(str)}, "verified must be 4×2 of 0 and 1, like"),
        ({"verified": ARRAYS["truth"] * 2}, "row 0, class 'cat': verified holds 2; it must be 0"),
        (changed("truth", (1, 1), 2), "row 1, class 'dog': truth hold 2"),
        (changed("split", (1,), "tests"), "row 1: unknown split 'tests'; did you mean 'test'"),
        ({"split": ARRAYS["split"][:2]}, "split are 2; 4 names are needed"),
        ({"split": np.array(["test"] * 4)}, "no rows to train on"),
        ({"classes": np.array(["cat", "cat"])}, "class names repeated: 'cat'"),
        ({"classes": np.array(["cat"])}, "classes are 1; 2 names are needed"),
        ({"labels": ARRAYS["labels"][:, :1], "classes": None}, "at least two classes"),
        ({"images": np.array(["a", "b", "a", "c"])}, "images repeated: 'a'"),
        ({"labels": ARRAYS["labels"].astype(str)}, "labels are <U21; they must be 0 or 1"),
        ({"labels": ARRAYS["labels"].astype(complex)}, "labels are complex128; they must be 0 or"),
        ({"labels": np.zeros((4, 2), "M8[s]")}, "labels are datetime64[s]; they must be 0 or 1"),
        ({"labels": np.zeros((4, 2), "i1,i1")}, "labels are [('f0', 'i1'), ('f1', 'i1')]; they"),
        ({"labels": np.array("x")}, "labels are a single value, features 4×3"),
        ({"truth": ARRAYS["truth"].astype(str)}, "truth are <U5; they must be 0 or 1"),
        ({"classes": np.array(["cat", "\ud800"])}, "class '\\ud800' is not UTF-8; rename it"),
        ({"classes": np.array([b"cat", b"d\xe9"])}, "class 'd\\udce9' is not UTF-8; rename it"),
        ({"classes": np.array(["cat", "d\0g"])}, "class 'd\\x00g' holds a NUL; rename it"),
        ({"images": np.array(["a", "b", "c", "\ud800"])}, "row 3: name '\\ud800' is not UTF-8"),
        ({"images": np.array(["a", "b", "c", "d\0d"])}, "row 3: name 'd\\x00d' holds a NUL"),
        ({"classes": np.array([9, 1 << 30], "u4").view("U1")}, "classes hold what is no text"),
        ({"classes": np.array(["cat", None], dtype=object)}, "allow_pickle=False); write it with"),
    ],
)
def test_bad_npz(tmp_path, changes, message):
    refused(saved(tmp_path, **changes), message)


@pytest.mark.parametrize("kind", [float, bool, "datetime64[s]", "V4"])
@pytest.mark.parametrize("name", ["classes", "split", "images"])
def test_names_that_are_no_text_are_refused(tmp_path, name, kind):
    array = np.zeros(2 if name == "classes" else 4, kind)
    message = f"{name} are {array.dtype}; write them as text (dtype=str)"
    refused(saved(tmp_path, **{name: array}), message)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_array_that_is_there_twice_is_refused(tmp_path):
    file = saved(tmp_path)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("labels.npy", archive.read("labels.npy"))
    refused(file, "it holds an array twice")


def test_a_member_that_is_no_array_is_refused(tmp_path):
    file = saved(tmp_path, labels=None)
    for name in ("labels", "labels.npy"):
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(name, b"text")
        refused(file, "data.npz: cannot be read (labels is not an array)")


def test_rows_may_have_names_that_no_file_can_have(tmp_path):
    names = ["x" * 300, "y" * 300 + "/a.png", os.fsdecode(b"caf\xe9.png"), "a\nb"]
    data = load(saved(tmp_path, images=np.array(names)))
    assert data.train.names == names[:2]
    assert [data.train.picture(i) for i in range(2)] == [None, None]
    by_bytes = np.array([name.encode("utf-8", "surrogateescape") for name in names])
    assert load(saved(tmp_path, images=by_bytes)).test.names == names[2:3]


def test_npz_that_is_none(tmp_path):
    file = saved(tmp_path)
    whole = file.read_bytes()
    for content in (b"", b"nothing", whole[:200], whole[:-30]):
        file.write_bytes(content)
        refused(file, "data.npz: cannot be read")
    with file.open("wb") as out:
        np.save(out, ARRAYS["features"])
    refused(file, "data.npz: cannot be read")


@given(st.binary(max_size=40), st.integers(0, 900))
def test_a_damaged_npz_is_read_or_refused(noise, place):
    message = "ok"
    with tempfile.TemporaryDirectory() as folder:
        file = saved(Path(folder))
        whole = file.read_bytes()
        file.write_bytes(whole[:place] + noise + whole[place + len(noise) :])
        try:
            load(file)
        except InputError as error:
            message = str(error)
    assert len(message.splitlines()) == 1


def pictures(path: Path, **options) -> list[bool]:
    rows = load(path, options=ReadOptions(**options)).train
    return [rows.picture(i) is not None for i in range(len(rows))]


def test_pictures_are_found_in_the_folder_that_the_file_names(tmp_path):
    for folder in ("photos", "moved"):
        (tmp_path / folder / "images").mkdir(parents=True)
    Image.new("RGB", (3, 2)).save(tmp_path / "photos" / "a.png")
    Image.new("RGB", (3, 2)).save(tmp_path / "photos" / "images" / "b.png")
    (tmp_path / "out").mkdir()
    for root in ("../photos", str(tmp_path / "photos")):
        file = saved(tmp_path / "out", root=np.array(root))
        assert pictures(file) == [True, True]
        assert pictures(file, images=tmp_path / "moved") == [False, False]
    (tmp_path / "out").rename(tmp_path / "photos" / "out")
    file = saved(tmp_path / "photos" / "out", root=np.array("../photos"))
    assert pictures(file) == [False, False]
    assert pictures(file, images=tmp_path / "photos") == [True, True]
    with pytest.raises(InputError, match=r"--images .*nowhere: is not a folder"):
        load(file, options=ReadOptions(images=tmp_path / "nowhere"))


def test_a_root_through_a_link_is_relative_to_where_the_file_is(tmp_path):
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (3, 2)).save(tmp_path / "photos" / "a.png")
    (tmp_path / "far" / "out").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "out")
    stored = npz.root_for(tmp_path / "link" / "x.npz", tmp_path / "photos")
    assert stored == "../../photos"
    assert pictures(saved(tmp_path / "link", root=np.array(stored))) == [True, False]


@pytest.mark.parametrize(
    "root", [np.array(3), np.array(["a", "b"]), np.array("a\0b"), np.array("x" * 5000),
             np.array(b"photos"), np.frombuffer(b"\xff" * 4, "<U1").reshape(())]
)  # fmt: skip
def test_an_odd_root_is_no_root(tmp_path, root):
    Image.new("RGB", (3, 2)).save(tmp_path / "a.png")
    file = saved(tmp_path, root=root)
    assert pictures(file) == [True, False]
    source = read(file)
    npz.write(source, source.given, tmp_path / "again.npz")
    assert pictures(tmp_path / "again.npz") == [True, False]


def test_a_file_written_elsewhere_still_finds_its_pictures(tmp_path):
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (3, 2)).save(tmp_path / "photos" / "a.png")
    source = read(saved(tmp_path, root=np.array("photos")))
    (tmp_path / "deep" / "down").mkdir(parents=True)
    out = tmp_path / "deep" / "down" / "x.npz"
    npz.write(source, source.given, out)
    assert pictures(out) == [True, False]
