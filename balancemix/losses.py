"""Element-wise losses: B×K logits and targets in, B×K losses out."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

# The smallest distance of a probability from 0 and 1 at which float32 still has a logarithm.
_EDGE = 1e-7


def bce(logits: Tensor, target: Tensor) -> Tensor:
    """Binary cross-entropy (Eq. 1); targets may be soft.

    >>> bce(torch.zeros(1, 2), torch.tensor([[0.0, 1.0]]))
    tensor([[0.6931, 0.6931]])
    """
    return F.binary_cross_entropy_with_logits(logits, target, reduction="none")


def bce_of_confidence(confidence: Tensor, labels: Tensor) -> Tensor:
    """Binary cross-entropy of hard labels under predicted probabilities, as Eqs. 6–8 need it.

    >>> bce_of_confidence(torch.tensor([0.5, 1.0]), torch.tensor([1, 0]))
    tensor([ 0.6931, 16.1181])
    """
    of_given = torch.where(labels > 0, confidence, 1 - confidence)
    return -of_given.clamp(_EDGE, 1 - _EDGE).log()
