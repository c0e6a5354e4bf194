"""How much larger a penalty for the list of wrong labels? docs/findings.md.

    python benchmarks/smoother.py

Wrong labels are ranked by score and posterior with a larger penalty than the judge's (`SMOOTHER`
in balancemix/auditing/ranking.py). Each factor ranks planted errors of COCO's training rows,
features of EfficientNet-Lite0, three seeds; scored by average precision. Other features, other data
and real errors are left out: they are the check, in docs/tables/findings.md.
"""

from __future__ import annotations

import warnings
from statistics import mean

import torch
from label_sets import factored, judged, load_case
from rankings import score
from results import put

from balancemix.auditing.judged import smoothed, weigh

FACTORS = (1, 2, 4, 8)
NOISES = ("mislabel:0.05", "mislabel:0.2", "mislabel:0.4", "flip:0.02", "flip:0.1")
SEEDS = (0, 1, 2)
SET = "COCO, Lite0"


def main() -> None:
    """Rank by each factor, and write the table."""
    lines = [f"| penalty | {' | '.join(NOISES)} | mean |", "|--:" * (len(NOISES) + 2) + "|"]
    found = {noise: precisions(noise) for noise in NOISES}
    for place, factor in enumerate(FACTORS):
        row = [found[noise][place] for noise in NOISES]
        lines.append(f"| × {factor} | {' | '.join(f'{ap:.2f}' for ap in [*row, mean(row)])} |")
    table = "\n".join(lines) + "\n"
    print(table)
    put("smoother", table)


def precisions(noise: str) -> list[float]:
    """Compute the average precision of wrong labels by each factor, the mean over seeds."""
    scores: list[list[float]] = []
    for seed in SEEDS:
        case = SET, noise, seed
        rows, opinion = load_case(case).train, judged(case)
        assert rows.truth is not None
        beliefs = opinion.score, opinion.confidence, opinion.posterior, opinion.judged
        found = []
        for factor in FACTORS:
            smooth = smoothed(rows.given, factored(SET), factor * opinion.penalty.best)
            doubt = weigh(rows.given, *beliefs, smooth=smooth).doubt
            found.append(score(rows.given, rows.truth, doubt)["wrong_ap"])
        scores.append(found)
    return [mean(each) for each in zip(*scores, strict=True)]


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    torch.set_num_threads(1)
    main()
