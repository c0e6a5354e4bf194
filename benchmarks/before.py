"""Labels that people chose to verify, and what the judge then makes of the others.

    python benchmarks/before.py      # measure, and write the table of docs/tables/verified.md

A person goes through a list, or settles images (`worth.py`). What was looked at is verified, and
the judge is asked again: without the labels as they were before, and with them. Shown are the share
of the other given labels that is wrong, as it is and as modelled, and the last mAP of kernel ridge
regression on second opinion's targets. Seed 0; minutes of one core.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from itertools import product

import torch
import worth
from label_sets import factored
from results import put
from torch import Tensor

from balancemix.evaluation.metrics import average_precision
from balancemix.judge import Opinion, judge

WAYS = ("random", "most errors", "list", "sweep")
HOURS = (2.0, 8.0)
HEAD = (
    "set", "way", "hours", "fixed", "wrong among the others", "modelled", "with labels before",
    "mAP", "with labels before", "mAP of nothing verified",
)  # fmt: skip


def main() -> None:
    """Write the table."""
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    lines += [f"| {' | '.join(cells)} |" for name in worth.SETS for cells in rows(name)]
    put("before", "\n".join(lines) + "\n")


def rows(name: str) -> Iterator[list[str]]:
    """Judge a set again after each way of looking through it."""
    case = (*worth.SETS[name], 0)
    given, truth, ridge = (
        worth.prepared(case).train.given,
        worth.true_labels(case),
        factored(case[0]),
    )
    nothing = score(case, judge(given, ridge), given)
    for way, hours in product(WAYS, HOURS):
        looked = worth.look(case, way, 3600 * hours).labels
        after = torch.where(looked, truth, given)
        others = (given > 0) & ~looked
        cells = [name, way, f"{hours:g}", f"{int((after != given).sum()):,}"]
        cells.append(percent((truth[others] == 0).float().mean()))
        opinions = [judge(after, ridge, verified=looked, before=before) for before in (None, given)]
        cells += [percent((1 - opinion.posterior[others]).mean()) for opinion in opinions]
        cells += [f"{score(case, opinion, after):.1f}" for opinion in opinions]
        yield [*cells, f"{nothing:.1f}"]
        print(*cells, flush=True, file=sys.stderr)


def score(case: worth.Case, opinion: Opinion, given: Tensor) -> float:
    """Solve for the targets, and score the test rows by their true labels."""
    test = worth.prepared(case).test
    machine = factored(case[0]).solve(opinion.targets(given), 0.5)
    truth = test.given if test.truth is None else test.truth
    return 100 * float(average_precision(truth, machine(test.features.float())).nanmean())


def percent(share: Tensor) -> str:
    """Write a share in percent."""
    return f"{100 * float(share):.0f} %"


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    torch.set_num_threads(1)
    main()
