"""Judged: what an audit believes of all labels, before anything is listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from balancemix.auditing.probability import modelled
from balancemix.auditing.ranking import SMOOTHER, doubt
from balancemix.data.source import Source
from balancemix.errors import InputError
from balancemix.judge.factor import FEWEST, check_features
from balancemix.judge.noise_model import fit_noise_model
from balancemix.judge.opinion import Opinion, is_judged, judge, rated
from balancemix.judge.ridge import Ridge
from balancemix.judge.stages import Stages
from balancemix.labels.chunks import chunks
from balancemix.labels.table import as_given, as_verified, check_confidence

_EDGE = 1e-4  # from 0 and 1, as models are surer than they can know


@dataclass(frozen=True, eq=False)
class Judged:
    """N×K given labels with what is believed of each; rows are in the order of `source`.

    doubt         N×K: by which labels are ranked; −inf for those that are verified
    probability   N×K: modelled, that a label is wrong; of an unknown one, that it is present
    expected      N×2: modelled errors of each row, wrong and missing
    confidence    N×K: how likely each class is there, without its given label
    disagreement  N×2: |given − leave-one-out score|, clamped, summed over the row's given and not
                  given labels
    judged        K: whether anything is known of the class; if not, its labels stay below 0.5
    split         of each row; all are "train" where the data names none
    truth         N×K, −1 where it is not known; only for scoring
    features      N×D, where they were judged by: near-duplicates are found by them
    """

    given: Tensor
    verified: Tensor | None
    doubt: Tensor
    probability: Tensor
    expected: Tensor
    disagreement: Tensor
    confidence: Tensor
    judged: Tensor
    names: Sequence[str]
    classes: Sequence[str]
    split: Sequence[str]
    source: Source | None = None
    truth: Tensor | None = None
    features: Tensor | None = None

    def __len__(self) -> int:
        return len(self.given)


class Factors:
    """The factored features of rows: most of a judge's time, and the same whatever the labels.

    What takes minutes is also kept in the `stages` that `of` is given, until `finish`.
    """

    def __init__(self) -> None:
        self._ridge: Ridge | None = None
        self._made_of: tuple[Tensor, Tensor | None] | None = None
        self._stages = Stages(None)

    def of(
        self,
        features: Tensor,
        groups: Tensor | None,
        device: torch.device | str,
        stages: Stages | None = None,
    ) -> Ridge:
        """Return the factors of these rows, made before or made now."""
        if self._ridge is None or not self._fits(features, groups):
            self._stages = stages or Stages(None)
            self._ridge = Ridge.of(features, groups=groups, device=device, stages=self._stages)
            self._made_of = features, groups
        return self._ridge

    def finish(self) -> None:
        """Delete the stages, as all judgements have ended."""
        self._stages.remove()

    def _fits(self, features: Tensor, groups: Tensor | None) -> bool:
        assert self._made_of is not None
        before, grouped = self._made_of
        if (groups is None) != (grouped is None) or not torch.equal(before, features):
            return False
        return groups is None or grouped is None or torch.equal(grouped, groups)


def judge_features(
    given: Tensor,
    features: Tensor,
    *,
    verified: Tensor | None = None,
    before: Tensor | None = None,
    groups: Tensor | None = None,
    device: torch.device | str = "cpu",
    factors: Factors | None = None,
    stages: Stages | None = None,
    **more: Any,
) -> Judged:
    """Judge N×K labels by N×D features: each label by the other rows.

    Of fewer than ten rows, no class is judged. For `before` see `judge`. `factors` are kept for
    other labels of the same rows; then their `finish` deletes the `stages` of a judgement that
    takes minutes, which are otherwise deleted here. `more` are fields of `Judged`.
    """
    if len(features) != len(given):
        raise InputError(f"{len(given)} rows of labels, but {len(features)} rows of features")
    if len(given) < FEWEST:
        return judge_nothing(given, verified, **more)
    check_features(features)
    made = factors or Factors()
    ridge = made.of(features, groups, device, stages)
    opinion = judge(given, ridge, verified=verified, before=before)
    judged = weigh_opinion(given, opinion, ridge, verified, before, features=features, **more)
    if factors is None:
        made.finish()
    return judged


def judge_confidence(
    given: Tensor,
    confidence: Tensor,
    *,
    verified: Tensor | None = None,
    before: Tensor | None = None,
    **more: Any,
) -> Judged:
    """Judge N×K labels by a model's confidence in presence, best on rows it was not trained on."""
    check_confidence(given, confidence)
    score = confidence.detach().cpu().float()
    sure = _checked(verified, given)
    logits = score.clamp(_EDGE, 1 - _EDGE).logit()
    model = fit_noise_model(rated(given, sure, before), logits)
    eta, posterior = torch.empty_like(score), torch.empty_like(score)
    for rows in chunks(*given.shape):
        eta[rows] = model.confidence(logits[rows])
        posterior[rows] = model.posterior(given[rows], eta[rows])
    return weigh(given, score, eta, posterior, is_judged(given, score), verified, **more)


def judge_nothing(given: Tensor, verified: Tensor | None = None, **more: Any) -> Judged:
    """Say nothing of N×K labels."""
    blank = torch.zeros(given.shape)
    none = torch.zeros(given.shape[1], dtype=torch.bool)
    return weigh(given, blank, blank, blank, none, verified, **more)


def weigh_opinion(
    given: Tensor,
    opinion: Opinion,
    ridge: Ridge,
    verified: Tensor | None = None,
    before: Tensor | None = None,
    **more: Any,
) -> Judged:
    """Rank labels by a judge's opinion of these factored rows; `more` are fields of `Judged`."""
    beliefs = opinion.score, opinion.confidence, opinion.posterior, opinion.judged
    sure = _checked(verified, given)
    smooth = smoothed(given, ridge, SMOOTHER * opinion.penalty.best, sure, before)
    return weigh(given, *beliefs, sure, smooth=smooth, **more)


def smoothed(
    given: Tensor,
    ridge: Ridge,
    penalty: float,
    verified: Tensor | None = None,
    before: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Score N×K labels with another penalty than the judge's; also returns the posterior by it."""
    score = ridge.leave_one_out((given > 0).float(), penalty, given >= 0)
    model = fit_noise_model(rated(given, verified, before), score)
    posterior = torch.empty_like(score)
    for rows in chunks(*given.shape):
        posterior[rows] = model.posterior(given[rows], model.confidence(score[rows]))
    return score, posterior


def weigh(
    given: Tensor,
    score: Tensor,
    confidence: Tensor,
    posterior: Tensor,
    judged: Tensor,
    verified: Tensor | None = None,
    names: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    split: Sequence[str] | None = None,
    source: Source | None = None,
    truth: Tensor | None = None,
    features: Tensor | None = None,
    smooth: tuple[Tensor, Tensor] | None = None,
) -> Judged:
    """Rank labels by what a judge says of them (see `Opinion`), and sum up by rows.

    `smooth` are score and posterior with a larger penalty; wrong labels are ranked by them. How
    many there are remains what `posterior` says.
    """
    sure = _checked(verified, given)
    smooth_score, smooth_posterior = smooth or (score, posterior)
    rank = doubt(given, score, confidence, smooth_posterior, sure, smooth_score)
    rank, probability = modelled(given, rank, posterior, judged)
    expected, disagreement = torch.zeros(2, len(given), 2)
    for rows in chunks(*given.shape):
        off = (given[rows] - score[rows].float().clamp(0, 1)).abs()
        for side, value in enumerate((1, 0)):
            is_side = given[rows] == value
            expected[rows, side] = (probability[rows] * is_side).sum(1)
            disagreement[rows, side] = (off * is_side).sum(1)
    return Judged(
        given=given,
        verified=sure,
        doubt=rank,
        probability=probability,
        expected=expected,
        disagreement=disagreement,
        confidence=confidence,
        judged=judged,
        names=_named(names, len(given), "names"),
        classes=_named(classes, given.shape[1], "classes"),
        split=["train"] * len(given) if split is None else split,
        source=source,
        truth=truth,
        features=features,
    )


def _checked(verified: Tensor | None, given: Tensor) -> Tensor | None:
    """Read what is verified; an unknown label never is."""
    return None if verified is None else as_verified(verified, given) & (as_given(given) >= 0)


def _named(names: Sequence[str] | None, count: int, what: str) -> Sequence[str]:
    if names is None:
        return [str(number) for number in range(count)]
    if len(names) != count:
        raise ValueError(f"{what}: give {count}, not {len(names)}")
    return names
