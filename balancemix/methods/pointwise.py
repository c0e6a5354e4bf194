"""Losses of a single label in BCE's place: focal, ASL, Hill and SPLC.

Focal (Lin et al., ICCV 2017): a label counts less the better it is predicted,
    y·(1 − p)^γ·(−log p) + (1 − y)·p^γ·(−log(1 − p)).
ASL (Ridnik et al., ICCV 2021): the many absent labels are focused harder than the present ones,
and not learned at all where p < clip: γ− for γ and max(p − clip, 0) for p on the absent side.
Hill (Zhang et al., 2021, "Simple and robust loss design for multi-label learning with missing
labels"): an absent label that the model is sure of is probably a missing one, and has little loss,
    y·(1 − p')^γ·(−log p') + (1 − y)·(1.5 − p)·p²,  p' = σ(z − margin).
SPLC (the same paper): a model finds missing positives early, with few errors, so an absent label
that it is confident of counts as present in that step. Given positives must be learned by a margin:
    y·F+(z − margin) + (1 − y)·(F+(z) if p > τ else F−(z)),  F±: the sides of the focal loss.

Fields: the constants above; `alpha` of Mixup. `strength` of Hill: 1 is Hill, 0 is BCE, between is
a blend of both. `warmup` of SPLC: epochs without correction. Cost: that of BCE.
BCE, with alpha = 0: focal at gamma = 0; ASL at both gammas and clip = 0; Hill at strength = 0,
since no setting makes its absent side a weighted BCE; SPLC at tau = 1 and margin = gamma = 0.

An unknown label has no loss. A verified absent one is no missing label: Hill gives it BCE's loss,
−log(1 − p), and SPLC never corrects it. Focal and ASL weigh labels by how hard they are, verified
or not.

Departure: SPLC takes each side of a soft target (Mixup's) by its share; the published code expects
hard targets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from balancemix.methods import losses
from balancemix.methods.base import Method
from balancemix.methods.checks import require


@dataclass(kw_only=True)
class Focal(Method):
    """`gamma`: how much less a well-predicted label counts."""

    alpha: float = 4.0
    gamma: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
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
        super().__post_init__()
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
        super().__post_init__()
        require(0, math.inf, gamma=self.gamma)
        require(0, 1, strength=self.strength)

    def criterion(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute the Hill loss."""
        hill = losses.hill(logits, target, self.gamma, self.margin, self.bound)
        return torch.lerp(losses.bce(logits, target).to(hill.dtype), hill, self.strength)

    def criterion_of_verified(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute Hill's loss of present labels, and BCE's of absent ones."""
        absent = losses.sides(logits)[1]
        present = self.criterion(logits, torch.ones_like(target))
        return losses.combine(target, present, absent)


@dataclass(kw_only=True)
class SPLC(Method):
    """`tau`, `margin`, `gamma`: see `losses.splc`. `warmup`: epochs without correction."""

    alpha: float = 4.0
    tau: float = 0.6
    margin: float = 1.0
    gamma: float = 2.0
    warmup: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0, 1, tau=self.tau)
        require(0, math.inf, gamma=self.gamma, warmup=self.warmup)

    def criterion(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute the focal loss of the labels, corrected after the warm-up."""
        tau = self.tau if self.epoch >= self.warmup else 1.0
        return losses.splc(logits, target, tau, self.margin, self.gamma)

    def criterion_of_verified(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute the focal loss of labels that need no correction."""
        return losses.splc(logits, target, 1.0, self.margin, self.gamma)
