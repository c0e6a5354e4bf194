"""Features of images in two processes: the first computes them, and both have the same bits."""

import pytest
import torch

from balancemix.training.features import features_of
from tests.launching import launch, two
from tests.training.test_features import plan_of, rows_of, stored

pytestmark = pytest.mark.launches
SCRIPT = """
import sys
from pathlib import Path

import torch

from balancemix import processes
from balancemix.training import features
from tests.training.test_features import plan_of, rows_of

processes.start(cpu=True)
photos, beat, most = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
features.BEAT, features.BLOCK = beat, most
if processes.rank():
    features._backbone = features.FeatureFile = None  # only the first computes, reads and writes
found = features.features_of(rows_of(photos), plan_of(photos))
torch.save(found, f"{processes.rank()}.pt")
"""


@pytest.mark.parametrize(("beat", "most"), [(0.0, 5), (60.0, 4096)])
def test_both_have_what_one_makes_alone(photos, tmp_path, beat, most):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    launch(*two(str(script), str(photos), str(beat), str(most)), cwd=tmp_path)
    ends = [torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1)]
    stored(photos).unlink()
    alone = features_of(rows_of(photos), plan_of(photos))
    assert torch.equal(ends[0], alone)
    assert torch.equal(ends[1], alone)
