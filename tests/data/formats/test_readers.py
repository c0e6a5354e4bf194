import csv
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from balancemix.data import ReadOptions, View, load, read
from balancemix.data.images import ImageRows
from balancemix.data.rows import Rows
from balancemix.data.splits import hold_out, split
from balancemix.errors import InputError
from tests.data.formats.contract import labels_of, refused

GOOD = """\
image,labels,split
a.jpg,cat|dog,train
b.jpg,cat,train
c.jpg,,train
d.png,owl | cat,test
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "images").mkdir()
    for k, name in enumerate(["a.jpg", "b.jpg", "images/c.jpg", "d.png"]):
        Image.new("RGB", (12, 8), (k, k, k)).save(tmp_path / name)
    (tmp_path / "labels.csv").write_text(GOOD, encoding="utf-8")
    return tmp_path


def rewritten(folder: Path, text: str) -> Path:
    (folder / "labels.csv").write_text(text, encoding="utf-8")
    return folder


def with_classes(folder: Path, text: str) -> Path:
    (folder / "classes.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.filterwarnings("ignore:.*no training row has the class 'owl'")
def test_folder(folder):
    data = load(folder, View(size=8))
    assert data.classes == ["cat", "dog", "owl"]
    assert isinstance(data.train, ImageRows)
    assert data.train.names == ["a.jpg", "b.jpg", "c.jpg"]
    assert data.train.given.tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert data.test.given.tolist() == [[1, 0, 1]]
    assert list(data.splits) == ["train", "test"]
    assert data.train.__getitems__([0, 2])[0].shape == (2, 3, 8, 8)
    assert data.train.picture(2).getpixel((0, 0)) == (2, 2, 2)
    assert data.train.truth is None


def test_class_without_positives_in_train_is_a_warning(folder):
    with pytest.warns(UserWarning, match="no training row has the class 'owl'"):
        load(folder)


def test_class_list_gives_the_order(folder):
    with_classes(folder, "owl\ndog\n\ncat\nyak\n")
    with pytest.warns(UserWarning, match="'owl', 'yak'"):
        assert load(folder).classes == ["owl", "dog", "cat", "yak"]


def test_byte_order_mark_blank_lines_and_other_columns(folder):
    text = '\ufeffsplit,image,note,labels\ntrain,a.jpg,"x, y",cat\n\ntest,b.jpg,,dog|dog\n,,,\n'
    with pytest.warns(UserWarning, match="'dog'"):
        data = load(rewritten(folder, text))
    assert (len(data.train), len(data.test)) == (1, 1)
    assert data.test.given.tolist() == [[0, 1]]


@pytest.mark.filterwarnings("ignore:.*no training row")
def test_val_is_scored_on_where_there_is_no_test(folder):
    data = load(rewritten(folder, GOOD.replace("test", "valid")))
    assert data.test is data.splits["valid"]
    both = load(rewritten(folder, GOOD.replace(",,train", ",,val")))
    assert both.test is both.splits["test"]
    assert both.splits["val"].names == ["c.jpg"]


@pytest.mark.filterwarnings("ignore:.*no training row")
def test_random_holdout(folder):
    text = "image,labels\na.jpg,cat\nb.jpg,dog\nc.jpg,cat\nd.png,dog\n"
    rewritten(folder, text)
    data = load(folder, options=ReadOptions(holdout=0.5, seed=1))
    assert sorted(data.train.names + data.test.names) == ["a.jpg", "b.jpg", "c.jpg", "d.png"]
    assert len(data.test) == 2
    assert load(folder, options=ReadOptions(holdout=0.5, seed=1)).test.names == data.test.names
    seeds = [ReadOptions(holdout=0.5, seed=s) for s in range(8)]
    assert len({tuple(load(folder, options=each).test.names) for each in seeds}) > 1
    assert len(load(folder, options=ReadOptions(holdout=0.001)).test) == 1
    assert len(load(folder, options=ReadOptions(holdout=0.999)).train) == 1
    refused(folder, "holdout must be between 0 and 1, not 1.5", holdout=1.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "labels.csv: is empty; begin it with image,labels"),
        ("\n \n", "labels.csv: is empty"),
        ("image,labels\n", "labels.csv: has no rows below its header"),
        (
            "image,of\na.jpg,cat\n",
            "row 1: no column has labels, and fewer than two hold 0 and 1 in",
        ),
        ("image,of\na.jpg,cat\n", "in 'image', 'of'; pass --label-column"),
        ("of,labels\na.jpg,cat\n", "row 1: no column names the images in 'of', 'labels'; name"),
        ("image,image,labels\n", "row 1: one column 'image' expected"),
        ("image,labels\na.jpg,cat,dog\n", "row 2: has 3 cells where the header has 2"),
        ("image,labels\na.jpg,cat\nb.jpg\n", "row 3: has 1 cells where the header has 2"),
        ("image,labels\n,cat\n", "row 2: the image cell is empty"),
        ("image,labels\na.jpg,cat\n\n./a.jpg,dog\n", "row 4: image './a.jpg' is also in row 2"),
        ("image,labels\na.jpg,cat\nb.jpg,cat\n", "at least two classes, has only 'cat'"),
        ("image,labels\na.jpg,\nb.jpg,\n", "at least two classes, has none"),
        (GOOD.replace("cat,train", "cat,trian"), "row 3: unknown split 'trian'; did you mean 'tra"),
        (GOOD.replace("cat,train", "cat,"), "row 3: unknown split ''; use one of: train, test"),
        (GOOD.replace("train", "val"), "no rows to train on"),
        (GOOD.replace("test", "train"), "no rows to score on"),
        ("image,labels\na.jpg,cat|dog\n", "needs at least two rows"),
        (GOOD + "x.jpg,cat,test\n", "1 of 5 images cannot be read: 'x.jpg' (row 6, missing)"),
        (GOOD.replace("b.jpg,cat", 'b.jpg,"cat'), "row 3: not CSV (unexpected end of data)"),
        ('image,labels\na.jpg,"cat"dog\n', "row 2: not CSV (',' expected after '\"')"),
        ('image,labels\na.jpg,"cat\nb.jpg,dog"\n', "row 2: the labels cell has a line break"),
        ('image,labels\n"a.jpg,cat\nb.jpg",dog\n', "row 2: the image cell has a line break"),
        ("image,labels\na.jpg," + "x" * 200_000, "not CSV (field larger than field limit"),
    ],
)
def test_bad_labels_file(folder, text, message):
    refused(rewritten(folder, text), message)


def test_labels_file_missing_or_not_text(folder):
    file = folder / "labels.csv"
    file.write_bytes("image,labels\na.jpg,caté|dog\n".encode("latin-1"))
    refused(folder, "labels.csv: not UTF-8 (byte 22); save it as UTF-8")
    file.unlink()
    refused(folder, "labels.csv: not found")


def test_bad_class_list(folder):
    refused(
        with_classes(folder, "cat\ndog\nowls\n"), "row 5: label 'owl' is not in classes.txt; did"
    )
    refused(
        with_classes(folder, "cat\ndog\ncat\nowl\n"), "classes.txt: class names repeated: 'cat'"
    )
    refused(with_classes(folder, "\n"), "classes.txt: needs at least two classes, has none")
    (folder / "classes.txt").write_bytes(b"cat\n\xff\n")
    refused(folder, "classes.txt: not UTF-8 (byte 4)")


def broken(folder: Path) -> Path:
    whole = (folder / "a.jpg").read_bytes()
    Image.new("RGB", (12, 8)).save(folder / "tail.jpg")
    (folder / "tail.jpg").write_bytes((folder / "tail.jpg").read_bytes() + b"camera notes")
    (folder / "cut.jpg").write_bytes(whole[:-20])
    (folder / "cut.png").write_bytes((folder / "d.png").read_bytes()[:-9])
    (folder / "text.jpg").write_text("<html>not found</html>")
    (folder / "none.jpg").write_bytes(b"")
    names = ["tail.jpg", "cut.jpg", "cut.png", "text.jpg", "none.jpg", "gone.jpg"]
    return rewritten(folder, GOOD + "".join(f"{name},owl,train\n" for name in names))


def test_unreadable_images_are_all_named(folder):
    refused(
        broken(folder),
        "5 of 10 images cannot be read: 'cut.jpg' (row 7, unreadable), "
        "'cut.png' (row 8, unreadable), 'text.jpg' (row 9, unreadable), "
        "'none.jpg' (row 10, unreadable), "
        "'gone.jpg' (row 11, missing); restore them, or pass --skip-bad",
    )


def test_unreadable_images_can_be_left_out(folder):
    with pytest.warns(UserWarning, match=r"5 of 10 images cannot be read: .*; left out"):
        data = load(broken(folder), options=ReadOptions(skip_bad=True))
    assert data.train.names == ["a.jpg", "b.jpg", "c.jpg", "tail.jpg"]
    assert data.train.given[3].tolist() == [0, 0, 1]
    assert data.train.__getitems__([3])[0].shape == (1, 3, 224, 224)


def test_many_missing_images_are_counted(folder):
    gone = "".join(f"gone{k}.jpg,cat,train\n" for k in range(47))
    refused(rewritten(folder, GOOD + gone), "'gone9.jpg' (row 15, missing) and 37 more; restore")
    text = "image,labels\nx.jpg,cat\ny.jpg,dog\n"
    refused(rewritten(folder, text), "2 of 2 images cannot be read", skip_bad=True)


def test_what_is_accepted():
    refused("digit", "data 'digit': not found; did you mean 'digits'? Known: digits")
    refused("/nowhere", "a folder with labels.csv, an .npz file")
    refused(__file__, "unknown format")
    refused("/nowhere/x.npz", "x.npz: no such file")


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="|\r\x00"), max_size=5)


@given(st.lists(st.tuples(WORDS, st.lists(WORDS, max_size=3)), max_size=5))
def test_any_csv_comes_back_or_is_refused(table):
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "labels.csv")
        known = {word.strip() for _, labels in table for word in labels} - {""}
        with_classes(Path(place), "\n".join([*sorted(known), "yes, no", "no; yes"]))
        with file.open("w", encoding="utf-8", newline="") as out:
            csv.writer(out).writerows([("image", "labels")])
            csv.writer(out).writerows((image, "|".join(labels)) for image, labels in table)
        message, source = "", None
        try:
            source = read(file, ReadOptions(labels_only=True))
        except InputError as error:
            message = str(error)
    images = [image.strip() for image, labels in table if (image + "".join(labels)).strip()]
    if source is None:
        assert len(message.splitlines()) == 1
    else:
        assert source.names == images
        cells = [labels for image, labels in table if image.strip()]
        expected = [{word.strip() for word in cell if word.strip()} for cell in cells]
        assert labels_of(source) == expected


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode()))
def test_any_bytes_are_read_or_refused(content):
    message = "ok"
    with tempfile.TemporaryDirectory() as place:
        Path(place, "labels.csv").write_bytes(b"image,labels\n" + content)
        try:
            load(place)
        except InputError as error:
            message = str(error)
    assert len(message.splitlines()) == 1


@given(st.integers(2, 40), st.floats(0.01, 0.99), st.integers(0, 99))
def test_holdout_takes_every_row_once(count, share, seed):
    labels = torch.ones(count, 2, dtype=torch.uint8)
    splits = hold_out("photos", count, share, seed)
    data = split("photos", Rows(labels, ["a", "b"]), splits)
    names = [f"row {i}" for i in range(count)]
    assert sorted(data.train.names + data.test.names) == sorted(names)
    assert abs(len(data.test) - share * count) <= 1
