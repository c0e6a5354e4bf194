"""Run every benchmark of speed and memory and write docs/performance.md's table: `make bench`.

`performance.py NAME …` runs some and replaces their lines, NAME:PART runs a part of one, as in
`judge:folds`. Nothing else should run meanwhile.
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
KNOWN = ("benchmark", "case", "requirement", "met")  # columns of their own
HEAD = "| benchmark | case | measured | required | met |\n|---|---|---|---|---|"


def main(names: list[str]) -> None:
    """Run, and put the lines in."""
    chosen = names or list(NAMES)
    unknown = {each.partition(":")[0] for each in chosen} - set(NAMES)
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(unknown)}; use some of: {', '.join(NAMES)}")
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    table, _, after = rest.partition(END)
    lines: dict[str, dict[str, str]] = {name: {} for name in NAMES}  # by benchmark and case
    for line in table.strip().splitlines()[2:]:
        name, case = (cell.strip() for cell in line.split("|")[1:3])
        lines[name][case] = line
    with progress("benchmarks", len(chosen)) as show:
        for each in chosen:
            name, _, part = each.partition(":")
            new = {facts["case"]: row(facts) for facts in measure(name, part)}
            lines[name] = lines[name] | new if part else new
            show.advance()
    text = "\n".join([HEAD, *(line for name in NAMES for line in lines[name].values())])
    write_text(DOCUMENT, f"{before}{BEGIN}\n{text}\n{END}{after}")


def measure(name: str, part: str) -> list[dict[str, Any]]:
    """Run one benchmark, or part of it, and return its lines."""
    command = [sys.executable, str(HERE / f"{name}.py"), *part.split()]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent)
    if done.returncode:
        sys.exit(f"{name}: failed")
    print(done.stdout, end="", flush=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def row(facts: dict[str, Any]) -> str:
    """Write a line of the table."""
    name, case = facts["benchmark"], facts["case"]
    required, met = facts.get("requirement") or "–", facts.get("met")
    rest = {key: value for key, value in facts.items() if key not in KNOWN}
    measured = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in rest.items())
    answer = "–" if met is None else "yes" if met else "**no**"
    return f"| {name} | {case} | {measured} | {required} | {answer} |"


if __name__ == "__main__":
    main(sys.argv[1:])
