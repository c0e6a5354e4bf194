"""Element-wise losses: B×K logits and targets in, B×K losses out.

Every loss is written by its two sides, −log p and −log(1 − p), each multiplied by its share of the
target. So targets may be soft, as Mixup's are, and a loss that has BCE as a special case equals it
to the last bit. Half precision is computed in float32.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def bce(logits: Tensor, target: Tensor) -> Tensor:
    """Binary cross-entropy (Eq. 1); targets may be soft.

    >>> bce(torch.zeros(1, 2), torch.tensor([[0.0, 1.0]]))
    tensor([[0.6931, 0.6931]])
    """
    return F.binary_cross_entropy_with_logits(logits, target, reduction="none")


def sides(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Compute −log p and −log(1 − p): the loss of a present label, and of an absent one.

    >>> sides(torch.tensor([1.0]))
    (tensor([0.3133]), tensor([1.3133]))
    """
    logits = widened(logits)
    return bce(logits, torch.ones_like(logits)), bce(logits, torch.zeros_like(logits))


def combine(target: Tensor, present: Tensor, absent: Tensor) -> Tensor:
    """Add up the losses of both sides, each by its share of the target.

    >>> combine(torch.tensor([0.25]), torch.tensor([4.0]), torch.tensor([8.0]))
    tensor([7.])
    """
    return weigh(target, 1 - target, present, absent)


def weigh(positive: Tensor, negative: Tensor, present: Tensor, absent: Tensor) -> Tensor:
    """Add up the losses of both sides, weighted apart: both by 0 where a label is unknown.

    >>> weigh(*torch.tensor([[0.0, 0.5], [0.0, 0.25], [4.0, 4.0], [8.0, 8.0]]))
    tensor([0., 4.])
    """
    _check_shapes(present, positive)
    return positive * present + negative * absent


def focal(logits: Tensor, target: Tensor, gamma: float = 2.0) -> Tensor:
    """Focal loss: BCE weighted by (1 − p)^γ where a label is present, by p^γ where it is absent.

    >>> focal(torch.zeros(1, 2), torch.tensor([[0.0, 1.0]]))
    tensor([[0.1733, 0.1733]])
    """
    present, absent = sides(logits)
    # (1 − p)^γ is exp(−γ·absent), which has a gradient even where p rounds to 0 or 1.
    positive, negative = (-gamma * absent).exp() * present, (-gamma * present).exp() * absent
    return combine(target, positive, negative)


def asl(
    logits: Tensor,
    target: Tensor,
    gamma_negative: float = 4.0,
    gamma_positive: float = 0.0,
    clip: float = 0.05,
    detach: bool = True,
) -> Tensor:
    """Asymmetric loss: a focal loss with a γ for each side, 0 for absent labels with p < clip.

    `detach` keeps gradients out of the focusing weights, as the authors do.

    >>> asl(torch.tensor([[-4.0, 0.0]]), torch.zeros(1, 2))
    tensor([[0.0000, 0.0245]])
    """
    _check_shapes(logits, target)
    present, absent = sides(logits)
    positive_weight = (-gamma_positive * absent).exp()
    if clip > 0:
        shifted = (widened(logits).sigmoid() - clip).clamp(min=0)  # no gradient below the clip
        negative_weight, absent = shifted**gamma_negative, -torch.log1p(-shifted)
    else:  # without the shift p may round to 1; only the logits give its logarithm
        negative_weight = (-gamma_negative * present).exp()
    if detach:
        positive_weight, negative_weight = positive_weight.detach(), negative_weight.detach()
    # Departure: the published code computes one weight from both sides of a soft target.
    return target * positive_weight * present + (1 - target) * negative_weight * absent


def hill(
    logits: Tensor, target: Tensor, gamma: float = 2.0, margin: float = 1.0, bound: float = 1.5
) -> Tensor:
    """Hill loss: focal on p' = σ(z − margin) if present, (bound − p)·p² if absent.

    With the bound at 1.5 an absent label that the model is sure of (p near 1) is hardly learned.

    >>> hill(torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 1.0]]))
    tensor([[0.2500, 0.1733]])
    """
    logits = widened(logits)
    present, absent = sides(logits - margin)
    confidence = logits.sigmoid()
    positive = (-gamma * absent).exp() * present
    _check_shapes(logits, target)
    return target * positive + (1 - target) * (bound - confidence) * confidence**2


def splc(
    logits: Tensor, target: Tensor, tau: float = 0.6, margin: float = 1.0, gamma: float = 2.0
) -> Tensor:
    """Focal loss that counts absent labels with p > tau as present; present ones have a margin.

    At tau = 1 no label is corrected. A corrected label has no margin.

    >>> splc(torch.tensor([[0.0, 1.0, 1.0]]), torch.tensor([[0.0, 0.0, 1.0]]))
    tensor([[0.1733, 0.0227, 0.1733]])
    """
    logits = widened(logits)
    ones = torch.ones_like(logits)
    missing = (logits.sigmoid() > tau).to(logits.dtype)
    given_positive = focal(logits - margin, ones, gamma)
    return combine(target, given_positive, focal(logits, missing, gamma))


def entropy(logits: Tensor) -> Tensor:
    """Entropy of the prediction: the BCE to expect if the model is right.

    >>> entropy(torch.tensor([[0.0, 9.0]]))
    tensor([[0.6931, 0.0012]])
    """
    logits = widened(logits)
    present, absent = sides(logits)
    return logits.sigmoid() * present + (-logits).sigmoid() * absent


def widened(logits: Tensor) -> Tensor:
    """Convert half precision to float32; float64 stays."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def _check_shapes(logits: Tensor, target: Tensor) -> None:
    """Refuse logits that torch would stretch to the shape of the target."""
    if logits.shape != target.shape:
        shapes = f"{tuple(logits.shape)} and {tuple(target.shape)}"
        raise ValueError(f"logits and target must have the same shape, they are {shapes}")
