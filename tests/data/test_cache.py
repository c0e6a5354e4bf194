"""Kept images: the same bits, whatever happens to the file that they are in."""

import os
import pickle
import re

import numpy as np
import pytest
import torch
from PIL import Image

from balancemix.data import ReadOptions, View, load
from balancemix.data.images import ImageRows
from balancemix.data.loading import Loader
from balancemix.errors import InputError
from tests.data.kept import BATCHES, batches, same, where
from tests.toys import single

CLASSES = ["cat", "dog"]


@pytest.mark.parametrize("kind", ["memory", "disk", "off"])
@pytest.mark.parametrize("views", [0, 1, 2])
def test_a_kept_image_gives_the_same_bits(photos, tmp_path, kind, views):
    kept, expected = photos.cached(kind, tmp_path / "kept"), batches(photos, views)
    for _ in range(3):
        assert same(batches(kept, views), expected)


def test_images_of_a_folder_with_a_long_name_are_kept(tmp_path):
    folder = tmp_path / ("é" * 125)
    folder.mkdir()
    Image.new("RGB", (4, 4)).save(folder / "a.png")
    rows = ImageRows([folder / "a.png"], torch.tensor([[1, 0]]), CLASSES, view=View(size=8))
    kept = rows.cached("disk", tmp_path / "kept")
    assert torch.equal(single(kept[0][0]), single(rows[0][0]))
    assert len(list((tmp_path / "kept").iterdir())) == 1


@pytest.mark.parametrize(("kind", "times"), [("memory", 1), ("disk", 1), ("off", 2)])
def test_files_are_decoded_once(photos, tmp_path, kind, times, decoded):
    kept = photos.cached(kind, tmp_path / "kept")
    index = torch.tensor([5, 2, 3])
    kept.with_views(2, 0).__getitems__([2, 3, 5])
    expected = photos.subset(index).__getitems__([0, 1, 2])[0]
    decoded.clear()
    assert torch.equal(kept.subset(index).__getitems__([0, 1, 2])[0], expected)
    assert decoded == ["5.jpg", "2.jpg", "3.jpg"] * (times - 1)


@pytest.mark.parametrize("kind", ["memory", "disk"])
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_loading_processes_fill_one_store(photos, tmp_path, kind, decoded):
    kept, expected = photos.cached(kind, tmp_path / "kept").with_views(2, 7), batches(photos)
    for workers in (1, 2):
        assert same([x for x, _ in Loader(kept, BATCHES, workers)], expected)
    decoded.clear()
    assert same(batches(kept), expected)
    assert decoded == []


def test_a_later_run_finds_what_is_on_the_disk(photos, tmp_path, decoded):
    expected = batches(photos.cached("disk", tmp_path / "kept"))
    decoded.clear()
    later = photos.cached("disk", tmp_path / "kept")
    assert same(batches(later), expected)
    assert same(batches(pickle.loads(pickle.dumps(later))), expected)  # as spawned processes do
    assert decoded == []
    (file,) = (tmp_path / "kept").iterdir()
    assert re.fullmatch(r"photos-16-[0-9a-f]{16}", file.name)
    batches(
        ImageRows(photos.paths, photos.given, CLASSES, view=View(size=8)).cached(
            "disk", file.parent
        )
    )
    assert len(list(file.parent.iterdir())) == 2


def test_a_changed_file_is_decoded_again(photos, tmp_path, decoded):
    batches(photos.cached("disk", tmp_path / "kept"))
    Image.new("RGB", (30, 30), (200, 0, 0)).save(photos.paths[2])
    decoded.clear()
    later = photos.cached("disk", tmp_path / "kept")
    assert later.store.image(2).getpixel((3, 3))[0] > 150
    assert same(batches(later), batches(photos))
    assert decoded.count("2.jpg") == 3  # once for the store, and twice where there is none
    status = photos.paths[3].stat()
    os.utime(photos.paths[3], ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    decoded.clear()
    batches(photos.cached("disk", tmp_path / "kept"))
    assert decoded == ["3.jpg"]


@pytest.mark.parametrize("harm", ["torn", "cut", "empty", "other bytes"])
def test_a_damaged_file_is_mended(photos, tmp_path, harm, decoded):
    expected = batches(photos.cached("disk", tmp_path / "kept"))
    (file,) = (tmp_path / "kept").iterdir()
    content, record = file.read_bytes(), 16 * 16 * 3 + 4
    assert len(content) == 6 * record
    half = 2 * record + record // 2
    file.write_bytes(
        {
            "torn": content[:half] + bytes(record - record // 2) + content[3 * record :],
            "cut": content[:half],
            "empty": b"",
            "other bytes": b"?" * len(content),
        }[harm]
    )
    decoded.clear()
    later = photos.cached("disk", tmp_path / "kept")
    assert same(batches(later), expected)
    made_again = {"torn": 1, "cut": 4, "empty": 6, "other bytes": 6}
    assert len(decoded) == made_again[harm]
    assert file.read_bytes() == content


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_a_black_image_is_not_what_was_never_written(tmp_path, kind, decoded):
    path = tmp_path / "black.png"
    Image.new("RGB", (9, 9)).save(path)
    rows = ImageRows([path] * 3, torch.zeros(3, 2, dtype=torch.uint8), CLASSES)
    store = rows.cached(kind, tmp_path / "kept").store
    for i in (2, 1, 2, 1):
        assert not np.asarray(store.image(i)).any()
    assert decoded == ["black.png"] * 2


def test_a_torn_record_in_memory_is_mended(photos, decoded):
    kept = photos.cached("memory")
    expected = batches(kept)
    record = 16 * 16 * 3 + 4
    os.pwrite(kept.store.opened, bytes(100), 3 * record + 5)
    decoded.clear()
    assert same(batches(kept), expected)
    assert decoded == ["3.jpg"]


def test_a_system_that_cannot_keep_images(photos, monkeypatch):
    monkeypatch.delattr(os, "pread")
    assert where(photos.cached("auto").store) == "off"
    for kind in ("memory", "disk"):
        with pytest.raises(InputError, match=r"cannot keep images; pass --cache off$"):
            photos.cached(kind)


@pytest.mark.parametrize("kind", ["memory", "disk"])
@pytest.mark.parametrize("room", [0, 100, 5000])
def test_where_it_is_full_costs_time_only(photos, tmp_path, monkeypatch, kind, room):
    written = os.pwrite

    def write(file, content, place):
        if place >= room:
            raise OSError(28, "No space left on device")
        return written(file, content[: room - place], place)

    kept, expected = photos.cached(kind, tmp_path / "kept"), batches(photos)
    monkeypatch.setattr(os, "pwrite", write)
    for _ in range(2):
        assert same(batches(kept), expected)


def test_what_is_refused(photos, tmp_path):
    with pytest.raises(InputError, match="cache: unknown 'disc'; did you mean 'disk'"):
        photos.cached("disc")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot keep images .*pass --cache memory or off"):
        photos.cached("disk", tmp_path / "file")


def test_splits_share_a_store_in_the_users_cache(tmp_path, photos, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    lines = [f"{i}.jpg,{CLASSES[i % 2]},{'train' if i < 4 else 'test'}" for i in range(6)]
    folder = photos.paths[0].parent
    (folder / "labels.csv").write_text("image,labels,split\n" + "\n".join(lines))
    splits = load(folder, View(size=16), ReadOptions(cache="disk"))
    train, test = splits.train, splits.test
    assert isinstance(train, ImageRows)
    assert isinstance(test, ImageRows)
    assert train.store is test.store
    assert torch.equal(single(splits.test[1][0]), photos[5][0])
    assert [file.parent for file in (tmp_path / "home").rglob("photos-16-*")] == [
        tmp_path / "home" / "balancemix" / "images"
    ]
    plain = load(folder, View(size=16)).train
    assert isinstance(plain, ImageRows)
    assert where(plain.store) == "off"
