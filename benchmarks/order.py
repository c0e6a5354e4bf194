"""By what to rank labels? Variants of the order of findings on planted errors: docs/findings.md.

    python benchmarks/order.py

Each variant weighs what the judge knows of a label: score, confidence and posterior, and of a given
label the score's rank among the labels of its class that are not given. The training rows of each
set are ranked, present and absent labels apart, and scored by the truth. Real errors are left out:
nothing may be chosen on them.
"""

from __future__ import annotations

from statistics import mean

import torch
from label_sets import FILES, PLANTED, REAL, judged, load_case
from rankings import score
from results import put
from torch import Tensor

from balancemix.auditing.ranking import EDGE, SURE, rank_among
from balancemix.judge import Opinion

# Weights of the log-odds of posterior, confidence, score and rank: of wrong, of missing labels.
VARIANTS = {
    "score": ((0, 0, 1, 0), (0, 0, 1, 0)),
    "confidence": ((0, 1, 0, 0), (0, 1, 0, 0)),
    "posterior": ((1, 0, 0, 0), (1, 0, 0, 0)),
    "posterior and score": ((1 / 2, 0, 1 / 2, 0), (1 / 2, 0, 1 / 2, 0)),
    "confidence and score": ((0, 1 / 2, 1 / 2, 0), (0, 1 / 2, 1 / 2, 0)),
    "confidence ⅔, score ⅓": ((0, 2 / 3, 1 / 3, 0), (0, 2 / 3, 1 / 3, 0)),
    "posterior, score, ½ rank": ((1 / 2, 0, 1 / 2, 1 / 2), (1 / 2, 0, 1 / 2, 0)),
    "confidence, score, ¾ rank": ((0, 1 / 2, 1 / 2, 3 / 4), (0, 1 / 2, 1 / 2, 0)),
    "**chosen**: posterior, score, ¼ rank; confidence, score": (
        (1 / 2, 0, 1 / 2, 1 / 4),
        (0, 1 / 2, 1 / 2, 0),
    ),
}


def parts(given: Tensor, opinion: Opinion) -> Tensor:
    """Stack the log-odds of what the judge knows: 4×N×K."""
    rank = torch.full(given.shape, 0.5)
    for k in range(given.shape[1]):
        positive = given[:, k] > 0
        others = opinion.score[given[:, k] == 0, k]
        rank[positive, k] = rank_among(opinion.score[positive, k], others)
    sure = [each.clamp(SURE, 1 - SURE) for each in (opinion.posterior, opinion.confidence)]
    return torch.stack([*sure, opinion.score.clamp(EDGE, 1 - EDGE), rank]).logit()


def main() -> None:
    """Rank by each variant, and write the table."""
    scores: dict[tuple[str, str], list[float]] = {}
    names = [name for name, file in FILES.items() if file.exists() and name not in REAL]
    for name in names:
        for noise in PLANTED:
            rows = load_case((name, noise, 0)).train
            assert rows.truth is not None
            known = parts(rows.given, judged((name, noise, 0)))
            for variant, (of_wrong, of_missing) in VARIANTS.items():
                wrong = -torch.tensordot(torch.tensor(of_wrong, dtype=known.dtype), known, 1)
                missing = torch.tensordot(torch.tensor(of_missing, dtype=known.dtype), known, 1)
                ranking = torch.where(rows.given > 0, wrong, missing)
                for key, value in score(rows.given, rows.truth, ranking).items():
                    if key.endswith("_ap"):
                        scores.setdefault((variant, key), []).append(value)
    lines = ["| ranked by | wrong | missing |", "|---|--:|--:|"]
    for variant in VARIANTS:
        cells = [f"{mean(scores[variant, f'{side}_ap']):.2f}" for side in ("wrong", "missing")]
        lines.append(f"| {variant} | {cells[0]} | {cells[1]} |")
    table = "\n".join(lines) + "\n"
    print(table)
    put("order", table)


if __name__ == "__main__":
    main()
