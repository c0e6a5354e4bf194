"""Loading processes: started cleanly, told little, never waited for for ever."""

import os
import pickle
import signal
import subprocess
import sys
import time

import pytest
import torch
from torch.utils.data import Dataset

from balancemix.data import loading
from balancemix.data.loading import Loader, workers_for
from balancemix.errors import InputError
from balancemix.training.predict import predict
from tests import together
from tests.conftest import ROOT
from tests.toys import single

BATCHES = [[0, 1], [2]]


def wait_a_while():
    time.sleep(0.5)


class Numbers(Dataset):
    """Rows that are their numbers; in a loading process, something may happen first."""

    def __init__(self, happens=None):
        self.happens, self.home = happens, os.getpid()

    def __len__(self):
        return 3

    def __getitem__(self, i):
        if self.happens is not None and os.getpid() != self.home:
            self.happens()
        return torch.tensor([float(i)]), i


def sleep_for_ever():
    time.sleep(10_000)


def be_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def fail():
    raise InputError("photo.jpg: cannot be read as an image; replace it")


@pytest.mark.parametrize("workers", [0, 1])
def test_batches_come_in_order(workers):
    loader = Loader(Numbers(), BATCHES, workers)
    assert [index.tolist() for _, index in loader] == BATCHES
    assert len(loader) == 2


def test_no_process_is_forked_from_one_with_threads():
    """On Linux the fork server has none; elsewhere a new interpreter is started."""
    context = Loader(Numbers(), BATCHES, 1).batches.multiprocessing_context
    assert context.get_start_method() == ("forkserver" if sys.platform == "linux" else "spawn")


def test_a_silent_process_ends_with_a_sentence(monkeypatch):
    monkeypatch.setattr(loading, "TIMEOUT", 0.6)
    monkeypatch.setattr(loading, "LOOK", 0.3)
    with pytest.raises(InputError, match=r"^a loading process has not answered for 0.6 seconds: "):
        list(Loader(Numbers(sleep_for_ever), BATCHES, 1))


def test_a_slow_process_is_waited_for(monkeypatch):
    monkeypatch.setattr(loading, "LOOK", 0.3)
    assert [index.tolist() for _, index in Loader(Numbers(wait_a_while), BATCHES, 1)] == BATCHES


def test_a_dead_process_ends_with_a_sentence(monkeypatch):
    monkeypatch.setattr(loading, "LOOK", 0.3)
    with pytest.raises(InputError, match=r"exited unexpectedly: out of memory, .* --workers, or 0"):
        list(Loader(Numbers(be_killed), BATCHES, 1))


def test_what_a_process_complains_of_is_one_line():
    with pytest.raises(InputError) as caught:
        list(Loader(Numbers(fail), BATCHES, 1))
    assert str(caught.value) == "photo.jpg: cannot be read as an image; replace it"


def test_a_data_set_that_cannot_be_pickled_is_one_line():
    with pytest.raises(InputError, match=r"cannot be sent to loading processes .*--workers 0"):
        list(Loader(Numbers(lambda: None), BATCHES, 1))
    assert predict(torch.nn.Linear(1, 2), Numbers(lambda: None)).shape == (3, 2)


def test_other_errors_stay_as_they_are():
    class Broken(Numbers):
        def __getitem__(self, i):
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match=r"^mine$"):
        list(Loader(Broken(), BATCHES))


def test_a_loading_process_is_told_little(tmp_path):
    rows = together.make_photos(tmp_path, 40)
    few = rows.for_workers()
    assert (few.names, few.paths, len(few.given), few.truth) == ([], [], 0, None)
    x, _ = pickle.loads(pickle.dumps(few)).__getitems__([3, 1])
    assert torch.equal(x, single(rows.__getitems__([3, 1])[0]))


def test_features_are_looked_up_without_loading_processes():
    assert Loader(together.make_rows(5), BATCHES, 2).batches.num_workers == 0


def test_images_are_worth_loading_processes_and_features_none(tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    photos, features = together.make_photos(tmp_path, 4), together.make_rows(4)
    assert workers_for(photos, None, on_cpu=True) == 8
    assert workers_for(photos, None, on_cpu=True, processes=4) == 3
    assert workers_for(photos.cached("memory"), None, on_cpu=True) == 2
    assert workers_for(photos.cached("memory"), None, on_cpu=False) == 8
    assert workers_for(features, None, on_cpu=False) == 0
    assert workers_for(photos, 5, on_cpu=True) == workers_for(features, 5, on_cpu=True) == 5
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert workers_for(photos, None, on_cpu=True, processes=2) == 1


def test_a_script_that_hides_its_work_in_main_can_load_images(tmp_path):
    """The usual guard is all that a script needs."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, torch\n"
        "from pathlib import Path\n"
        "from balancemix.data.loading import Loader\n"
        "from tests.together import make_photos\n"
        "if __name__ == '__main__':\n"
        "    rows = make_photos(Path(sys.argv[1]), 4)\n"
        "    print([index.tolist() for _, index in Loader(rows, [[2, 0], [1]], 1)])\n"
    )
    root = str(ROOT)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[[2, 0], [1]]", done.stderr[-2000:]
