"""The cache of small pictures: the least recently used goes first, and nothing of it can fail."""

import os

import pytest

from balancemix.review.thumbs import Thumbs


def picture(length=100, mark=b"x"):
    return b"\xff\xd8" + mark * (length - 4) + b"\xff\xd9"


def names(thumbs):
    return sorted(path.name for path in thumbs.folder.iterdir())


def test_kept_across_processes(tmp_path):
    Thumbs(tmp_path / "thumbs").put("a.jpg", picture())
    assert Thumbs(tmp_path / "thumbs").get("a.jpg") == picture()
    assert Thumbs(tmp_path / "thumbs").get("b.jpg") is None


def test_the_least_recently_used_goes_first(tmp_path):
    thumbs = Thumbs(tmp_path, limit=300)
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        thumbs.put(name, picture())
    assert thumbs.get("a.jpg") is not None
    thumbs.put("d.jpg", picture())
    assert names(thumbs) == ["a.jpg", "c.jpg", "d.jpg"]
    thumbs.put("d.jpg", picture(150))  # replaced, not counted twice
    assert names(thumbs) == ["a.jpg", "d.jpg"]


def test_what_was_used_before_is_known_after_a_restart(tmp_path):
    first = Thumbs(tmp_path, limit=300)
    for when, name in enumerate(("b.jpg", "a.jpg", "c.jpg")):
        first.put(name, picture())
        os.utime(tmp_path / name, ns=(when, when))
    first.get("b.jpg")
    Thumbs(tmp_path, limit=300).put("d.jpg", picture())
    assert names(first) == ["b.jpg", "c.jpg", "d.jpg"]


def test_one_that_is_larger_than_all(tmp_path):
    thumbs = Thumbs(tmp_path, limit=10)
    thumbs.put("a.jpg", picture())
    thumbs.put("b.jpg", picture())
    assert names(thumbs) == ["b.jpg"]


def test_drafts_of_a_killed_process_are_removed(tmp_path):
    (tmp_path / ".a.jpg.7.draft").write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("mine")
    thumbs = Thumbs(tmp_path, limit=10)
    thumbs.put("a.jpg", picture())
    assert names(thumbs) == ["a.jpg", "notes.txt"]


@pytest.mark.parametrize("content", [b"", picture()[:50], b"\0" * 100])
def test_a_damaged_one_is_as_if_it_were_not_there(tmp_path, content):
    thumbs = Thumbs(tmp_path)
    thumbs.put("a.jpg", picture())
    (tmp_path / "a.jpg").write_bytes(content)
    assert thumbs.get("a.jpg") is None
    thumbs.put("a.jpg", picture())
    assert thumbs.get("a.jpg") == picture()
