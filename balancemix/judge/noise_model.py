"""A model of how labels go wrong, fitted to out-of-sample scores and given labels.

    P(given = 1 | score) = ρ0 + (1 − ρ0 − ρ1) · η,   η = σ(a·v + b) = P(present | score)

ρ0 = P(given 1 | absent) and ρ1 = P(given 0 | present) of each class; v is the score, standardised
within the class, its positive part compressed by log(1 + 0.7 v)/0.7. Each class has its own four
numbers, tied to the other classes' by priors:

    log a ~ N(ā, 0.3²),  logit 2ρ0 ~ N(c₀ + c₁·log frequency, 0.5²),
    logit(ρ1/0.98) ~ N(γ, 0.5²),  γ ~ N(−2.5, 2²)

The maximum a posteriori is found by some hundred steps on scores in bins. ρ0 starts at the share
that is given among the lowest 60 % of the rows: without this start, labels flipped at random were
taken for rare errors.

The rates are *modelled*: right where errors do not depend on the row, far too low where they do, as
people's errors often do, and then no model can tell from the labels alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

_BEND = 0.7
_STEPS, _RATE = 400, 0.05
_SLOPE_SPREAD, _RATE_SPREAD = 0.3, 0.5
_MISSING_MEAN, _MISSING_SPREAD = -2.5, 2.0
_LOWEST = 0.6
_MOST0, _MOST1 = 0.5, 0.98  # of ρ0 and ρ1
_FINEST, _GROWTH = 4, 0.12  # rows of the first bin; a bin's share of the rows above it


@dataclass(frozen=True)
class NoiseModel:
    """The fitted model; K float64 values each."""

    mean: Tensor  # of the scores
    spread: Tensor
    slope: Tensor  # a
    shift: Tensor  # b
    rho0: Tensor
    rho1: Tensor

    def confidence(self, score: Tensor) -> Tensor:
        """Compute η = P(present | score) of B×K scores: float32."""
        v = bend((score - self.mean.float()) / self.spread.float())
        return (self.slope.float() * v + self.shift.float()).sigmoid()

    def posterior(self, given: Tensor, confidence: Tensor) -> Tensor:
        """Compute q = P(present | given, score) from η; an unknown label (−1) leaves it at η."""
        return posterior(given, confidence, self.rho0.float(), self.rho1.float())


def bend(v: Tensor) -> Tensor:
    """Compress the positive part, which in least squares has a long tail.

    >>> bend(torch.tensor([-2.0, 0.0, 2.0]))
    tensor([-2.0000,  0.0000,  1.2507])
    """
    return torch.where(v > 0, torch.log1p(_BEND * v.clamp(min=0)) / _BEND, v)


def posterior(given: Tensor, confidence: Tensor, rho0: Tensor, rho1: Tensor) -> Tensor:
    """Weigh P(present | score) by how often present and absent labels are given so.

    >>> rates = torch.tensor([0.1]), torch.tensor([0.5])
    >>> posterior(torch.tensor([[1], [0], [-1]]), torch.full((3, 1), 0.5), *rates)[:, 0]
    tensor([0.8333, 0.3571, 0.5000])
    """
    absent = 1 - confidence
    present1, present0 = (1 - rho1) * confidence, rho1 * confidence
    absent1, absent0 = rho0 * absent, (1 - rho0) * absent
    tiny = torch.finfo(confidence.dtype).tiny
    if_given = present1 / (present1 + absent1).clamp(min=tiny)
    if_not = present0 / (present0 + absent0).clamp(min=tiny)
    return torch.where(given > 0, if_given, torch.where(given < 0, confidence, if_not))


def fit_noise_model(given: Tensor, score: Tensor) -> NoiseModel:
    """Fit N×K scores and given labels of 1, 0 and −1 (left out)."""
    mean, spread = _moments(given, score)
    sums = [
        _binned(score[known, k], given[known, k], mean[k], spread[k])
        for k, known in enumerate((given >= 0).T)
    ]
    longest = max((len(counts) for _, _, counts in sums), default=0)
    v, positives, rows = (
        torch.stack([_padded(part[place], longest) for part in sums], 1) for place in range(3)
    )
    total = rows.sum(0).clamp(min=1)
    frequency = positives.sum(0).clamp(min=1) / total.clamp(min=2)
    log_frequency = frequency.clamp(max=0.999).log()
    log_frequency = log_frequency - log_frequency.mean()

    lowest = rows.flip(0).cumsum(0).flip(0) <= _LOWEST * total
    low_rate = ((positives * lowest).sum(0) + 0.5 * frequency) / ((rows * lowest).sum(0) + 0.5)
    start = (low_rate / _MOST0).clamp(1e-6, 0.98).logit()
    tilt = (start - start.mean()) @ log_frequency / log_frequency.square().sum().clamp(min=1e-9)
    classes = len(frequency)
    parameters = [
        torch.zeros(1).double(),  # ā
        torch.zeros(classes).double(),  # log a − ā
        frequency.clamp(max=0.999).logit() - 1,  # b
        start.mean()[None],  # c₀
        tilt.clamp(0, 1.5)[None],  # c₁
        torch.zeros(classes).double(),  # logit 2ρ0 − c₀ − c₁·log frequency
        torch.full((1,), _MISSING_MEAN).double(),  # γ
        torch.zeros(classes).double(),  # logit(ρ1/0.98) − γ
    ]
    parameters = [p.clone().requires_grad_() for p in parameters]
    mean_slope, slope_offset, shift, level, tilt, offset0, gamma, offset1 = parameters
    optimiser = torch.optim.Adam(parameters, lr=_RATE, betas=(0.9, 0.99))
    annealing = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, _STEPS)

    def rates() -> tuple[Tensor, Tensor]:
        rho0 = _MOST0 * (level + tilt * log_frequency + offset0).sigmoid()
        return rho0, _MOST1 * (gamma + offset1).sigmoid()

    for _ in range(_STEPS):
        eta = ((mean_slope + slope_offset).exp() * v + shift).sigmoid()
        prior = slope_offset.square().sum() / (2 * _SLOPE_SPREAD**2)
        prior = prior + (offset0.square().sum() + offset1.square().sum()) / (2 * _RATE_SPREAD**2)
        prior = prior + (gamma - _MISSING_MEAN).square().sum() / (2 * _MISSING_SPREAD**2)
        loss = prior - log_likelihood(eta, *rates(), positives, rows)
        optimiser.zero_grad()
        (loss / total.max()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        annealing.step()
    with torch.no_grad():
        slope = (mean_slope + slope_offset).exp()
        return NoiseModel(mean, spread, slope, shift.detach(), *rates())


def log_likelihood(
    eta: Tensor, rho0: Tensor, rho1: Tensor, positives: Tensor, rows: Tensor
) -> Tensor:
    """Sum the log-likelihood of the given labels over bins and classes."""
    p = rho0 + (1 - rho0 - rho1).clamp(min=0.01) * eta
    p = p.clamp(1e-7, 1 - 1e-7)
    return (positives * p.log() + (rows - positives) * (1 - p).log()).sum()


def _moments(given: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
    """Compute mean and standard deviation of the scores of known labels, by class."""
    mean, spread = torch.zeros(2, given.shape[1], dtype=torch.float64)
    for k in range(given.shape[1]):
        known = score[given[:, k] >= 0, k].double()
        mean[k] = known.mean() if len(known) else 0
        spread[k] = known.std() if len(known) > 1 else 1
    return mean, spread.clamp(min=1e-6)


def _binned(
    score: Tensor, given: Tensor, mean: Tensor, spread: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Sort the rows of a class into bins, fine at the top: mean v, positives and rows of each."""
    order = score.argsort(descending=True)
    v = bend((score[order].double() - mean) / spread)
    edges, step = [0], _FINEST
    while edges[-1] < len(v):
        edges.append(min(edges[-1] + step, len(v)))
        step = max(_FINEST, math.floor(_GROWTH * edges[-1]))
    counts = torch.tensor(edges).diff().double()

    def sums(values: Tensor) -> Tensor:
        return torch.cat([values.new_zeros(1), values.cumsum(0)])[edges].diff()

    return sums(v) / counts, sums((given[order] > 0).double()), counts


def _padded(values: Tensor, length: int) -> Tensor:
    return torch.cat([values, values.new_zeros(length - len(values))])
