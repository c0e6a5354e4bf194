"""EM-APL (Zhou et al., ECCV 2022): acknowledge the unknown, for few given positives.

Idea: a label that is not given as positive is unknown, so the model is trained to be unsure of it
(EM, entropy maximisation). Most unknowns are negative: after a warm-up, in each epoch an equal
number of each class's least confident unknowns become soft negatives, at the model's confidence
(APL, asymmetric pseudo-labels).

    given positive −log p;  unknown −a·H(p);  pseudo-negative b·BCE(p, s),  s = p when it was chosen

Fields: `entropy`, a above, and `pseudo`, b above: 0.1 and 0.9 on COCO, 0.2 and 0.02 on VOC.
`share` of each class's unknowns that become pseudo-negatives. `warmup`, epochs before the first;
None is half of all. `strength`: 1 is EM-APL, 0 is BCE, between is a blend of both. `alpha` of
Mixup, which mixes the losses of the two rows; for BCE that equals mixing the labels.
Cost: that of BCE and, after the warm-up, a forward pass over the data each epoch.
BCE where strength = alpha = 0.

Labels given as 0 and as −1 are both unknown here; in the blend's BCE a 0 is a negative, and −1 has
no weight. A verified absent label is known: its loss is −log(1 − p), and it is no pseudo-negative.

In the table unknowns are IGNORED and pseudo-negatives ABSENT with target s; b is not in the table.
Departure: the authors take the logarithm of p + 1e-5, here it is exact; no early stopping.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from balancemix.labels.table import LabelMatrix, Status
from balancemix.methods import losses
from balancemix.methods.base import Batch, Method, Request
from balancemix.methods.checks import require


def least_confident(confidence: Tensor, unknown: Tensor, count: Tensor) -> Tensor:
    """Mark, in each class, its `count` unknown labels of lowest confidence; all N×K, count K.

    >>> confidence = torch.tensor([[0.1], [0.2], [0.3]])
    >>> least_confident(confidence, torch.tensor([[False], [True], [True]]), torch.tensor([1])).T
    tensor([[False,  True, False]])
    """
    order = confidence.masked_fill(~unknown, torch.inf).argsort(dim=0, stable=True)
    first = torch.arange(len(confidence))[:, None] < count
    return torch.zeros_like(unknown).scatter(0, order, first) & unknown


@dataclass(kw_only=True)
class EMAPL(Method):
    """`entropy`, `pseudo`, `share`, `warmup`, `strength`: see the module's docstring."""

    KEEPS = ("warm",)
    alpha: float = 4.0
    entropy: float = 0.1
    pseudo: float = 0.9
    share: float = 0.9
    warmup: int | None = None
    strength: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0, 1, share=self.share, strength=self.strength)
        require(0, math.inf, entropy=self.entropy, pseudo=self.pseudo)
        if self.warmup is not None:
            require(0, math.inf, warmup=self.warmup)

    def start(
        self, given: LabelMatrix, epochs: int, seed: int = 0, verified: LabelMatrix | None = None
    ) -> Self:
        """Start with every label unknown that is not a given positive."""
        super().start(given, epochs, seed, verified)
        self.warm = epochs // 2 if self.warmup is None else self.warmup
        positive = self.table.given > 0
        self.table.write(slice(None), torch.where(positive, Status.CLEAN, Status.IGNORED))
        self.table.soft = positive.float()
        return self

    def request(self) -> Request:
        """Ask for confidence from the end of the warm-up, while an epoch is left to use it in."""
        return Request(passes=(0,) if self.warm <= self.epoch + 1 < self.epochs else ())

    def batch_loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Weight both sides of each label, and its entropy, by what is known of the mixed rows."""
        target, weight = self.table.rows(batch.index, batch.x.device)
        index = batch.index.cpu()
        status, labels = (
            matrix[index].to(batch.x.device) for matrix in (self.table.status, self.table.given)
        )
        given, not_given = (labels > 0).to(target), (labels == 0).to(target)
        unknown = 1 - weight
        weight = torch.where(status == Status.ABSENT, self.pseudo, weight)
        # Each loss is linear in these, so mixing them mixes the losses.
        known = torch.stack([given, not_given, weight * target, weight * (1 - target), unknown], 1)
        x, known = self.mixed(batch, batch.x, known)
        given, not_given, positive, negative, unknown = known.unbind(1)
        logits = model(x)
        present, absent = losses.sides(logits)
        em_apl = losses.weigh(positive, negative, present, absent)
        em_apl = em_apl - self.entropy * unknown * losses.entropy(logits)
        bce = losses.weigh(given, not_given, present, absent)
        return self.reduce(torch.lerp(bce, em_apl, self.strength))

    def end_epoch(self, *confidence: Tensor) -> dict[str, float]:
        """Give the least confident unknowns a soft negative label."""
        table = self.table
        unknown = table.status == Status.IGNORED
        if self.request().passes:
            plain = self.checked(confidence)[0]
            each = self.share / (self.epochs - self.warm)
            count = (each * ((table.given <= 0) & ~table.verified()).sum(0)).long()
            chosen = least_confident(plain, unknown, count)
            soft = torch.where(chosen, plain, table.rows(slice(None))[0])
            table.write(slice(None), table.status.masked_fill(chosen, Status.ABSENT))
            table.soft = soft
            unknown = unknown & ~chosen
        return super().end_epoch() | {"unknown": float(unknown.float().mean())}
