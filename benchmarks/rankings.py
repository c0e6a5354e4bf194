"""Rankings of labels by doubt, ours, cleanlab's and controls, and how they are scored.

A ranking is an N×K matrix; a larger value is looked at earlier. Wrong and missing labels are two
lists: present labels are ranked among themselves, and so are absent ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from sklearn.metrics import average_precision_score
from torch import Tensor

from balancemix.auditing.judged import weigh_opinion
from balancemix.judge import Opinion
from balancemix.judge.ridge import Ridge

Ranking = Callable[[Tensor, Tensor], Tensor]  # of given labels and confidence: doubt

# Of a label that is present or not, cleanlab's normalized_margin and confidence_weighted_entropy
# are functions of self_confidence, but for rounding: they rank alike. So do the filters
# prune_by_class and both, and prune_by_noise_rate; predicted_neq_given ranks as no filter does.
RANKERS = {"self_confidence": False, "self_confidence, adjusted": True}
FILTERS = ("prune_by_noise_rate", "confident_learning")


def of_judge(given: Tensor, opinion: Opinion, ridge: Ridge) -> dict[str, Tensor]:
    """Rank by what the judge thinks: ours, and each of its parts alone as a control."""
    present = (given > 0).float()
    return {
        "balancemix": weigh_opinion(given, opinion, ridge).doubt,
        "score": (present - opinion.score).abs(),
        "confidence": (present - opinion.confidence).abs(),
        "posterior": (present - opinion.posterior).abs(),
    }


def of_cleanlab(given: Tensor, confidence: Tensor) -> dict[str, Tensor]:
    """Rank by each of cleanlab's rankers and filters."""
    ranked = {name: quality(given, confidence, each) for name, each in RANKERS.items()}
    found = {name: flagged(given, confidence, name) for name in FILTERS}
    base = ranked["self_confidence"]
    ranked = {name: -scores for name, scores in ranked.items()}
    # What a filter flags comes first; within and below it, the default ranker decides.
    return ranked | {f"filter {name}": first.double() - base for name, first in found.items()}


def quality(given: Tensor, confidence: Tensor, adjusted: bool = False) -> Tensor:
    """Return cleanlab's quality of each label, from 0 to 1; `adjusted` for rare classes."""
    from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class

    def score(labels: list[list[int]], probabilities: np.ndarray) -> np.ndarray:
        scores = get_label_quality_scores_per_class(
            labels, probabilities, adjust_pred_probs=adjusted
        )
        return np.asarray(scores)

    plain = torch.where(given > 0, confidence, 1 - confidence)
    return _in_classes(given, confidence, plain, score)


def flagged(given: Tensor, confidence: Tensor, filter_by: str) -> Tensor:
    """Return which labels one of cleanlab's filters flags."""
    from cleanlab.multilabel_classification.filter import find_multilabel_issues_per_class

    def find(labels: list[list[int]], probabilities: np.ndarray) -> np.ndarray:
        found = find_multilabel_issues_per_class(
            labels, probabilities, filter_by=filter_by, n_jobs=1
        )
        return np.asarray(found)

    return _in_classes(given, confidence, torch.zeros(given.shape), find) > 0


def _in_classes(
    given: Tensor,
    confidence: Tensor,
    otherwise: Tensor,
    call: Callable[[list[list[int]], np.ndarray], np.ndarray],
) -> Tensor:
    """Ask cleanlab about the classes that are both given and not given; it refuses others."""
    present = given > 0
    usable = (present.any(0) & ~present.all(0)).nonzero()[:, 0]
    lists = [row.nonzero()[:, 0].tolist() for row in present[:, usable]]
    result = otherwise.double()
    answer = call(lists, confidence[:, usable].double().numpy())
    result[:, usable] = torch.from_numpy(answer.astype(np.float64))
    return result


def score(given: Tensor, truth: Tensor, ranking: Tensor) -> dict[str, float]:
    """Score both lists of a ranking against the truth, in percent.

    `ap` is the average precision, `at` the precision among as many labels as there are errors,
    `errors` of `labels` is what a random order would have.
    """
    scores: dict[str, float] = {}
    for side, part in (("wrong", given == 1), ("missing", given == 0)):
        known = part & (truth >= 0)
        wrong, order = (truth != given)[known], ranking[known].double().nan_to_num()  # of −inf
        scores |= {f"{side}_errors": int(wrong.sum()), f"{side}_labels": int(known.sum())}
        if bool(wrong.any()):
            average = average_precision_score(wrong.numpy(), order.numpy())
            scores[f"{side}_ap"] = 100 * float(average)
            scores[f"{side}_at"] = 100 * precision_at(wrong, order, int(wrong.sum()))
    return scores


def precision_at(wrong: Tensor, order: Tensor, count: int) -> float:
    """Return the share of errors among the first `count`; equal ones are in any order.

    >>> precision_at(torch.tensor([True, False, True]), torch.tensor([2.0, 1.0, 1.0]), 2)
    0.75
    """
    least = order.topk(count).values[-1]
    above, tied = order > least, order == least
    room = count - int(above.sum())
    hits = float(wrong[above].sum()) + room * float(wrong[tied].double().mean())
    return hits / count
