import os
import pickle
import re
import shutil
from itertools import chain

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from balancemix.data import cache, images, load
from balancemix.data.dataset import ImageRows
from balancemix.errors import InputError

CLASSES = ["cat", "dog"]
BATCHES = [[0, 4], [5, 1], [2, 2], [3]]


@pytest.fixture
def photos(tmp_path) -> ImageRows:
    generator = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    paths = [tmp_path / "photos" / f"{i}.jpg" for i in range(6)]
    for path in paths:
        noise = generator.integers(0, 256, (5, 9, 3), dtype=np.uint8)
        Image.fromarray(noise).resize((60, 40)).save(path)
    return ImageRows(paths, torch.zeros(6, 2, dtype=torch.uint8), CLASSES, size=16)


@pytest.fixture
def decoded(monkeypatch) -> list:
    """Record which files are decoded."""
    files, original = [], images.decode
    monkeypatch.setattr(images, "decode", lambda path: files.append(path.name) or original(path))
    return files


def batches(rows, views=2):
    rows = rows.with_views(views, 7)
    drawn = [rows.__getitems__(index)[0] for index in BATCHES]
    return [x if isinstance(x, list) else [x] for x in drawn]


def same(a, b) -> bool:
    pairs = zip(chain.from_iterable(a), chain.from_iterable(b), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)


@pytest.mark.parametrize("kind", ["memory", "disk", "off"])
@pytest.mark.parametrize("views", [0, 1, 2])
def test_a_kept_image_gives_the_same_bits(photos, tmp_path, kind, views):
    kept, expected = photos.cached(kind, tmp_path / "kept"), batches(photos, views)
    for _ in range(3):
        assert same(batches(kept, views), expected)


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
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_loading_processes_fill_one_store(photos, tmp_path, kind, decoded):
    kept, expected = photos.cached(kind, tmp_path / "kept").with_views(2, 7), batches(photos)
    for workers in (1, 2):
        loader = DataLoader(
            kept, batch_sampler=BATCHES, num_workers=workers, collate_fn=kept.collate
        )
        assert same([x for x, _ in loader], expected)
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
    batches(ImageRows(photos.paths, photos.labels, CLASSES, size=8).cached("disk", file.parent))
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


def test_a_full_disk_costs_time_only(photos, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    kept, expected = photos.cached("disk", tmp_path / "kept"), batches(photos)
    monkeypatch.setattr(os, "pwrite", refuse)
    assert same(batches(kept), expected)


def test_auto_takes_what_there_is_room_for(photos, tmp_path, monkeypatch):
    def chosen():
        return type(photos.cached("auto", tmp_path / "a" / "b").store)

    needed = photos.store.bytes()
    assert needed == 6 * 16 * 16 * 3
    monkeypatch.setattr(cache, "available_memory", lambda: 4 * needed)
    assert chosen() is cache.InMemory
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert chosen() is cache.OnDisk
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, needed))
    assert chosen() is cache.Store


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
    splits = load(folder, size=16, cache="disk")
    assert splits.train.store is splits.test.store
    assert torch.equal(splits.test[1][0], photos[5][0])
    assert [file.parent for file in (tmp_path / "home").rglob("photos-16-*")] == [
        tmp_path / "home" / "balancemix" / "images"
    ]
    assert type(load(folder, size=16).train.store) is cache.Store
