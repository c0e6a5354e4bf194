"""A disk that is full: one error that names the file, no draft, and the checkpoint before."""

import resource
import signal

import pytest
import torch

from balancemix.run import Run


@pytest.fixture
def limit():
    """Return a function that limits the size of files, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_checkpoint_that_does_not_fit_names_its_file(tmp_path, limit):
    run, weights = Run(tmp_path), torch.zeros(5000)
    run.save_checkpoint({"weights": weights + 1, "log": "[]"})
    whole = (tmp_path / "checkpoint.pt").stat().st_size
    for size in range(1000, whole, 97):  # torch fails in several ways, by where the disk ends
        limit(size)
        with pytest.raises(OSError, match="too large") as failed:
            run.save_checkpoint({"weights": weights, "log": "[]"})
        assert failed.value.filename == str(tmp_path / "checkpoint.pt")
    limit(resource.RLIM_INFINITY)
    assert not list(tmp_path.glob(".*.draft"))
    state, _ = run.read_checkpoint()
    assert torch.equal(state["weights"], weights + 1)
