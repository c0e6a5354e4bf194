import subprocess
import sys

import pytest
import torch

from balancemix.training.devices import keep_freed_memory

FAULTS = """
import resource, sys
import torch
from balancemix.training.devices import keep_freed_memory
torch.set_num_threads(1)
if sys.argv[1] == "kept" and not keep_freed_memory():
    print(-1)
    sys.exit()
for step in range(25):
    if step == 20:  # aligned blocks fit into freed ones once a few of those lie side by side
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(12_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_freed_memory_is_not_faulted_in_again():
    counts = {}
    for mode in ("kept", "returned"):
        call = [sys.executable, "-c", FAULTS, mode]
        counts[mode] = int(subprocess.run(call, check=True, capture_output=True).stdout)
    if counts["kept"] < 0:
        pytest.skip("an old glibc")
    assert counts["kept"] < 100 < counts["returned"]


def test_nothing_happens_elsewhere(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_freed_memory()
    assert torch.ones(3).sum() == 3
