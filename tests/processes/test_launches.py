"""Fifty launches of two processes on images, none of which hangs."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.launching import environment

pytestmark = pytest.mark.slow
SCRIPT = str(ROOT / "tests" / "launches.py")


def launches(*options: str) -> subprocess.CompletedProcess:
    call = [sys.executable, SCRIPT, *options]
    return subprocess.run(call, env=environment(), capture_output=True, text=True)


def test_no_launch_of_fifty_hangs():
    done = launches("--times", "50", "--patience", "300")
    assert "50 launches, 0 hung, 0 failed" in done.stdout, done.stdout + done.stderr[-2000:]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes were never forked")
def test_forked_processes_wait_for_a_lock_that_a_thread_held():
    """The control: what the launches above are spared."""
    done = launches("--times", "1", "--held", "--loading", "fork", "--patience", "120")
    assert "1 launches, 1 hung" in done.stdout, done.stdout + done.stderr[-2000:]
    done = launches("--times", "1", "--held", "--patience", "300")
    assert "1 launches, 0 hung, 0 failed" in done.stdout, done.stdout + done.stderr[-2000:]
