"""Losses of a single label in BCE's place: focal, ASL and Hill.

Focal (Lin et al., ICCV 2017): a label counts for less the better it is predicted,
    y·(1 − p)^γ·(−log p) + (1 − y)·p^γ·(−log(1 − p)).
ASL (Ridnik et al., ICCV 2021): the many absent labels are focused harder than the present ones,
and not at all where p < clip: γ− for γ and max(p − clip, 0) for p on the absent side.
Hill (Zhang et al., 2021, "Simple and robust loss design for multi-label learning with missing
labels"): an absent label that the model is sure of is likely a missing one, and is let go,
    y·(1 − p')^γ·(−log p') + (1 − y)·(1.5 − p)·p²,  p' = σ(z − margin).

Fields: the constants above; `alpha` of Mixup. `strength` of Hill: 1 is Hill, 0 is BCE, between is
a blend of both. Cost: that of BCE.
BCE, with alpha = 0: focal at gamma = 0; ASL at both gammas and clip = 0; Hill at strength = 0,
since its absent side is no weighted BCE at any setting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from balancemix.methods import losses
from balancemix.methods.base import Method, require


@dataclass(kw_only=True)
class Focal(Method):
    """`gamma`: how much less a well predicted label counts."""

    alpha: float = 4.0
    gamma: float = 2.0

    def __post_init__(self) -> None:
        require(0, math.inf, gamma=self.gamma)

    def criterion(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute the focal loss."""
        return losses.focal(logits, target, self.gamma)


@dataclass(kw_only=True)
class ASL(Method):
    """`gamma_negative`, `gamma_positive`, `clip`, `detach`: see `losses.asl`."""

    alpha: float = 4.0
    gamma_negative: float = 4.0
    gamma_positive: float = 0.0
    clip: float = 0.05
    detach: bool = True

    def __post_init__(self) -> None:
        require(0, math.inf, gamma_negative=self.gamma_negative, gamma_positive=self.gamma_positive)
        require(0, 1, clip=self.clip)

    def criterion(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute the asymmetric loss."""
        gammas = self.gamma_negative, self.gamma_positive
        return losses.asl(logits, target, *gammas, self.clip, self.detach)


@dataclass(kw_only=True)
class Hill(Method):
    """`gamma`, `margin`, `bound`: see `losses.hill`. `strength`: from BCE (0) to Hill (1)."""

    alpha: float = 4.0
    gamma: float = 2.0
    margin: float = 1.0
    bound: float = 1.5
    strength: float = 1.0

    def __post_init__(self) -> None:
        require(0, math.inf, gamma=self.gamma)
        require(0, 1, strength=self.strength)

    def criterion(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute the Hill loss."""
        own = losses.hill(logits, target, self.gamma, self.margin, self.bound)
        return torch.lerp(losses.bce(logits, target).to(own.dtype), own, self.strength)
