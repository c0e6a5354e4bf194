"""BalanceMix (Song, Kim and Lee, AAAI 2024): balanced sampling and label-wise refinement in Mixup.

Idea: mix each uniform row (share λ ≥ 0.5) with a row from a sampler that prefers labels of low
confidence; before that, decide for every single label whether it is clean, can be re-labelled,
or is ambiguous and counts for less.

    x = λ·x_R + (1 − λ)·x_M,  y likewise                                            (Eq. 5)
    loss = Σ_{C ∪ R} BCE(x, y_k) + Σ_U P(clean)_k · BCE(x, y_k)                     (Eq. 10)

Switches, one for each row of the paper's ablation (Table 4): `mix`, `minority` (the partner comes
from the minority sampler, otherwise it is a permutation of the batch), `select` (clean labels by
mixtures), `relabel` (Eq. 9) and `reweight` (ambiguous labels by P(clean) rather than dropped).
With `mix` and `select` off it is BCE; with `minority` and `select` off it is Mixup.

Cost: a forward pass over the data each epoch and, after the warm-up, forward passes of two views
in each step, of the random rows (mode "online") or of all its rows (mode "paper", Algorithm 1), or
of all rows once an epoch (mode "epoch").
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from balancemix import processes
from balancemix.judge.held_out import LabelErrors
from balancemix.labels.chunks import chunks
from balancemix.labels.mixtures import Fit, Guard, Mixtures, fit_mixtures
from balancemix.labels.table import manage, training_labels
from balancemix.methods.base import Input, Method, checked, first_view, require, warm_epochs
from balancemix.methods.losses import asl, bce, focal
from balancemix.methods.mixing import draw_lambda, mix
from balancemix.methods.sampling import Score, effective_rows, minority_odds
from balancemix.models.classifier import evaluating


@dataclass(kw_only=True)
class BalanceMix(Method):
    """See the module's docstring; what the fields mean:

    warmup: epochs on given labels, mixed as in Algorithm 1; None is a fifth of all (see `settle`).
    alpha: of the Beta distribution that λ comes from. lambda_per: one λ a "batch" or a "pair".
    epsilon: confidence beyond which a doubted label is re-labelled. The paper's is 0.975, and 0.55
    for single positives; "auto" is 0.975 (see `settle`).
    mode: where labels are re-labelled: in each step ("paper", Algorithm 1), in the step for the
    random rows alone ("online"), or once an epoch ("epoch", the cheapest); see `refine`.
    trust_positives: given positives are never doubted (for data whose labels are only missing);
    "auto" is left to `settle`, which a pilot calls, and they are doubted until then.
    score, power: see `minority_odds`. mixture, fewest, separation: see `fit_mixtures`.
    blend: mix the weights of the two rows as their labels are, rather than use the random row's.
    base_loss: what a label's loss is; focal and asl with their own defaults (for Table 5).
    warmup_mix: off, the warm-up is plain BCE, as the paper's §4.3 (not its Algorithm 1) says.
    """

    mix: bool = True
    minority: bool = True
    select: bool = True
    relabel: bool = True
    reweight: bool = True
    warmup: int | None = None
    alpha: float = 4.0
    lambda_per: Literal["batch", "pair"] = "batch"
    epsilon: float | Literal["auto"] = "auto"
    mode: Literal["epoch", "online", "paper"] = "epoch"
    trust_positives: bool | Literal["auto"] = "auto"
    score: Score = "paper"
    power: float = 1.0
    mixture: Fit = "raw"
    fewest: int = 10
    separation: float = 0.0
    blend: bool = False
    warmup_mix: bool = True
    base_loss: Literal["bce", "focal", "asl"] = "bce"

    def __post_init__(self) -> None:
        if self.epsilon != "auto":
            require(0.5, 1, epsilon=self.epsilon)
        require(0, math.inf, alpha=self.alpha, warmup=self.warmup or 0)
        self.found: dict[str, float] = {}  # by `settle`

    def start(self, labels: Tensor, epochs: int, seed: int = 0) -> Self:
        """Begin with uniform odds and every label trusted."""
        super().start(labels, epochs, seed)
        self.warm = warm_epochs(self.warmup, epochs)
        self.mixtures: Mixtures | None = None
        self.threshold = 0.975 if self.epsilon == "auto" else self.epsilon
        self.trusting = self.trust_positives is True
        self.found = {}
        if self.mix and self.minority:
            self.odds = torch.full((len(labels),), 1 / len(labels), dtype=torch.float64)
        return self

    @property
    def unsettled(self) -> bool:
        """Is something left to be chosen from the data?"""
        return self.select and not self.found and self.trust_positives == "auto"

    def settle(self, errors: LabelErrors) -> None:
        """Choose what was left to the data: positives are trusted where labels are only missing.

        Departure: the paper lowers ε to 0.55 for single positives. On held-out training rows
        (docs/results.md) no ε below 0.975 did better there or elsewhere, so "auto" is 0.975.
        Departure: half a warm-up where most positives are wrong, before those are learnt by heart.
        """
        if self.trust_positives == "auto":
            self.trusting = errors.only_missing
        if self.warmup is None and errors.mostly_wrong:
            self.warm = max(self.warm // 2, 1)
        chosen = {"epsilon": self.threshold, "warmup": self.warm, "trust_positives": self.trusting}
        self.found = vars(errors) | {name: float(value) for name, value in chosen.items()}

    def criterion(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compare by the loss asked for; the mixtures are always of BCE."""
        return {"bce": bce, "focal": focal, "asl": asl}[self.base_loss](logits, target)

    @property
    def warming(self) -> bool:
        """Is this an epoch of the warm-up?"""
        return self.epoch < self.warm

    @property
    def views(self) -> int:
        """Two where labels are refined in the step."""
        in_step = self.select and self.relabel and self.mode != "epoch"
        return 2 if in_step and not self.warming else 1

    @property
    def needs_confidence(self) -> bool:
        """Every epoch: for the odds, and after the warm-up for the mixtures."""
        return True

    @property
    def confidence_views(self) -> int:
        """Two in mode "epoch": one pass then serves odds, mixtures and re-labelling.

        Departure: the mode is ours, and the default: it costs least and scores as Algorithm 1 does
        (docs/results.md). So is this: a plain pass besides would cost half as much again.
        """
        folded = self.mode == "epoch" and self.select and self.relabel
        return 2 if folded and self.epoch + 1 >= self.warm else 0

    @property
    def needs_views(self) -> bool:
        """After the last epoch, for the final record, where the table has not seen views."""
        used = self.select and self.relabel and self.mode != "epoch"
        return used and self.epoch + 1 == self.epochs >= self.warm

    def loss(self, model: nn.Module, x: Input, index: Tensor) -> Tensor:
        """Refine the labels of a batch, mix its two halves, and compute Eq. 10."""
        target, weight = self.refine(model, x, index)
        x = first_view(x)
        if not self.mix:
            return self.reduce(weight * self.criterion(model(x), target))
        if self.odds is not None:  # the sampler put the minority rows behind the random ones
            (x, other), (target, wanted) = x.chunk(2), target.chunk(2)
            weight, other_weight = weight.chunk(2)
        else:
            partner = self.part_of(len(x)).permutation(self.generator)
            other, wanted, other_weight = x[partner], target[partner], weight[partner]
        if self.warming and not self.warmup_mix:
            return self.reduce(self.criterion(model(x), target))

        pairs = self.part_of(len(x)) if self.lambda_per == "pair" else 1
        lam = draw_lambda(self.alpha, self.generator, pairs)
        if self.blend:
            weight = mix(weight, other_weight, lam)
        # Otherwise the reliability is the random row's, which dominates the mix (§4.3).
        logits = model(mix(x, other, lam))
        return self.reduce(weight * self.criterion(logits, mix(target, wanted, lam)))

    def refine(self, model: nn.Module, x: Input, index: Tensor) -> tuple[Tensor, Tensor]:
        """Look up target and weight; unless once an epoch, decide doubted labels by the views.

        Departure: in mode "online" the labels of minority rows, which are the smaller part of the
        mix, stay as the table has them, decided by the plain confidence when the epoch began:
        Algorithm 1 (mode "paper") spends half of its views on them, and the scores are the same
        (docs/results.md). Given one view only (a plain loop's own data), it decides alone.
        """
        views = [x] if isinstance(x, Tensor) else list(x)
        device = views[0].device
        target, weight = self.table.rows(index, device)
        if self.views < 2 or self.mixtures is None:
            return target, weight
        if self.odds is not None and self.mode == "online":  # minority rows are the second half
            index = index[: len(index) // 2]
        index = index.cpu()
        given, clean = self.table.given[index].to(device), self.table.clean[index].to(device)
        doubted = (clean <= 0.5).any(1).nonzero()[:, 0]
        if not len(doubted):
            return target, weight
        judge = processes.bare(model)
        with evaluating(judge):  # also keeps the views out of BatchNorm's statistics
            said = judge(torch.cat([view[doubted] for view in views])).float().sigmoid()
        confidence = said.view(len(views), len(doubted), -1).mean(0)
        given, clean = given[doubted], clean[doubted]
        status = self._manage(given, clean, confidence)
        target[doubted], weight[doubted] = training_labels(given, status, clean)
        return target, weight

    def end_epoch(
        self, confidence: Tensor | None = None, view_confidence: Tensor | None = None
    ) -> dict[str, float]:
        """Renew odds (Eqs. 2–4), mixtures (Eqs. 6–8) and the table; count what was decided.

        Without `view_confidence` the table's record of re-labelling rests on the plain confidence.
        """
        table, judging = self.table, self.select and self.epoch + 1 >= self.warm
        confidence = checked(table.given, confidence)
        views = None if view_confidence is None else checked(table.given, view_confidence)
        facts = super().end_epoch()
        if self.epoch == 1:
            facts |= self.found
        if self.odds is not None:
            self.odds = minority_odds(table.given, confidence, self.power, self.score)
            facts["effective_rows"] = effective_rows(self.odds)
        if not judging:
            return facts
        self.mixtures = fit_mixtures(
            table.given,
            confidence,
            fit=self.mixture,
            fewest=self.fewest,
            separation=self.separation,
        )
        for rows in chunks(*table.shape):
            given = table.given[rows]
            clean = self.mixtures.clean(given, confidence[rows])
            clean = torch.where(given > 0, 1.0, clean) if self.trusting else clean
            seen = confidence[rows] if views is None else views[rows]
            table.write(rows, self._manage(given, clean, seen), clean)
        facts |= table.shares()
        for guard in Guard:
            if guard and (count := int((self.mixtures.guard == guard).sum())):
                facts[f"mixtures_{guard.name.lower()}"] = count
        return facts

    def _manage(self, given: Tensor, clean: Tensor, confidence: Tensor) -> Tensor:
        return manage(
            given,
            clean,
            confidence,
            self.threshold,
            relabel=self.relabel,
            reweight=self.reweight,
        )

    def state_dict(self) -> dict[str, Any]:
        """Add the mixtures."""
        mixtures = None if self.mixtures is None else vars(self.mixtures)
        chosen = {"threshold": self.threshold, "trusting": self.trusting, "found": self.found}
        return {**super().state_dict(), "warm": self.warm, "mixtures": mixtures, **chosen}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Go on where `state_dict` was taken."""
        super().load_state_dict(state)
        self.warm, self.found = state["warm"], state["found"]
        self.threshold, self.trusting = state["threshold"], state["trusting"]
        self.mixtures = state["mixtures"] and Mixtures(**state["mixtures"])
        return self
