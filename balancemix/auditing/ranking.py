"""doubt(): in which order to look at labels.

    doubt = ½ · log-odds that the label is wrong, by the judge's posterior q
          + ½ · log-odds that the label is wrong, by the leave-one-out score, clamped

The posterior knows how often each class goes wrong, if errors do not depend on the row; the score
knows nothing of that and asks only what the other rows say. Each alone is far behind the other on
some data; their mean is close to the better one everywhere.
"""

from __future__ import annotations

import torch
from torch import Tensor

from balancemix.labels.chunks import chunks

POSTERIOR = 0.5  # the weight of the posterior; the rest is the score's
EDGE = 0.01  # scores are clamped this far from 0 and 1: least squares leave that range
SURE = 1e-6  # … and posteriors, as float32 has no more digits next to 1


def doubt(
    given: Tensor,
    score: Tensor,
    posterior: Tensor,
    *,
    verified: Tensor | None = None,
    judged: Tensor | None = None,
) -> Tensor:
    """Compute log-odds that N×K labels are not as given: N×K float32, look at the largest first.

    For an unknown label (−1), those that it is present. A label that is `verified` (N×K booleans),
    or of a class that is not `judged` (K booleans), has −inf: nothing is known against it.

    >>> given, score = torch.tensor([[1, 1, 0]]), torch.tensor([[0.1, 0.9, 0.1]])
    >>> doubt(given, score, score)
    tensor([[ 2.1972, -2.1972, -2.1972]])
    """
    result = torch.empty(given.shape)
    for rows in chunks(*given.shape):
        present = POSTERIOR * posterior[rows].float().clamp(SURE, 1 - SURE).logit()
        present += (1 - POSTERIOR) * score[rows].float().clamp(EDGE, 1 - EDGE).logit()
        result[rows] = torch.where(given[rows] > 0, -present, present)
        if verified is not None:
            result[rows].masked_fill_(verified[rows], -torch.inf)
    if judged is not None:
        result[:, ~judged] = -torch.inf
    return result
