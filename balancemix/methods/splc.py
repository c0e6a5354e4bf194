"""SPLC: self-paced loss correction (Zhang et al., 2021), for missing labels.

Idea: a model finds missing positives early, with few errors: an absent label that it is confident
of is taken for a present one in that step. Given positives must be learned by a margin.

    y·F+(z − margin) + (1 − y)·(F+(z) if p > τ else F−(z)),  F±: the sides of the focal loss

Fields: `tau`, τ above; `margin`; `gamma` of the focal loss; `warmup`, epochs without correction;
`alpha` of Mixup. Cost: that of BCE. BCE where tau = 1, margin = gamma = alpha = 0.

Departure: soft targets of Mixup take each side by its share; the published code knows hard ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from balancemix.methods import losses
from balancemix.methods.base import Method, require


@dataclass(kw_only=True)
class SPLC(Method):
    """`tau`, `margin`, `gamma`: see `losses.splc`. `warmup`: epochs without correction."""

    alpha: float = 4.0
    tau: float = 0.6
    margin: float = 1.0
    gamma: float = 2.0
    warmup: int = 1

    def __post_init__(self) -> None:
        require(0, 1, tau=self.tau)
        require(0, math.inf, gamma=self.gamma, warmup=self.warmup)

    def criterion(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute the focal loss of labels corrected after the warm-up."""
        tau = self.tau if self.epoch >= self.warmup else 1.0
        return losses.splc(logits, target, tau, self.margin, self.gamma)
