"""Files: whole or not at all, and never over what somebody may still want."""

import csv
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from balancemix import files
from balancemix.errors import InputError


def test_an_existing_file_is_refused_without_force(tmp_path):
    path = tmp_path / "labels.csv"
    files.check_output(path)
    path.write_text("mine")
    with pytest.raises(InputError, match=r"labels\.csv: already exists; pass --force"):
        files.check_output(path)
    files.check_output(path, force=True)


def test_an_input_is_never_an_output(tmp_path):
    path, link = tmp_path / "x.npz", tmp_path / "link.npz"
    path.write_text("mine")
    link.symlink_to(path)
    for out in (path, link, tmp_path / "." / "x.npz"):
        with pytest.raises(InputError, match="is part of what this command reads"):
            files.check_output(out, inputs=[path], force=True)


def test_a_file_of_a_folder_that_is_read_is_never_an_output(tmp_path):
    (tmp_path / "images").mkdir()
    for name in ("labels.csv", "images/cat.jpg"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(InputError, match="is part of what this command reads"):
            files.check_output(tmp_path / name, inputs=[tmp_path], force=True)
    files.check_output(tmp_path / "new.csv", inputs=[tmp_path])


def test_a_directory_and_no_name_are_refused(tmp_path):
    with pytest.raises(InputError, match="is a directory"):
        files.check_output(tmp_path, force=True)
    for nothing in ("", "."):
        with pytest.raises(InputError, match="names no file"):
            files.check_output(type(tmp_path)(nothing))


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    target, link = tmp_path / "far" / "a.txt", tmp_path / "link.txt"
    target.parent.mkdir()
    link.symlink_to(target)
    for text in ("first", "second"):
        files.write_text(link, text)
        assert link.is_symlink()
        assert target.read_text() == text


def test_a_device_and_a_pipe_are_written_to_and_not_replaced(tmp_path):
    null = tmp_path / "null"
    try:
        os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        files.write_text(null, "gone")
        assert stat.S_ISCHR(null.stat().st_mode)
    except PermissionError:  # only root may make a device; a pipe is as good
        pass
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    files.write_text(pipe, "through")
    reader.join(timeout=20)
    assert received == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_fails_leaves_the_old_file_and_no_draft(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail(draft):
        draft.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left") as error:
        files.write_whole(path, fail)
    assert error.value.filename == str(path)
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"


def test_a_name_as_long_as_the_system_allows_can_be_written(tmp_path):
    path = tmp_path / ("é" * 125 + ".csv")  # 254 bytes
    files.write_text(path, "x")
    assert path.read_text() == "x"


def test_names_that_are_not_utf8_keep_their_bytes(tmp_path):
    name = os.fsdecode(b"caf\xe9.jpg")
    files.write_csv(tmp_path / "a.csv", ("image",), [(name,)])
    files.write_text(tmp_path / "a.txt", name)
    assert (tmp_path / "a.csv").read_bytes() == b"image\ncaf\xe9.jpg\n"
    assert (tmp_path / "a.txt").read_bytes() == b"caf\xe9.jpg"


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
CELLS = TEXT | st.text(st.sampled_from(list("'=+-@\t\r\n\"a")), max_size=5)


@given(CELLS)
@example("'=1+1")
@example("''")
def test_a_cell_that_is_neutralised_can_be_restored(cell):
    plain = files.neutralise(cell)
    assert not plain.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert files.restore(plain) == cell
    assert plain in (cell, f"'{cell}")


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=3))
@example([["a\rb", "c"]])
def test_a_table_is_read_back_cell_by_cell(rows):
    with tempfile.TemporaryDirectory() as folder:
        exact, sheet = Path(folder) / "exact.csv", Path(folder) / "sheet.csv"
        files.write_csv(exact, ("=a", "b"), rows)
        files.write_sheet(sheet, ("=a", "b"), rows)
        with exact.open(newline="", encoding="utf-8") as lines:
            assert list(csv.reader(lines)) == [["=a", "b"], *rows]
        with sheet.open(newline="", encoding="utf-8") as lines:
            cells = list(csv.reader(lines))
    assert [[files.restore(cell) for cell in row] for row in cells] == [["=a", "b"], *rows]
    assert cells[0] == ["'=a", "b"]


def test_what_utf8_cannot_hold_is_refused_by_name(tmp_path):
    for write in (files.write_csv, files.write_sheet):
        with pytest.raises(InputError, match=r"a\.csv: .*ud800.* is not UTF-8; rename it"):
            write(tmp_path / "a.csv", ("image",), [("\ud800",)])
    with pytest.raises(InputError, match=r"a\.txt: .*ud800.* is not UTF-8; rename it"):
        files.write_text(tmp_path / "a.txt", "name: \ud800")
    assert list(tmp_path.iterdir()) == []


HOLD = """
import sys, time
from pathlib import Path
from balancemix import files
with files.locked(Path(sys.argv[1]), "training"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_processes_cannot_hold_one_directory(tmp_path):
    pytest.importorskip("fcntl")
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        refused = pytest.raises(InputError, match="another process is training")
        with refused, files.locked(tmp_path, "training"):
            pass
        other.kill()
    with files.locked(tmp_path, "training"):
        pass
