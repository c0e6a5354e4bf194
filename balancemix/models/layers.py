"""Parts that several heads share."""

from torch import Tensor, nn


def tokens(features: Tensor) -> Tensor:
    """Lay features out as (B, T, D); pooled ones are a single token.

    >>> import torch
    >>> tokens(torch.zeros(2, 8, 3, 3)).shape, tokens(torch.zeros(2, 8)).shape
    (torch.Size([2, 9, 8]), torch.Size([2, 1, 8]))
    """
    if features.ndim == 4:
        return features.flatten(2).mT
    return features.unsqueeze(1) if features.ndim == 2 else features


def perceptron(features: int, hidden: int, dropout: float, outputs: int) -> nn.Sequential:
    """Make two layers with a rectifier and dropout between.

    >>> import torch
    >>> perceptron(8, 16, 0.1, 3)(torch.zeros(2, 8)).shape
    torch.Size([2, 3])
    """
    first, last = nn.Linear(features, hidden), nn.Linear(hidden, outputs)
    return nn.Sequential(first, nn.ReLU(), nn.Dropout(dropout), last)
