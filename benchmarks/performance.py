"""Run every benchmark of speed and memory and write docs/performance.md's table: `make bench`.

`performance.py NAME …` runs some and replaces their lines. Nothing else should run meanwhile.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from balancemix.files import write_text
from balancemix.progress import progress

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parent / "docs" / "performance.md"
NAMES = (
    "startup", "mixtures", "scale", "memory", "label_work", "loader", "views", "ddp", "passes",
    "epoch", "judge", "review",
)  # fmt: skip
BEGIN, END = "<!-- benchmarks -->", "<!-- end of benchmarks -->"
HEAD = "| benchmark | case | measured | required | met |\n|---|---|---|---|---|"


def main(names: list[str]) -> None:
    """Run, and put the lines in."""
    chosen = names or list(NAMES)
    unknown = set(chosen) - set(NAMES)
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(unknown)}; use some of: {', '.join(NAMES)}")
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    table, _, after = rest.partition(END)
    kept = {name: [] for name in NAMES}
    for line in table.strip().splitlines()[2:]:
        name = line.split("|")[1].strip()
        if name not in chosen:
            kept[name].append(line)
    with progress("benchmarks", len(chosen)) as show:
        for name in chosen:
            kept[name] = [row(json.loads(line)) for line in measure(name)]
            show.advance()
    lines = [line for name in NAMES for line in kept[name]]
    text = "\n".join([HEAD, *lines])
    write_text(DOCUMENT, f"{before}{BEGIN}\n{text}\n{END}{after}")


def measure(name: str) -> list[str]:
    """Run one benchmark and return its lines of JSON."""
    command = [sys.executable, str(HERE / f"{name}.py")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent)
    if done.returncode:
        sys.exit(f"{name}: failed")
    print(done.stdout, end="", flush=True)
    return [line for line in done.stdout.splitlines() if line.startswith("{")]


def row(facts: dict[str, Any]) -> str:
    """Write a line of the table."""
    name, case = facts.pop("benchmark"), facts.pop("case")
    required, met = facts.pop("requirement", None) or "–", facts.pop("met", None)
    measured = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in facts.items())
    answer = "–" if met is None else "yes" if met else "**no**"
    return f"| {name} | {case} | {measured} | {required} | {answer} |"


if __name__ == "__main__":
    main(sys.argv[1:])
