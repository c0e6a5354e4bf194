"""BalanceMix (Song, Kim and Lee, AAAI 2024): balanced sampling and label-wise refinement in Mixup.

Idea: mix each uniform row (share λ ≥ 0.5) with a row from a sampler that prefers labels of low
confidence; before that, decide for every single label whether it is clean, can be re-labelled,
or is ambiguous and counts less.

    x = λ·x_R + (1 − λ)·x_M,  y likewise                                            (Eq. 5)
    loss = Σ_{C ∪ R} BCE(x, y_k) + Σ_U P(clean)_k · BCE(x, y_k)                     (Eq. 10)

Switches, one for each row of the paper's ablation (Table 4): `mix`, `minority` (the partner comes
from the minority sampler, otherwise it is a permutation of the batch), `select` (clean labels by
mixtures), `relabel` (Eq. 9, unless "off") and `reweight` (ambiguous labels are weighted by P(clean)
rather than dropped).
With `mix` and `select` off it is BCE; with `minority` and `select` off it is Mixup.

Unknown labels take no part in Eqs. 2–4, 6 and 7, nor in the loss until two views agree (Eq. 9).
Verified ones take no part in Eqs. 6 and 7, and have full weight (see `mix_parts`).

Cost: a forward pass over the data each epoch. After the warm-up also forward passes of two views:
in each step, of the random rows (`relabel` "online") or of all its rows ("paper", Algorithm 1), or
once an epoch of all rows ("epoch").

Departure: with `start_from` "judge" there is no warm-up. Odds, mixtures and re-labelling start from
the confidence of a judge (docs/judge.md) that has not learned the labels; with `judge_only` they
stay so, and no pass over the data is needed.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal, Self

import torch
from torch import Tensor, nn

from balancemix import interrupts, processes
from balancemix.judge.held_out import LabelErrors, estimate_errors
from balancemix.judge.opinion import Opinion
from balancemix.judge.ridge import Ridge
from balancemix.labels.chunks import chunks
from balancemix.labels.mixtures import Fit, Mixtures, fit_mixtures, guard_counts
from balancemix.labels.table import LabelMatrix, manage, training_labels
from balancemix.methods.base import Batch, Method, Request, warm_epochs
from balancemix.methods.checks import check_informed, require
from balancemix.methods.losses import asl, bce, focal
from balancemix.methods.mixing import Part, Weighted, draw_lambda, mix, mix_parts
from balancemix.methods.sampling import Score, effective_rows, minority_odds
from balancemix.models.classifier import evaluating

Relabel = Literal["epoch", "online", "paper", "off"]


@dataclass(kw_only=True)
class BalanceMix(Method):
    """The module's docstring explains the switches; the other fields:

    warmup: epochs on given labels, mixed as in Algorithm 1; None is a fifth (see `decided_by`).
    alpha: parameter of λ's Beta distribution. lambda_per: one λ for each "batch" or "pair".
    epsilon: confidence beyond which a doubted label is re-labelled. The paper uses 0.975, and 0.55
    for single positives; "auto" is 0.975 (see `decided_by`).
    relabel: when labels are re-labelled: in each step ("paper", Algorithm 1), in the step for the
    random rows only ("online"), once an epoch ("epoch", the cheapest), or never ("off"); see
    `managed`.
    trust_positives: never doubt given positives (for data whose labels are only missing); "auto"
    lets a pilot decide (see `decided_by`), and without a pilot doubts them.
    score, power: see `minority_odds`. mixture, min_labels, separation: see `fit_mixtures`.
    blend: mix the weights of the two rows like their labels, rather than use the random row's.
    base_loss: the loss of a label; focal and asl with their usual constants (for Table 5).
    warmup_mix: off, the warm-up is plain BCE, as in the paper's §4.3 (not its Algorithm 1).
    start_from, judge_only: "warmup" or "judge", and whether the model is never asked in its place.
    """

    KEEPS = ("warm", "mixtures", "threshold", "trusting", "chosen")
    alpha: float = 4.0
    mix: bool = True
    minority: bool = True
    select: bool = True
    relabel: Relabel = "epoch"
    reweight: bool = True
    warmup: int | None = None
    lambda_per: Literal["batch", "pair"] = "batch"
    epsilon: float | Literal["auto"] = "auto"
    trust_positives: bool | Literal["auto"] = "auto"
    score: Score = "paper"
    power: float = 1.0
    mixture: Fit = "raw"
    min_labels: int = 10
    separation: float = 0.0
    blend: bool = False
    warmup_mix: bool = True
    base_loss: Literal["bce", "focal", "asl"] = "bce"
    start_from: Literal["warmup", "judge"] = "warmup"
    judge_only: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon != "auto":
            require(0.5, 1, epsilon=self.epsilon)
        require(0, math.inf, warmup=self.warmup or 0, power=self.power, min_labels=self.min_labels)
        if self.judge_only and not self.needs_opinion:
            raise ValueError("judge_only needs start_from='judge'")
        self.errors: LabelErrors | None = None  # by which settings were decided
        self.opinion: Opinion | None = None  # to start from

    def start(
        self, given: LabelMatrix, epochs: int, seed: int = 0, verified: LabelMatrix | None = None
    ) -> Self:
        """Start with uniform odds and every label trusted, or with what the judge says."""
        if self.needs_opinion:
            check_informed(self.opinion, "BalanceMix(start_from='judge')")
        super().start(given, epochs, seed, verified)
        self.warm = 0 if self.needs_opinion else warm_epochs(self.warmup, epochs)
        self.mixtures: Mixtures | None = None
        self.threshold = 0.975 if self.epsilon == "auto" else self.epsilon
        self.trusting = self.trust_positives is True
        self.chosen: dict[str, float] = {}  # the errors, and the settings decided by them
        if self.errors is not None:
            if self.warmup is None and self.errors.mostly_wrong:
                self.warm = max(self.warm // 2, 1)
            chosen = (("epsilon", self.threshold), ("warmup", self.warm))
            self.chosen = vars(self.errors) | {name: float(value) for name, value in chosen}
            self.chosen["trust_positives"] = float(self.trusting)
        if self.mix and self.minority:
            self.odds = torch.full((len(self.table),), 1 / len(self.table), dtype=torch.float64)
        if self.opinion is not None:
            (plain,) = self.checked((self.opinion.confidence,))
            if self.trust_positives == "auto":
                self.trusting = estimate_errors(self.table.doubtful(), plain).only_missing
            self._adopt(*self._estimates(plain), plain, plain)
        return self

    @property
    def undecided(self) -> bool:
        """Whether a pilot is to decide if given positives are trusted."""
        return self.select and self.trust_positives == "auto" and not self.needs_opinion

    def decided_by(self, errors: LabelErrors) -> Self:
        """Copy the method, and trust given positives where labels are only missing.

        Departure: the paper lowers ε to 0.55 for single positives. On held-out training rows
        (docs/results.md) no ε below 0.975 did better there or elsewhere, so "auto" is 0.975.
        Departure: half a warm-up where most positives are wrong, before the model memorises them.
        """
        trusted = errors.only_missing if self.trust_positives == "auto" else self.trust_positives
        method = dataclasses.replace(self, trust_positives=trusted)
        method.errors = errors
        return method

    @property
    def needs_opinion(self) -> bool:
        """Whether the judge takes the place of the warm-up."""
        return self.start_from == "judge"

    def informed_by(self, opinion: Opinion, ridge: Ridge | None) -> Self:
        """Copy the method to start from the judge's confidence, which also replaces the pilot."""
        method = dataclasses.replace(self)
        method.opinion = opinion
        return method

    def criterion(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute the `base_loss`; the mixtures always use BCE."""
        return {"bce": bce, "focal": focal, "asl": asl}[self.base_loss](logits, target)

    @property
    def warming(self) -> bool:
        """Whether this is an epoch of the warm-up."""
        return self.epoch < self.warm

    @property
    def manages_in_step(self) -> bool:
        """Whether the labels of a batch are decided in its step, by two views."""
        in_step = self.select and self.relabel in ("online", "paper")
        return in_step and not self.warming and not self.judge_only

    def request(self) -> Request:
        """Ask for a pass in each epoch: for the odds and, after the warm-up, for the mixtures.

        With `relabel` "online" and "paper" labels are re-labelled by two views in the steps after
        the warm-up, and by two views once more at the end of training, for the stored table. With
        "epoch" one pass over two views serves odds, mixtures and re-labelling.

        Departure: "epoch" is ours, and the default: it costs least and scores as Algorithm 1 does
        (docs/results.md). A plain pass as well would cost half as much again.
        """
        if self.judge_only:
            return Request()
        relabels = self.select and self.relabel != "off" and self.epoch + 1 >= self.warm
        if self.relabel == "epoch":
            return Request(passes=(2,) if relabels else (0,))
        last = relabels and self.epoch + 1 == self.epochs
        return Request(2 if self.manages_in_step else 1, (0, 2) if last else (0,))

    def batch_loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Manage the labels of a batch, mix its two halves, and compute Eq. 10."""
        target, weight = self.table.rows(batch.index, batch.x.device)  # line 7: as given, at first
        if self.manages_in_step and self.mixtures is not None:
            target, weight = self.managed(model, batch, target, weight)  # line 13: Eqs. 8 and 9
        x, (target, weight) = self.paired(batch, target, weight)  # lines 9 and 14: Eq. 5
        return self.reduce(weight * self.criterion(model(x), target))  # lines 10, 15: Eqs. 1, 10

    def paired(self, batch: Batch, target: Tensor, weight: Tensor) -> tuple[Tensor, Weighted]:
        """Mix random rows with minority rows or, without those, with a permutation of the batch."""
        x, half = batch.x, (len(batch.x) + 1) // 2
        if not self.mix:
            return x, Weighted(target, weight)
        random: slice = slice(half)  # followed by the minority rows
        partner: slice | Tensor = slice(half, None)
        if self.odds is None:
            random, partner = slice(None), batch.shard.permutation(self.generator)
        if self.warming and not self.warmup_mix:
            return x[random], Weighted(target[random], weight[random])

        labels = Part.of(self.table, batch.index, target, weight)
        pairs = batch.shard if self.lambda_per == "pair" else 1
        lam = draw_lambda(self.alpha, self.generator, pairs)
        mixed = mix_parts(labels.take(random), labels.take(partner), lam, blend=self.blend)
        return mix(x[random], x[partner], lam), mixed

    def managed(
        self, model: nn.Module, batch: Batch, target: Tensor, weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Decide doubted labels by the views, for this step.

        Departure: with "online" the labels of minority rows, which have the smaller share of the
        mix, stay as the table has them, decided by plain confidence at the end of the last epoch.
        Algorithm 1 ("paper") spends half of its views on them, and the scores are the same
        (docs/results.md). If the data has only one view, that one decides.
        """
        index, device = batch.index.cpu(), batch.x.device
        if self.odds is not None and self.relabel == "online":  # the second half: minority rows
            index = index[: len(index) // 2]
        given, clean = self.table.given[index].to(device), self.table.clean[index].to(device)
        doubted = (clean <= 0.5).any(1).nonzero()[:, 0]
        if not len(doubted):
            return target, weight
        model = processes.unwrap(model)
        with evaluating(model):  # also keeps the views out of BatchNorm's statistics
            each = model(torch.cat([view[doubted] for view in batch.views])).float().sigmoid()
        confidence = each.view(len(batch.views), len(doubted), -1).mean(0)
        given, clean = given[doubted], clean[doubted]
        status = self._status(given, clean, confidence)
        target[doubted], weight[doubted] = training_labels(given, status, clean)
        return target, weight

    def end_epoch(self, *confidence: Tensor) -> dict[str, float]:
        """Update odds, mixtures and label table; log what was decided.

        Labels are re-labelled by the second matrix, that of views; without one, by the first.
        """
        if self.judge_only:
            return super().end_epoch() | (self.table.shares() if self.select else {})
        plain, *rest = self.checked(confidence)
        facts = dict(self.chosen) if self.epoch == 0 else {}
        odds, mixtures = self._estimates(plain)
        with interrupts.deferred():  # so that Ctrl-C leaves all of the old state or of the new one
            facts |= self._adopt(odds, mixtures, plain, rest[0] if rest else plain)
            return super().end_epoch() | facts

    def _estimates(self, plain: Tensor) -> tuple[Tensor | None, Mixtures | None]:
        """Estimate odds and mixtures from plain confidence, if this epoch has any."""
        odds, mixtures = self.odds, None
        if odds is not None:  # line 17: Eqs. 2–4
            odds = minority_odds(self.table.given, plain, self.power, self.score)
        if self.select and self.epoch + 1 >= self.warm:
            mixtures = fit_mixtures(  # line 18: Eqs. 6 and 7
                self.table.doubtful(),
                plain,
                fit=self.mixture,
                min_labels=self.min_labels,
                separation=self.separation,
            )
        return odds, mixtures

    def _adopt(
        self, odds: Tensor | None, mixtures: Mixtures | None, plain: Tensor, on_views: Tensor
    ) -> dict[str, float]:
        """Make estimates the state, and the labels what follows from them."""
        facts: dict[str, float] = {}
        if odds is not None:
            facts["effective_rows"] = effective_rows(odds)
        if mixtures is not None:
            self._manage_all(mixtures, plain, on_views)
            facts |= self.table.shares() | guard_counts(mixtures.guard)
            self.mixtures = mixtures
        self.odds = odds
        return facts

    def _manage_all(self, mixtures: Mixtures, plain: Tensor, on_views: Tensor) -> None:
        """Decide every label of the table."""
        given = self.table.given
        for rows in chunks(*given.shape):
            clean = mixtures.clean(given[rows], plain[rows])  # Eq. 8
            clean = clean.masked_fill_(given[rows] > 0, 1.0) if self.trusting else clean
            self.table.write(rows, self._status(given[rows], clean, on_views[rows]), clean)  # Eq. 9

    def _status(self, given: Tensor, clean: Tensor, confidence: Tensor) -> Tensor:
        how = {"relabel": self.relabel != "off", "reweight": self.reweight}
        return manage(given, clean, confidence, self.threshold, **how)
