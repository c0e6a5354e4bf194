"""What the numbers of an .npz's labels mean, and that they are written as they were read."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from balancemix.data import ReadOptions, load, read
from balancemix.data.formats import npz
from balancemix.errors import InputError
from balancemix.options import Meaning
from tests.data.formats.test_npz import changed, saved


def test_what_minus_one_means_is_said_by_the_file_or_the_reader(tmp_path):
    labels = np.array([[1, -1], [-1, 1], [1, 0], [0, 1]], np.int8)
    by_word: dict[Meaning, list[list[int]]] = {
        "absent": [[1, 0], [0, 1], [1, 0], [0, 1]],
        "unknown": labels.tolist(),
    }
    for word, expected in by_word.items():
        option = ReadOptions(minus_one=word)
        source = read(saved(tmp_path, labels=labels), option)
        assert source.given.tolist() == expected
        assert source.recognised[1:] == [f"−1 is {word} (--minus-one)"]
        file = saved(tmp_path, labels=labels, minus_one=np.array(word))
        assert read(file).given.tolist() == read(file, option).given.tolist() == expected
        assert read(file).recognised[1:] == [f"−1 is {word} (as the file says in minus_one)"]
        other = ReadOptions(minus_one=next(each for each in by_word if each != word))
        with pytest.raises(InputError, match=f"says that −1 is {word}; leave the option out"):
            read(file, other)
    whole = changed("labels", (0, 1), float("nan"))["labels"]
    source = read(saved(tmp_path, labels=whole))
    assert source.given.tolist()[0] == [1, -1]
    assert "NaN is unknown" in source.recognised[1]
    assert len(read(saved(tmp_path)).recognised) == 1
    truth = changed("truth", (0, 1), float("nan"))
    assert read(saved(tmp_path, **truth)).truth.tolist()[0] == [1, -1]


def test_verified_labels_are_read(tmp_path):
    verified = np.array([[1, 1], [0, 1], [0, 0], [0, 0]])
    labels = changed("labels", (0, 1), float("nan"))
    for kind in (np.uint8, bool, float):
        data = load(saved(tmp_path, **labels, verified=verified.astype(kind)))
        assert data.source.verified.tolist() == (verified > 0).tolist()
        assert data.train.verified.tolist() == [[True, False], [False, True]]


SEEDS = st.integers(0, 2**31)
KINDS = st.sampled_from(["u1", "i1", "i8", "f4", "f8", "?"])


@st.composite
def label_files(draw) -> dict[str, np.ndarray]:
    """The arrays that say what the labels are, as anybody might write them."""
    rng, kind = np.random.default_rng(draw(SEEDS)), np.dtype(draw(KINDS))
    labels = rng.integers(0, 2, (4, 2)).astype(kind)
    arrays = {"labels": labels, "truth": None}
    if kind.kind == "f" and draw(st.booleans()):
        labels[rng.random((4, 2)) < 0.4] = np.nan
    if kind.kind in "if" and draw(st.booleans()):
        labels[rng.random((4, 2)) < 0.4] = -1
        arrays["minus_one"] = np.array(draw(st.sampled_from(["absent", "unknown"])))
    if draw(st.booleans()):
        arrays["verified"] = rng.integers(0, 2, (4, 2)).astype(draw(KINDS))
    if draw(st.booleans()):
        arrays["truth"] = rng.choice([0, 1, -1, np.nan], (4, 2))
    return arrays


@pytest.mark.filterwarnings("ignore:.*no training row")
@given(label_files(), SEEDS, st.booleans())
def test_read_and_write_change_the_labels_that_changed_and_nothing_else(arrays, seed, many):
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        file, out = saved(Path(folder), **arrays), Path(folder) / "out.npz"
        source = read(file)
        npz.write(source, source.given, out)
        with np.load(file) as before, np.load(out) as after:
            assert list(before) == list(after)
            for name in before:
                assert before[name].dtype == after[name].dtype
                assert before[name].tobytes() == after[name].tobytes()
        given = torch.from_numpy(rng.integers(-1, 2, (4, 2)).astype(np.int8))
        if not many:
            other, given = given, source.given.clone()
            given[seed % 4, 0] = other[seed % 4, 0]
        npz.write(source, given, out)
        again = read(out)
        assert torch.equal(again.given, given)
        for name in ("truth", "verified"):
            value = getattr(source, name)
            assert (value is None) == (getattr(again, name) is None)
            assert value is None or torch.equal(value, getattr(again, name))
        with np.load(file) as before, np.load(out) as after:
            assert set(after) - set(before) <= {"minus_one"}
            for name in set(before) - {"labels", "minus_one"}:
                assert before[name].tobytes() == after[name].tobytes()
            if before["labels"].dtype == after["labels"].dtype and not (given < 0).any():
                same = (given == source.given).numpy()
                assert np.array_equal(before["labels"][same], after["labels"][same], equal_nan=True)


def test_what_is_written_with_unknown_and_verified_labels_is_read_without_a_flag(tmp_path):
    for source in (read(saved(tmp_path)), read("digits")):
        given = source.given.clone()
        given[0, 0] = -1
        verified = given == 1
        npz.write(replace(source, verified=verified), given, tmp_path / "out.npz")
        again = read(tmp_path / "out.npz")
        assert torch.equal(again.given, given)
        assert torch.equal(again.verified, verified)
