"""doubt(): in which order to look at labels.

    missing   doubt =   ½ · logit η + ½ · logit s
    wrong     doubt = −(½ · logit q + ½ · logit t + ¼ · logit r)

s is the judge's leave-one-out score, clamped; it knows nothing of how labels go wrong. t is the
same with `SMOOTHER` times the penalty: far below 0, where wrong labels are, s is mostly noise. η
and q, the judge's confidence by s and posterior by t, know each class's scale, and q also how often
the class goes wrong if errors do not depend on the row. r is the rank of t among the labels of the
class that are not given: a wrong positive is a negative, so it ranks anywhere among them, and a
right one ranks high. docs/findings.md says how the weights and the penalty were chosen.
"""

from __future__ import annotations

import torch
from torch import Tensor

from balancemix.labels.chunks import chunks

RANK = 0.25  # the weight of r
SMOOTHER = 8.0  # the penalty of t, in units of the judge's
EDGE = 0.01  # scores are clamped this far from 0 and 1: least squares leave that range
SURE = 1e-6  # … and η and q, as float32 has no more digits next to 1


def doubt(
    given: Tensor,
    score: Tensor,
    confidence: Tensor,
    posterior: Tensor,
    verified: Tensor | None = None,
    smooth: Tensor | None = None,
) -> Tensor:
    """Compute how far N×K labels are in doubt: N×K float32, in log-odds, the largest first.

    An unknown label (−1) is rated as one that is not given. A `verified` one (N×K booleans) has
    −inf: nothing speaks against it. `smooth` is t, by which `posterior` was made; by default it is
    the score.

    >>> given, score = torch.tensor([[1, 1, 0]]), torch.tensor([[0.1, 0.9, 0.1]])
    >>> doubt(given, score, score, score)
    tensor([[ 2.1972, -2.1972, -2.1972]])
    """
    smooth = score if smooth is None else smooth
    result = torch.empty(given.shape)
    for rows in chunks(*given.shape):
        positive = given[rows] > 0
        belief = torch.where(positive, posterior[rows], confidence[rows]).float()
        present = belief.clamp(SURE, 1 - SURE).logit()
        rated = torch.where(positive, smooth[rows], score[rows]).float()
        present += rated.clamp(EDGE, 1 - EDGE).logit()
        result[rows] = torch.where(positive, -present, present) / 2
    for k in range(given.shape[1]):
        positive = given[:, k] > 0
        rank = rank_among(smooth[positive, k], smooth[given[:, k] == 0, k])
        result[positive, k] -= RANK * rank.logit()
    if verified is not None:
        result.masked_fill_(verified, -torch.inf)
    return result


def rank_among(scores: Tensor, others: Tensor) -> Tensor:
    """Compute the share of others below each score, ties by half; never 0 or 1.

    >>> rank_among(torch.tensor([0.1, 0.5, 0.9]), torch.tensor([0.2, 0.5, 0.6]))
    tensor([0.1250, 0.5000, 0.8750])
    """
    others = others.sort().values
    below = torch.searchsorted(others, scores.contiguous())
    not_above = torch.searchsorted(others, scores.contiguous(), right=True)
    return (below + not_above + 1).float() / (2 * len(others) + 2)
