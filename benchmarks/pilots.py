"""What pilots found of each kind of noise, beside the truth: a table of docs/results.md.

It is read from the runs of BalanceMix in bench/coco, which `results.py coco` trains.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from results import FEATURES, ROOT, put

from balancemix.bench.plan import read_bench
from balancemix.bench.scores import Result, read_results
from balancemix.plan.plan import Plan, read_tree
from balancemix.training.experiment import load_experiment

HEAD = (
    "| noise | wrong, found | in truth "
    "| missing for each right one, found | in truth | positives |\n"
    "|---|---|---|---|---|---|\n"
)


def main() -> None:
    """Read what every pilot found, and write the table."""
    plan = replace(read_bench("paper-tables"), data=[FEATURES])
    results = read_results(plan, ROOT / "bench" / "coco" / "runs")
    lines = ""
    for noise in plan.noises:
        runs = results.of("BalanceMix", noise, FEATURES)
        if not runs:
            sys.exit(f"bench/coco: no run under {noise} has ended; run results.py coco first")
        lines += row(noise, runs)
    put("pilots", HEAD + lines)


def row(noise: str, runs: list[Result]) -> str:
    """Write the least and the most that the pilots of a noise found, and the truth of one seed."""
    found = [run.log[0] for run in runs]  # what a method settled on is in its first line
    wrong, missing = ([line[key] for line in found] for key in ("wrong", "missing"))
    rows = load_experiment(Plan.from_tree(read_tree(runs[0].path / "plan.json"))).train
    given, truth = rows.given > 0, (rows.given if rows.truth is None else rows.truth) > 0
    right = int((given & truth).sum())
    false, hidden = 1 - right / int(given.sum()), int((truth & ~given).sum()) / right
    trusted = {"trusted" if line["trust_positives"] else "doubted" for line in found}
    cells = [f"{100 * min(wrong):.0f}–{100 * max(wrong):.0f} %", f"{100 * false:.0f} %"]
    cells += [f"{min(missing):.1f}–{max(missing):.1f}", f"{hidden:.2f}"]
    return f"| {noise} | " + " | ".join([*cells, " or ".join(sorted(trusted))]) + " |\n"


if __name__ == "__main__":
    main()
