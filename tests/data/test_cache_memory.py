"""Images kept in memory: how much is taken, who shares it, and where there is room."""

import copy
import multiprocessing
import os
import pickle
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from balancemix.data import cache, images
from balancemix.data.cache import room_in_groups
from balancemix.data.loading import Loader
from balancemix.errors import InputError
from tests.data.kept import BATCHES, batches, same, where

linux = pytest.mark.skipif(sys.platform != "linux", reason="counts what Linux alone counts")


def shared_memory() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Shmem:"))


@linux
def test_memory_is_taken_by_decoded_images_only(photos):
    before = shared_memory()  # of the whole machine, so much is asked for and some growth let pass
    store = cache.open_store("memory", photos.paths[:1] * 100, 1024, images.read)
    assert isinstance(store, cache.Kept)
    assert store.bytes() == 100 * 3 * 2**20
    assert shared_memory() - before < store.bytes() // 2
    for i in (99, 3):
        store.image(i)
        store.image(i)
    assert 2 * 3 * 2**20 <= os.fstat(store.opened).st_blocks * 512 < 3 * 3 * 2**20


@linux
def test_memory_is_given_back(photos):
    before, kept = os.listdir("/proc/self/fd"), photos.cached("memory")
    assert len(os.listdir("/proc/self/fd")) == len(before) + 1
    del kept
    assert os.listdir("/proc/self/fd") == before


def fill(kept, rows):
    for i in rows:
        kept.store.image(i)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_process_that_is_not_forked_shares_the_memory(photos, method, decoded):
    kept = photos.cached("memory")
    kept.store.image(1)
    process = multiprocessing.get_context(method).Process(target=fill, args=(kept, [0, 4]))
    process.start()
    process.join()
    assert process.exitcode == 0
    expected = [photos.store.image(i).tobytes() for i in (0, 1, 4)]
    decoded.clear()
    assert [kept.store.image(i).tobytes() for i in (0, 1, 4)] == expected
    assert decoded == []


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda rows: pickle.loads(pickle.dumps(rows))])
def test_a_copy_has_memory_of_its_own(photos, copied):
    kept = photos.cached("memory")
    expected = batches(kept)
    other = copied(kept)
    del kept
    assert same(batches(other), expected)


def test_memory_that_is_not_there_is_refused(photos, tmp_path, monkeypatch):
    needed = photos.store.bytes()
    monkeypatch.setattr(cache, "available_memory", lambda: needed - 1)
    with pytest.raises(InputError, match=r"^cache: .* are free; pass --cache disk or off$"):
        photos.cached("memory")
    assert where(photos.cached("auto", tmp_path / "kept").store) == "disk"
    monkeypatch.setattr(cache, "available_memory", lambda: 2 * needed - 1)
    photos.cached("memory")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with pytest.raises(InputError, match="2 processes"):
        photos.cached("memory")


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_systems_without_files_in_memory_share_one_without_a_name(photos, monkeypatch, decoded):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    kept, expected = photos.cached("memory"), batches(photos)
    assert same(batches(kept), expected)
    decoded.clear()
    assert same(batches(kept), expected)
    assert decoded == []
    assert same([x for x, _ in Loader(kept.with_views(2, 7), BATCHES, 1)], expected)

    def refuse():
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(InputError, match=r"No space left .*; pass --cache disk or off$"):
        photos.cached("memory")


@pytest.mark.parametrize(
    ("groups", "files", "room"),
    [
        ("0::/\n", {}, []),
        ("0::/\n", {"memory.max": "max\n", "memory.current": "5\n"}, []),
        ("0::/\n", {"memory.max": "100\n", "memory.current": "70\n"}, [30]),
        ("0::/\n", {"memory.max": "100\n", "memory.current": "170\n"}, [0]),
        (
            "0::/job/step\n",
            {
                "job/memory.max": "100\n",
                "job/memory.current": "70\n",
                "job/memory.stat": "anon 30\ninactive_file 20\nactive_file 15\nshmem 5\n",
            },
            [65],
        ),
        (
            "5:cpu,cpuacct:/elsewhere\n4:memory:/\n0::/\n",
            {
                "memory/memory.limit_in_bytes": "100\n",
                "memory/memory.usage_in_bytes": "70\n",
                "cpu,cpuacct/elsewhere/memory.limit_in_bytes": "9\n",
                "cpu,cpuacct/elsewhere/memory.usage_in_bytes": "8\n",
            },
            [30],
        ),
    ],
)
def test_what_a_container_may_still_take(tmp_path, groups, files, room):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    assert room_in_groups(groups, tmp_path) == room


def test_auto_takes_what_there_is_room_for(photos, tmp_path, monkeypatch):
    def chosen():
        return where(photos.cached("auto", tmp_path / "a" / "b").store)

    needed = photos.store.bytes()
    assert needed == 6 * 16 * 16 * 3
    monkeypatch.setattr(cache, "available_memory", lambda: 4 * needed)
    assert chosen() == "memory"
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert chosen() == "disk"
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, needed))
    assert chosen() == "off"
