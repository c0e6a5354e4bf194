"""Arrays that stay in their .npz: what is mapped, what is read, and that both are the same."""

import tracemalloc
import zipfile
from typing import Any

import numpy as np
import pytest
import torch

from balancemix.data import load
from balancemix.data.formats import mapped
from balancemix.data.formats.mapped import write_stored
from balancemix.errors import InputError
from tests.data.formats.contract import feature_rows
from tests.toys import single

FEATURES = np.arange(24, dtype=np.float16).reshape(4, 6)
VIEWS = np.arange(72, dtype=np.float16).reshape(4, 3, 6)
REST: dict[str, Any] = {
    "labels": np.array([[1, 0], [0, 1], [1, 1], [0, 1]], dtype=np.uint8),
    "classes": np.array(["cat", "dog"]),
    "split": np.array(["train", "train", "test", "test"]),
}


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(mapped, "LARGE", 1)


def opened(file, name):
    with zipfile.ZipFile(file) as archive:
        return mapped.map_array(file, archive, name)


def test_what_is_written_is_numpy_s_and_aligned(tmp_path, everything_is_large):
    file = tmp_path / "x.npz"
    write_stored(file, {"views": VIEWS, "features": FEATURES, **REST})
    with np.load(file, allow_pickle=False) as arrays:
        assert list(arrays) == ["views", "features", *REST]
        for name, array in {"views": VIEWS, "features": FEATURES, **REST}.items():
            assert arrays[name].dtype == array.dtype
            assert np.array_equal(arrays[name], array)
    for name in ("views", "features"):
        assert opened(file, name).offset % mapped.ALIGNMENT == 0


@pytest.mark.parametrize("order", ["strided", "Fortran's"])
def test_any_order_in_memory_makes_the_same_bytes(tmp_path, order):
    write_stored(tmp_path / "whole.npz", {"features": FEATURES})
    wide = np.stack([FEATURES, -FEATURES], 1)[:, 0]
    features = wide if order == "strided" else np.asfortranarray(FEATURES)
    assert not features.flags.c_contiguous
    write_stored(tmp_path / "other.npz", {"features": features})
    assert (tmp_path / "whole.npz").read_bytes() == (tmp_path / "other.npz").read_bytes()


def test_a_part_of_a_mapped_array_is_never_read_whole(tmp_path):
    shape = (48, 2, 1 << 20)  # 96 MB of which half is written
    whole = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.uint8, shape)
    tracemalloc.start()
    try:
        write_stored(tmp_path / "x.npz", {"views": whole[:, 1:]})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40e6


def test_mapped_arrays_are_not_changed_in_the_file(tmp_path, everything_is_large):
    file = tmp_path / "x.npz"
    np.savez(file, features=FEATURES)
    before = file.read_bytes()
    array = opened(file, "features")
    assert isinstance(array, np.memmap)
    assert np.array_equal(array, FEATURES)
    array[0] = 7
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "save",
    [
        lambda file: np.savez_compressed(file, features=FEATURES),
        lambda file: np.savez(file, features=np.asfortranarray(FEATURES)),
        lambda file: np.savez(file, features=np.array([["a"]], dtype=object)),
        lambda file: np.savez(file, features=FEATURES.astype("f4")),
    ],
    ids=["compressed", "fortran", "objects", "unaligned"],
)
def test_what_cannot_be_mapped_is_left_to_numpy(tmp_path, everything_is_large, save):
    file = tmp_path / "x.npz"
    save(file)
    assert opened(file, "features") is None


def test_small_arrays_are_read(tmp_path):
    np.savez(tmp_path / "x.npz", features=FEATURES)
    assert opened(tmp_path / "x.npz", "features") is None


@pytest.mark.parametrize("save", [write_stored, lambda f, a: np.savez_compressed(f, **a)])
@pytest.mark.parametrize("shape", [(4, 6), (4, 3, 2, 1)])
def test_rows_are_the_same_whether_mapped_or_read(tmp_path, everything_is_large, save, shape):
    file = tmp_path / "x.npz"
    views = VIEWS.reshape(4, 3, *shape[1:])
    save(file, {"features": FEATURES.reshape(shape), "views": views, **REST})
    data = load(file)
    assert torch.equal(
        feature_rows(data.test).features, torch.from_numpy(FEATURES.reshape(shape)[2:])
    )
    plain = single(data.test.plain[1][0])
    assert torch.equal(plain, torch.from_numpy(FEATURES.reshape(shape)[3]).float())
    views_of_row = data.test.with_views(3, 0)[1][0]
    assert isinstance(views_of_row, list)
    drawn = torch.stack(views_of_row)  # all three, in some order
    order = drawn.flatten(1)[:, 0].argsort()
    assert torch.equal(drawn[order], torch.from_numpy(views[3]).float())
    if save is write_stored:
        train, test = (feature_rows(rows).features for rows in (data.train, data.test))
        # No copy was made.
        assert test.data_ptr() == train.data_ptr() + 2 * FEATURES[0].nbytes


@pytest.mark.parametrize(
    ("views", "message"),
    [
        (VIEWS[:3], "views are 3×3×6, features 4×6; they must be N×V×D"),
        (VIEWS[:, 0], "views are 4×6"),
        (VIEWS[..., :5], "views are 4×3×5"),
        (np.full((4, 1, 6), np.inf), "row 0: views hold NaN or infinity"),
        (np.full((4, 1, 6), "x"), "views are <U1; they must be numbers"),
    ],
)
def test_bad_views_are_refused(tmp_path, views, message):
    np.savez(tmp_path / "x.npz", features=FEATURES, views=views, **REST)
    with pytest.raises(InputError, match=message):
        load(tmp_path / "x.npz")


def test_a_cut_file_is_refused(tmp_path, everything_is_large):
    file = tmp_path / "x.npz"
    write_stored(file, {"features": FEATURES, "views": VIEWS, **REST})
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    with pytest.raises(InputError, match="cannot be read"):
        load(file)
    damaged = whole.replace(b"PK\x03\x04", b"PK\x00\x00", 1)
    file.write_bytes(damaged)
    with pytest.raises(InputError, match="cannot be read"):
        load(file)


def test_an_archive_that_contradicts_itself_is_refused(tmp_path, everything_is_large):
    file = tmp_path / "x.npz"
    write_stored(file, {"features": FEATURES})
    with zipfile.ZipFile(file) as archive:
        assert mapped.map_array(file, archive, "features") is not None
        archive.getinfo("features.npy").compress_size -= 1  # as a flipped byte makes it
        with pytest.raises(zipfile.BadZipFile, match="two sizes of features"):
            mapped.map_array(file, archive, "features")


def test_an_array_of_another_name_than_its_header_says_is_refused(tmp_path, everything_is_large):
    file = tmp_path / "x.npz"
    write_stored(file, {"features": FEATURES, **REST})
    file.write_bytes(file.read_bytes().replace(b"features.npy", b"f\0atures.npy", 1))
    with pytest.raises(InputError, match="cannot be read"):
        load(file)
