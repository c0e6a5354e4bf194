"""T-estimator (Li et al., NeurIPS 2022): noise rates from label correlations, then re-weighting.

Idea: train for a while; assume that labels of small loss are right; with them solve for each
class's rates ρ0 = Pr(given 1 | true 0) and ρ1 = Pr(given 0 | true 1) (see `noise_rates`); then
continue with each label weighted so that the loss is, on average, that of true labels:

    loss = Σ_k w_k · BCE(x, y_k),   w = Pr(y | x) / Pr(given y | x), a constant in each step

With Mixup each of the two labels has its weight: λ·w_a·BCE(z, y_a) + (1 − λ)·w_b·BCE(z, y_b).

Fields: `alpha` (of Mixup, in both phases; 0 is none), `reweight` (off, it is Mixup), `warmup` (the
epochs before the estimate; None is a fifth, at least one), `one_sided` and `min_labels` (see
`estimate_noise_rates`). The label table shows which labels the estimate uses; the weights w change
in each step and are not in the table.

Unknown labels take no part in the estimate, and have no weight. Verified ones are among those that
are assumed right, but are not counted as noisy, and their weight is 1.

Cost: that of BCE, and a forward pass over the data in each of the warm-up's last five epochs. BCE
with `reweight` off and `alpha` 0.

Departure: the paper holds rows out and uses the warm-up's epoch of least loss on them; methods see
no validation data here, so the last epoch is used. Departure: training continues with the same
weights, optimiser and schedule, as for every method, instead of starting over from that epoch.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from balancemix.judge.noise_rates import (
    NoiseRates,
    Side,
    estimate_noise_rates,
    importance,
    pick,
    scaled_losses,
)
from balancemix.labels.table import LabelMatrix, Status
from balancemix.methods.base import Batch, Method, Request, warm_epochs
from balancemix.methods.checks import require
from balancemix.methods.mixing import draw_lambda, mix

_AVERAGED = 5  # epochs over which losses are averaged


@dataclass(kw_only=True)
class TEstimator(Method):
    """See the module's docstring."""

    KEEPS = ("warm", "losses", "rates")
    alpha: float = 4.0
    reweight: bool = True
    warmup: int | None = None
    one_sided: Side | None = None
    min_labels: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            1,
            math.inf,
            warmup=1 if self.warmup is None else self.warmup,
            min_labels=self.min_labels,
        )

    def start(
        self, given: LabelMatrix, epochs: int, seed: int = 0, verified: LabelMatrix | None = None
    ) -> Self:
        """Start without rates."""
        super().start(given, epochs, seed, verified)
        self.warm = warm_epochs(self.warmup, epochs)
        self.losses = torch.zeros(self.table.shape)  # N×K, summed over epochs
        self.rates: NoiseRates | None = None
        return self

    def request(self) -> Request:
        """Ask for plain confidence in the last epochs of the warm-up."""
        averaged = self.reweight and self.warm - _AVERAGED <= self.epoch < self.warm
        return Request(passes=(0,) if averaged else ())

    def batch_loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Mix the batch, and weight the labels of both rows of each pair by the rates."""
        if self.rates is None:
            return super().batch_loss(model, batch)
        x = batch.x
        target, _ = self.table.rows(batch.index, x.device)
        index = batch.index.cpu()
        known = (self.table.given[index] >= 0).to(target)
        verified = self.table.verified(index).to(x.device)
        partner = batch.shard.permutation(self.generator)
        lam = draw_lambda(self.alpha, self.generator)
        logits = model(mix(x, x[partner], lam))
        confidence = logits.detach().float().sigmoid()
        rates = self.rates.rho0.to(confidence), self.rates.rho1.to(confidence)
        first, second = (
            counts
            * importance(labels, confidence, *rates).masked_fill(sure, 1.0)
            * self.criterion(logits, labels)
            for labels, counts, sure in (
                (target, known, verified),
                (target[partner], known[partner], verified[partner]),
            )
        )
        return self.reduce(mix(first, second, lam))

    def end_epoch(self, *confidence: Tensor) -> dict[str, float]:
        """Add up the losses; at the end of the warm-up estimate the rates and log them."""
        if not self.request().passes:
            return super().end_epoch()
        given, plain = self.table.given, self.checked(confidence)[0]
        losses = self.losses + scaled_losses(given, plain)
        facts: dict[str, float] = {}
        if self.epoch + 1 == self.warm:
            averaged = losses / min(self.warm, _AVERAGED)
            facts = self._estimate(plain, pick(self.table.doubtful(), averaged))
        self.losses = losses
        return super().end_epoch() | facts

    def _estimate(self, confidence: Tensor, clean: Tensor) -> dict[str, float]:
        """Estimate the rates from the labels that are probably clean; return numbers to log."""
        given = self.table.given
        if self.one_sided is not None:
            clean = clean.masked_fill(given == (self.one_sided == "positives"), 1.0)
        selected = clean > 0.5
        rates = estimate_noise_rates(
            given,
            confidence,
            selected,
            verified=self.table.verified(),
            one_sided=self.one_sided,
            min_labels=self.min_labels,
        )
        status = torch.where(selected, Status.CLEAN, Status.AMBIGUOUS)
        self.table.write(slice(None), status, clean)
        self.rates = rates
        means = {"rho0": float(rates.rho0.mean()), "rho1": float(rates.rho1.mean())}
        ways = sorted(Counter(rates.how).items())
        return means | {f"rates_{way.replace(' ', '_')}": count for way, count in ways}
