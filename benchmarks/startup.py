"""How long `balancemix --help` takes, the best of five; it imports nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
import time

MOST = 0.5


def main() -> None:
    """Print one line."""
    command = [sys.executable, "-m", "balancemix", "--help"]
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - begin)
    line = {"benchmark": "startup", "case": "balancemix --help", "seconds": round(min(times), 3)}
    print(json.dumps({**line, "requirement": f"< {MOST} s", "met": min(times) < MOST}))


if __name__ == "__main__":
    main()
