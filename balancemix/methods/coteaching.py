"""Co-teaching (Han et al., NeurIPS 2018), as a multi-label baseline of the BalanceMix paper.

Idea: two models make different errors. After a warm-up each separates, at the end of every epoch,
rows of small loss from rows of large loss by a mixture of two Gaussians; each then trains on the
rows that the *other* considers clean. A row is kept or dropped with all its labels.

    loss of a row = mean over K of BCE(given);   set of a = {rows: P(clean | loss under b) > 0.5}
    loss = mean over the set of a of BCE(a) + mean over the set of b of BCE(b)

Fields: `select` (off, both train on all rows), `alpha` (Mixup within the set, as in the paper's
protocol; 0 is none), `warmup` (epochs on all rows; None is a fifth), `mixture`, `min_labels` and
`separation` (see `fit_mixtures`). The label table shows what peer a trains on. The log has the
share of rows in each set (`kept_a`, `kept_b`) and, besides the scores of peer a, which is the one
saved, the mAP of the peers' mean probability (`mAP_ensemble`).

Cost: twice that of BCE, and a forward pass of both over the data each epoch, starting with the last
of the warm-up. BCE, for peer a, with `select` off and `alpha` 0 (except for dropout: the peers draw
their masks in turn). The loss is the sum over the peers. `train.clip` applies to both gradients
together: a large one scales down the other. With several processes the means are over each
process's part of the batch.

The loss of a row is over its labels that may be wrong: known ones that are not verified. A row
without any is never dropped. Verified labels of a dropped row are trained on all the same, unmixed.

Departure: the original drops a share of each batch that grows to the known noise rate; the paper
uses mixtures instead, which need no rate. Departure: where a set is smaller than two batches its
peer trains on all rows; the log counts these as `sets_too_small`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from balancemix.labels.mixtures import Fit, fit_losses, guard_counts, label_loss
from balancemix.labels.table import LabelMatrix, Status
from balancemix.methods.base import Batch, Method, Request, warm_epochs
from balancemix.methods.checks import require
from balancemix.methods.mixing import by_weight, draw_lambda, mix
from balancemix.methods.sampling import Batches
from balancemix.processes import Shard


class Peers(nn.Module):
    """Two models as one: both in training, (2, B, K); peer a in evaluation, (B, K).

    The optimisers treat each weight on its own, so one is as good as two.
    """

    def __init__(self, a: nn.Module, b: nn.Module) -> None:
        super().__init__()
        self.a, self.b = a, b

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """Pass `x` to a and, in training, `other` (by default `x`) to b."""
        logits: Tensor = self.a(x)
        if self.training:
            return torch.stack([logits, self.b(x if other is None else other)])
        return logits


def partners(kept: Tensor, generator: torch.Generator, shard: Shard | None = None) -> Tensor:
    """Permute the kept rows of a batch among themselves; each other row is its own partner.

    For a shard of a batch every process draws the same numbers, however many rows it keeps.

    >>> partners(torch.tensor([True, False, True, True]), torch.Generator().manual_seed(1))
    tensor([2, 1, 3, 0])
    """
    rows, partner = kept.nonzero()[:, 0], torch.arange(len(kept))
    if shard is None:
        order = torch.randperm(len(rows), generator=generator)
    else:
        order = shard.permutation(generator)[rows].argsort()
    partner[rows] = rows[order]
    return partner


@dataclass(kw_only=True)
class CoTeaching(Method):
    """See the module's docstring."""

    KEEPS = ("warm", "sets", "size")
    alpha: float = 4.0
    select: bool = True
    warmup: int | None = None
    mixture: Fit = "raw"
    min_labels: int = 10
    separation: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0, math.inf, warmup=self.warmup or 0, min_labels=self.min_labels)

    def start(
        self, given: LabelMatrix, epochs: int, seed: int = 0, verified: LabelMatrix | None = None
    ) -> Self:
        """Start with all rows in both sets."""
        super().start(given, epochs, seed, verified)
        self.warm = warm_epochs(self.warmup, epochs)
        self.sets = torch.ones(
            2, len(self.table), dtype=torch.bool
        )  # the rows that a trains on, and b
        self.size = 1  # rows in a batch, once known
        return self

    def build(self, make_model: Callable[[], nn.Module]) -> nn.Module:
        """Make two models, which start from different weights."""
        return Peers(make_model(), make_model())

    def members(self, model: nn.Module) -> list[nn.Module]:
        """Find both peers, whatever they are wrapped in."""
        for module in model.modules():
            if isinstance(module, Peers):
                return [module.a, module.b]
        raise ValueError("co-teaching trains two models: make them with method.build(make_model)")

    def batches(self, size: int, seed: int = 0) -> Batches:
        """Remember how many rows make a batch."""
        batches = super().batches(size, seed)
        self.size = batches.size
        return batches

    def request(self) -> Request:
        """Ask for plain confidence, starting with the last epoch of the warm-up."""
        return Request(passes=(0,) if self.select and self.epoch + 1 >= self.warm else ())

    def batch_loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Mix within each peer's set and add up their losses.

        A peer also sees the rows outside its set, with no weight: BatchNorm needs no labels, and a
        batch may hold few rows of a set, or none.
        """
        self.members(model)  # refuses a single model
        x, index = batch.x, batch.index.cpu()
        target, _ = self.table.rows(index, x.device)
        known, verified = self.table.given[index] >= 0, self.table.verified(index)
        kept, inputs, labels = self.sets[:, index], [], []
        shard = None if batch.shard.world == 1 else batch.shard
        for in_set in kept:
            partner = partners(in_set, self.generator, shard)
            lam = draw_lambda(self.alpha, self.generator)
            inputs.append(mix(x, x[partner], lam))
            weight = ((known & in_set[:, None]) | verified).to(target)
            both = (mix(each, each[partner], lam) for each in (weight * target, weight))
            labels.append(by_weight(*both))
        logits = model(*inputs)
        if logits.ndim != 3:
            raise ValueError("co-teaching trains two models: call model.train() first")
        targets, weights = (torch.stack(each) for each in zip(*labels, strict=True))
        values = self.criterion(logits, targets)  # (2, B, K)
        used = (kept | verified.any(1)).sum(1)
        share = len(x) / used.clamp(min=1)  # turns the batch mean into a set mean
        a, b = weights * share.to(values)[:, None, None] * values
        return self.reduce(a) + self.reduce(b)

    def end_epoch(self, *confidence: Tensor) -> dict[str, float]:
        """Update each peer's set by the other's losses; log the share of rows kept."""
        if not self.request().passes:
            return super().end_epoch()
        table, (rows, classes) = self.table, self.table.shape
        by_peer = self.checked(confidence, 2)[:2]
        doubtful = table.doubtful() >= 0
        count = doubtful.sum(1, keepdim=True)
        each_loss = [label_loss(table.given, each) * doubtful for each in by_peer]
        losses = torch.stack([each.sum(1) for each in each_loss], 1) / count.clamp(min=1)  # N×2
        judged = (count > 0).expand(losses.shape)
        rows_of = torch.where(judged, 1, -1)
        mixtures = fit_losses(
            rows_of,
            losses,
            fit=self.mixture,
            min_labels=self.min_labels,
            separation=self.separation,
        )
        clean = mixtures.posterior(torch.ones_like(losses), losses).masked_fill(~judged, 1.0)
        sets = (clean > 0.5).T.flip(0)  # each trains on what the other finds clean
        small = sets.sum(1) < 2 * self.size
        sets = sets | small[:, None]

        status = torch.where(sets[0, :, None], Status.CLEAN, Status.IGNORED)
        table.write(slice(None), status, clean[:, 1:].expand(rows, classes))
        self.sets, facts = sets, super().end_epoch()
        facts["kept_a"], facts["kept_b"] = sets.float().mean(1).tolist()
        if bool(small.any()):
            facts["sets_too_small"] = int(small.sum())
        return facts | guard_counts(mixtures.guard[1])
