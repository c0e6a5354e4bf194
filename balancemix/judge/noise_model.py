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
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

_BEND = 0.7
_STEPS, _RATE = 400, 0.05
_MEMORY, _LONG_MEMORY = 0.9, 0.99  # Adam's betas
_SLOPE_SPREAD, _RATE_SPREAD = 0.3, 0.5
_MISSING_MEAN, _MISSING_SPREAD = -2.5, 2.0
_LOWEST = 0.6
_MOST0, _MOST1 = 0.5, 0.98  # of ρ0 and ρ1
_LEAST_SPAN, _SURE = 0.01, 1e-7  # of 1 − ρ0 − ρ1, and from 0 and 1
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
    none = torch.zeros(classes).double()
    begin = Parameters(
        mean_slope=torch.zeros(1).double(),
        slope_offset=none,
        shift=frequency.clamp(max=0.999).logit() - 1,
        level=start.mean()[None],
        tilt=tilt.clamp(0, 1.5)[None],
        offset0=none,
        gamma=torch.full((1,), _MISSING_MEAN).double(),
        offset1=none,
    )
    scale = total.max()

    def slope(x: Tensor) -> Tensor:
        return gradient(begin.of(x), v, positives, rows, log_frequency).flat / scale

    best = begin.of(_descended(begin.flat, slope))
    rho0, rho1 = best.rates(log_frequency)
    return NoiseModel(mean, spread, best.slope, best.shift, rho0, rho1)


@dataclass(frozen=True)
class Parameters:
    """What is fitted, or the gradient of what is: K float64 values each, or one."""

    mean_slope: Tensor  # ā
    slope_offset: Tensor  # log a − ā
    shift: Tensor  # b
    level: Tensor  # c₀
    tilt: Tensor  # c₁
    offset0: Tensor  # logit 2ρ0 − c₀ − c₁·log frequency
    gamma: Tensor  # γ
    offset1: Tensor  # logit(ρ1/0.98) − γ

    @property
    def flat(self) -> Tensor:
        """All of them, one after the other."""
        return torch.cat(list(vars(self).values()))

    def of(self, flat: Tensor) -> Parameters:
        """Read what `flat` returned."""
        sizes = [len(part) for part in vars(self).values()]
        return Parameters(*torch.split(flat, sizes))

    @property
    def slope(self) -> Tensor:
        """The slopes a."""
        return (self.mean_slope + self.slope_offset).exp()

    def rates(self, log_frequency: Tensor) -> tuple[Tensor, Tensor]:
        """Compute ρ0 and ρ1."""
        rho0 = _MOST0 * (self.level + self.tilt * log_frequency + self.offset0).sigmoid()
        return rho0, _MOST1 * (self.gamma + self.offset1).sigmoid()


def loss(
    at: Parameters, v: Tensor, positives: Tensor, rows: Tensor, log_frequency: Tensor
) -> Tensor:
    """Compute minus the log of the posterior density, but for a constant."""
    prior = at.slope_offset.square().sum() / (2 * _SLOPE_SPREAD**2)
    prior = prior + (at.offset0.square().sum() + at.offset1.square().sum()) / (2 * _RATE_SPREAD**2)
    prior = prior + (at.gamma - _MISSING_MEAN).square().sum() / (2 * _MISSING_SPREAD**2)
    eta = (at.slope * v + at.shift).sigmoid()
    return prior - log_likelihood(eta, *at.rates(log_frequency), positives, rows)


def gradient(
    at: Parameters, v: Tensor, positives: Tensor, rows: Tensor, log_frequency: Tensor
) -> Parameters:
    """Compute the derivatives of the loss by hand: autograd takes five times as long.

    Sums are over bins; names are of the derivatives of the log-likelihood.
    """
    rho0, rho1 = at.rates(log_frequency)
    eta = (at.slope * v + at.shift).sigmoid()
    span = 1 - rho0 - rho1
    free = span >= _LEAST_SPAN
    span = span.clamp(min=_LEAST_SPAN)
    p = rho0 + span * eta
    inside = (p >= _SURE) & (p <= 1 - _SURE)
    p = p.clamp(_SURE, 1 - _SURE)
    by_p = inside * (positives / p - (rows - positives) / (1 - p))
    by_z = by_p * span * eta * (1 - eta)  # of a·v + b
    by_slope, by_eta = (by_z * v).sum(0) * at.slope, (by_p * eta).sum(0) * free
    by0 = (by_p.sum(0) - by_eta) * rho0 * (1 - rho0 / _MOST0)
    by1 = -by_eta * rho1 * (1 - rho1 / _MOST1)
    return Parameters(
        mean_slope=-by_slope.sum()[None],
        slope_offset=at.slope_offset / _SLOPE_SPREAD**2 - by_slope,
        shift=-by_z.sum(0),
        level=-by0.sum()[None],
        tilt=-(by0 * log_frequency).sum()[None],
        offset0=at.offset0 / _RATE_SPREAD**2 - by0,
        gamma=(at.gamma - _MISSING_MEAN) / _MISSING_SPREAD**2 - by1.sum(),
        offset1=at.offset1 / _RATE_SPREAD**2 - by1,
    )


def _descended(x: Tensor, slope: Callable[[Tensor], Tensor]) -> Tensor:
    """Take Adam's steps, at a rate that falls like a cosine.

    torch.optim would take the same, but its first use imports a compiler for some seconds.
    """
    mean, square = torch.zeros_like(x), torch.zeros_like(x)
    for step in range(_STEPS):
        along = slope(x)
        mean = _MEMORY * mean + (1 - _MEMORY) * along
        square = _LONG_MEMORY * square + (1 - _LONG_MEMORY) * along.square()
        rate = _RATE * (1 + math.cos(math.pi * step / _STEPS)) / 2
        size = (square / (1 - _LONG_MEMORY ** (step + 1))).sqrt() + 1e-8
        x = x - rate / (1 - _MEMORY ** (step + 1)) * mean / size
    return x


def log_likelihood(
    eta: Tensor, rho0: Tensor, rho1: Tensor, positives: Tensor, rows: Tensor
) -> Tensor:
    """Sum the log-likelihood of the given labels over bins and classes."""
    p = rho0 + (1 - rho0 - rho1).clamp(min=_LEAST_SPAN) * eta
    p = p.clamp(_SURE, 1 - _SURE)
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
