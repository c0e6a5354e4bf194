"""What pilots find of each kind of noise, beside the truth: the table of docs/results.md."""

from __future__ import annotations

import sys

import torch
from results import SHARED, TABLES, put_into_document

from balancemix.evidence import Evidence
from balancemix.experiment import Experiment, prepare
from balancemix.pilot import explore
from balancemix.plan import Plan
from balancemix.progress import progress

HEAD = (
    "| noise | wrong, found | in truth "
    "| missing for each right one, found | in truth | positives |\n"
    "|---|---|---|---|---|---|"
)


def main() -> None:
    """Train the pilots of every noise and seed, and write the table."""
    torch.set_num_threads(1)
    table = TABLES["auto"]
    data = SHARED / table.data
    if not data.exists():
        sys.exit(f"{data} is not there: the table is made from it")
    lines = [HEAD]
    with progress("pilots", len(table.noises) * len(table.seeds)) as show:
        for noise in table.noises:
            found, experiments = [], []
            for seed in table.seeds:
                tree = {"data": {"path": str(data)}, "noise": noise, "seed": seed}
                plan = Plan.from_tree({**tree, "train": {"epochs": 30}})
                experiments.append(prepare(plan))
                found.append(explore(experiments[-1].make_model, experiments[-1].train, plan))
                show.advance()
            lines.append(row(noise, found, experiments[0]))
    put_into_document("pilots", "\n".join(lines))


def row(noise: str, found: list[Evidence], experiment: Experiment) -> str:
    """Write the least and the most that the pilots of a noise found."""
    wrong, missing = ([getattr(e, key) for e in found] for key in ("wrong", "missing"))
    rows = experiment.train
    given, truth = rows.labels > 0, (rows.labels if rows.truth is None else rows.truth) > 0
    right = int((given & truth).sum())
    false, hidden = 1 - right / int(given.sum()), int((truth & ~given).sum()) / right
    trusted = {"trusted" if evidence.only_missing else "doubted" for evidence in found}
    cells = [f"{100 * min(wrong):.0f}–{100 * max(wrong):.0f} %", f"{100 * false:.0f} %"]
    cells += [f"{min(missing):.1f}–{max(missing):.1f}", f"{hidden:.2f}"]
    return f"| {noise} | " + " | ".join([*cells, " or ".join(sorted(trusted))]) + " |"


if __name__ == "__main__":
    main()
