"""Names of images and classes: what is written is read back the same, or refused."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from balancemix.data import ReadOptions
from balancemix.data.formats import npz, table, voc
from balancemix.data.source import Source
from balancemix.errors import InputError
from tests.data.formats.contract import labels_of
from tests.data.formats.test_voc import make as make_voc

ANY = st.text(st.characters(exclude_categories=()), max_size=6)
ODD = st.text(
    st.sampled_from(list(" |,\"'\r\n\t\0=@a\x1c\x85\u2028\ufeff\ud800\udce9")), max_size=4
)


def source_of(names, classes, labels) -> Source:
    return Source(Path("odd"), list(classes), list(names), torch.tensor(labels, dtype=torch.int8))


def refusal_of(call) -> str:
    try:
        call()
    except InputError as error:
        return str(error)
    return ""


@given(
    st.lists(ANY | ODD, min_size=1, max_size=3, unique_by=os.path.normpath),
    st.lists(ANY | ODD, min_size=2, max_size=3, unique=True),
)
@example(["a.png"], ["cat", "a|b"])
@example(["a\rb.png"], ["cat", "dog"])
@example(["a.png"], ["cat", " dog"])
def test_a_table_is_read_back_the_same_or_refused(names, classes):
    source = source_of(names, classes, [[1] * len(classes)] * len(names))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "labels.csv"
        refusal = refusal_of(lambda: table.write(source, source.given, out))
        if refusal:
            assert refusal.startswith(f"{out}: ")
            assert not out.exists()
            return
        again = table.read(out, ReadOptions(labels_only=True))
        assert again.names == names
        assert labels_of(again) == [set(classes)] * len(names)
        assert again.classes == sorted(classes)


@pytest.mark.parametrize(
    ("names", "classes", "message"),
    [
        (
            ["a"],
            ["cat", "a|b"],
            "x.csv: class 'a|b' holds a |, which labels.csv cannot keep; rename it",
        ),
        (["a"], ["cat", "a\nb"], r"x.csv: class 'a\nb' holds a line break, which labels.csv"),
        (["a"], ["cat", "a\rb"], r"x.csv: class 'a\rb' holds a line break, which labels.csv"),
        (["a"], ["cat", " dog"], "x.csv: class ' dog' begins or ends with a blank, which labels"),
        (["a"], ["cat", "\xa0"], r"x.csv: class '\xa0' begins or ends with a blank, which labels"),
        (["a"], ["cat", ""], "x.csv: class '' is empty, which labels.csv cannot"),
        (["a"], ["cat", "\ud800"], r"x.csv: class '\ud800' is not UTF-8; rename it"),
        (["a\n"], ["cat", "dog"], r"x.csv: image 'a\n' begins or ends with a blank, which labels"),
        (["a\nb"], ["cat", "dog"], r"x.csv: image 'a\nb' holds a line break, which labels.csv"),
        (["caf\udce9"], ["cat", "dog"], r"x.csv: image 'caf\udce9' is not UTF-8; rename it"),
    ],
)
def test_a_name_that_a_table_would_change_is_refused(tmp_path, names, classes, message):
    with pytest.raises(InputError) as caught:
        table.write(source_of(names, classes, [[1, 0]]), torch.tensor([[1, 1]]), tmp_path / "x.csv")
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_list_of_classes_with_a_bar_is_refused(tmp_path):
    (tmp_path / "labels.csv").write_text("image,labels\na.png,cat\n")
    (tmp_path / "classes.txt").write_text("cat\na|b\n")
    with pytest.raises(InputError, match=r"classes\.txt: class 'a\|b' holds a \|, which separates"):
        table.read(tmp_path, ReadOptions(labels_only=True))


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + "/a.png", "a\0b.png", "é" * 200])
def test_an_image_with_a_name_that_no_file_can_have_is_missing(tmp_path, name):
    (tmp_path / "labels.csv").write_text(f"image,labels\n{name},cat\nb,dog\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"labels\.csv: 2 of 2 images cannot be read: .*missing"):
        table.read(tmp_path, ReadOptions())


def test_a_class_of_voc_that_is_not_utf8_is_refused(tmp_path):
    make_voc(tmp_path, "2007")
    try:
        for file in tmp_path.rglob("aeroplane_*.txt"):
            file.rename(file.with_name(file.name.replace("aero", os.fsdecode(b"\xe9"))))
    except OSError:
        pytest.skip("this file system has only names in UTF-8")
    with pytest.raises(InputError, match=r"class '\\udce9plane' is not UTF-8; rename it"):
        voc.read(tmp_path, ReadOptions())


@given(st.lists(ANY | ODD, min_size=2, max_size=3, unique=True))
def test_an_npz_is_read_back_the_same_or_refused(classes):
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "x.npz", Path(folder) / "again.npz"
        labels = np.eye(2, len(classes), dtype=np.uint8)
        np.savez(file, features=np.eye(2), labels=labels, classes=np.array(classes))
        refusal = refusal_of(lambda: npz.read(file, ReadOptions()))
        if refusal:
            assert refusal.startswith(f"{file}: class")
            return
        source = npz.read(file, ReadOptions())
        npz.write(source, 1 - source.given, out)
        again = npz.read(out, ReadOptions())
    assert again.classes == source.classes
    assert [name.rstrip("\0") for name in classes] == source.classes  # NumPy drops these
    assert torch.equal(again.given, 1 - source.given)
