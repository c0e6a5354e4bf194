"""Does knowing more help the audit? Findings on rows that nobody verified, docs/tables/verified.md.

    python benchmarks/verified_audit.py     # minutes

A share of the training rows is verified by the truth (`keep`). The errors on the other rows are
ranked by an audit that knows which rows are verified, and by one without verified rows: the same
labels, the same rows. Average precision, mean and standard error of the paired differences.
"""

from __future__ import annotations

import torch
from label_sets import FILES, factored
from paired import over_seeds
from rankings import score
from results import put
from torch import Tensor

from balancemix.auditing.judged import weigh_opinion
from balancemix.data.rows import Rows
from balancemix.judge import judge
from balancemix.judge.ridge import Ridge
from balancemix.plan.plan import Plan
from balancemix.progress import progress
from balancemix.training.experiment import load_experiment

SETS = {"mislabel 40 %": ("COCO, Lite0", "mislabel:0.4"), "captions": ("captions", "")}
SHARES, SEEDS = (0.05, 0.2), (0, 1, 2)
SIDES = ("wrong_ap", "missing_ap")


def main() -> None:
    """Measure, and write the table."""
    lines = ["| labels | verified | wrong, AP | change | missing, AP | change |", "|---" * 6 + "|"]
    with progress("audits", len(SETS) * len(SHARES) * len(SEEDS)) as show:
        for heading, (name, noise) in SETS.items():
            ridge = factored(name)
            for share in SHARES:
                pairs = []
                for seed in SEEDS:
                    pairs.append(compare(ridge, name, noise, share, seed))
                    show.advance()
                lines.append(line(heading, share, pairs))
    put("verified-audit", "\n".join(lines) + "\n")


Scores = dict[str, float]


def compare(ridge: Ridge, name: str, noise: str, share: float, seed: int) -> tuple[Scores, Scores]:
    """Score the audit without verified rows and with them, on the rows that are not verified."""
    before, after = load(name, noise, seed), load(name, f"{noise}+keep:{share}".strip("+"), seed)
    assert after.verified is not None
    rest = ~after.verified
    assert torch.equal(before.given[rest], after.given[rest])
    return audited(ridge, before, rest), audited(ridge, after, rest)


def load(name: str, noise: str, seed: int) -> Rows:
    """Load training rows with noise."""
    tree = {"data": {"path": str(FILES[name])}, "noise": noise or "none", "seed": seed}
    return load_experiment(Plan.from_tree(tree)).train


def audited(ridge: Ridge, rows: Rows, rest: Tensor) -> Scores:
    """Rank all labels, and score the ranking of some."""
    opinion = judge(rows.given, ridge, verified=rows.verified)
    assert rows.truth is not None
    doubt = weigh_opinion(rows.given, opinion, ridge, verified=rows.verified).doubt
    return score(rows.given.masked_fill(~rest, -1), rows.truth, doubt)


def line(heading: str, share: float, pairs: list[tuple[Scores, Scores]]) -> str:
    """Write the means of a case."""
    cells = [heading, f"{100 * share:g} %"]
    for side in SIDES:
        before, after = ([scores[side] for scores in each] for each in zip(*pairs, strict=True))
        gap = over_seeds(after, before)
        cells += [f"{sum(after) / len(after):.1f}", f"{gap.mean:+.1f} ± {gap.error:.1f}"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
