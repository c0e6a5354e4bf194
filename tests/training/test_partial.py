"""An array that is made in parts: killed at any time it counts whole rows alone."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from balancemix.errors import InputError
from balancemix.training import partial
from balancemix.training.partial import PartialArray, note_of, remove
from tests.conftest import ROOT

ROWS = np.arange(12, dtype=np.float16).reshape(4, 3)


def opened(path, seed=0):
    return PartialArray(path, {"seed": seed}, ROWS.shape, np.float16)


def test_rows_are_counted_once_noted(tmp_path, monkeypatch):
    monkeypatch.setattr(partial, "NOTE_EVERY", 1e9)
    path = tmp_path / "x.npy"
    first = opened(path)
    first.append(ROWS[:2])
    assert json.loads(note_of(path).read_text())["done"] == 0
    first.note()
    first.append(ROWS[2:3])
    second = opened(path)
    assert second.done == 2
    second.append(ROWS[2:])
    second.note()
    assert opened(path).done == 4
    assert np.array_equal(second.array(), ROWS)
    assert np.array_equal(np.load(path), ROWS)
    remove(path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_cut_is_forgotten_before_it_is_overwritten(tmp_path):
    first = opened(tmp_path / "x.npy")
    first.append(ROWS[:3])
    first.note()
    opened(tmp_path / "x.npy").cut(2)
    assert opened(tmp_path / "x.npy").done == 2


def test_each_row_is_noted_if_that_takes_no_time(tmp_path, monkeypatch):
    monkeypatch.setattr(partial, "NOTE_EVERY", 0.0)
    opened(tmp_path / "x.npy").append(ROWS[:1])
    assert opened(tmp_path / "x.npy").done == 1


def test_other_settings_are_refused(tmp_path):
    opened(tmp_path / "x.npy")
    with pytest.raises(InputError, match=r"x\.json: was started with other .*\(seed 0, now 1\)"):
        opened(tmp_path / "x.npy", seed=1)
    note_of(tmp_path / "x.npy").write_text("{}")
    with pytest.raises(InputError, match=r"x\.json: cannot be read .*pass --force to start over$"):
        opened(tmp_path / "x.npy")
    remove(tmp_path / "x.npy")
    assert opened(tmp_path / "x.npy", seed=1).done == 0


def test_rows_without_a_note_or_a_note_without_rows_count_for_nothing(tmp_path):
    path = tmp_path / "x.npy"
    for lost in (path, note_of(path)):
        array = opened(path)
        array.append(ROWS[:2])
        array.note()
        lost.unlink()
        assert opened(path).done == 0
        assert not opened(path).array().any() or lost == path
        remove(path)
    opened(path)
    path.write_bytes(b"")  # made only to be locked
    assert opened(path).done == 0
    assert opened(path).array().shape == ROWS.shape


SCRIPT = """
import os, signal, sys
from pathlib import Path
import numpy as np
from balancemix.training import partial
partial.NOTE_EVERY = 0.0
rows = np.arange(12, dtype=np.float16).reshape(4, 3)
array = partial.PartialArray(Path(sys.argv[1]), {"seed": 0}, rows.shape, np.float16)
for i in range(array.done, 4):
    array.append(rows[i : i + 1])
    if i == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_s_rows_are_there(tmp_path):
    path = tmp_path / "x.npy"
    for last, status in (("1", -signal.SIGKILL), ("2", -signal.SIGKILL), ("9", 0)):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(path), last],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert done.returncode == status
    assert opened(path).done == 4
    assert np.array_equal(np.load(path), ROWS)
