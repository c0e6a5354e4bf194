"""Expectation maximisation of many two-Gaussian mixtures at once, over weighted points.

The log-odds of two Gaussians are a quadratic of the value. So an E-step is a quadratic and a
sigmoid a point, an M-step the moments under the result: one matrix product. The likelihood, which
says when to stop, costs as much again. It is left out while a bound says that it is still rising.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor


@dataclass
class _Problems:
    """Mixtures on their way; every field begins with one row a problem."""

    value: Tensor  # (problems, L)
    count: Tensor  # (problems, L)
    moment: Tensor  # (problems, L, 3): what a point adds to the zeroth to second moments
    total: Tensor  # (problems, 3): the sum of these
    plain: Tensor  # (problems, 3): the same without the spread of the points
    least: Tensor  # variance of a component
    added: Tensor  # to each variance
    model: Tensor  # (problems, 2, 3): share, mean and variance of each component
    likelihood: Tensor  # mean logarithm, of the model before the last step
    taken: Tensor  # steps so far
    number: Tensor

    def copy(self) -> _Problems:
        """Take all of the problems, to go on with them apart."""
        return replace(self, model=self.model.clone(), taken=self.taken.clone())

    def maximise(self, member: Tensor) -> Tensor:
        """Set both components to the moments of their members (M-step)."""
        return _maximise(member, self.moment, self.total, self.least, self.added)

    def keep(self, active: _Problems) -> None:
        """Take over how far some of the problems have come."""
        self.model[active.number], self.taken[active.number] = active.model, active.taken

    def without_idle(self, active: _Problems, moving: Tensor) -> tuple[_Problems, Tensor]:
        """Throw out what stands still, once it is a quarter, and keep its result."""
        if 4 * int(moving.sum()) > 3 * len(moving):
            return active, moving
        self.keep(active)
        rest = (getattr(active, field.name)[moving] for field in fields(active))
        return _Problems(*rest), moving[moving]


def fit_two_gaussians(
    value: Tensor,
    count: Tensor,
    spread: Tensor,
    least: Tensor,
    added: Tensor,
    tolerance: float,
    steps: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Fit mixtures to ordered points (problems, L): share, mean, variance, small mean first.

    Each starts from the exact two-means split and goes on until the mean log-likelihood changes by
    less than `tolerance`, for `steps` at most. Variances are at least `least`, and have `added` to
    them. Moments are taken about zero, so values should be centred.
    """
    moment = torch.stack([count, count * value, count * (value.square() + spread)], 2)
    total, number = moment.sum(1), torch.arange(len(value), device=value.device)
    plain = torch.stack([total[:, 0], total[:, 1], (count * value.square()).sum(1)], 1)
    start = _maximise(_two_means(value, count).to(value.dtype), moment, total, least, added)
    likelihood, taken = torch.zeros_like(least), torch.zeros_like(number)
    problems = _Problems(
        value, count, moment, total, plain, least, added, start, likelihood, taken, number
    )
    _climb(problems, 1.5 * tolerance, steps)
    _converge(problems, tolerance, steps)
    order = problems.model[..., 1].argsort(1)
    share, mean, variance = (part.gather(1, order) for part in problems.model.unbind(2))
    return share, mean, variance


def _climb(problems: _Problems, tolerance: float, steps: int) -> None:
    """Take the steps that surely raise the likelihood by more than `tolerance`, and no other."""
    active, moving = problems.copy(), problems.taken < steps
    while bool(moving.any()):
        active, moving = problems.without_idle(active, moving)
        member = _log_odds(active.model, active.value).sigmoid_()
        after = active.maximise(member)
        moving = moving & (_gain(active.model, after, active.added) >= tolerance)
        active.taken += moving
        active.model = torch.where(moving[:, None, None], after, active.model)
        moving &= active.taken < steps
    problems.keep(active)


def _converge(problems: _Problems, tolerance: float, steps: int) -> None:
    """Take steps until the likelihood changes by less than `tolerance`."""
    active, moving = problems.copy(), problems.taken < steps
    active.likelihood = torch.full_like(active.least, -torch.inf)
    while bool(moving.any()):
        active, moving = problems.without_idle(active, moving)
        log_odds = _log_odds(active.model, active.value)
        member = log_odds.sigmoid()
        before, active.likelihood = active.likelihood, _likelihood(active, log_odds, member)
        after = active.maximise(member)
        active.taken += moving
        active.model = torch.where(moving[:, None, None], after, active.model)
        moving = moving & ((active.likelihood - before).abs() >= tolerance)  # NaN stops, too
        moving &= active.taken < steps
    problems.keep(active)


def _two_means(value: Tensor, count: Tensor) -> Tensor:
    """Find the split of ordered points that leaves least variance; True on the small side."""
    # The points of a problem are in order, so the best of all two-means clusterings is a prefix.
    rows, mass = count.cumsum(1), (count * value).cumsum(1)
    left = mass.square() / rows.clamp(min=1)
    right = (mass[:, -1:] - mass).square() / (rows[:, -1:] - rows).clamp(min=1)
    between = (left + right).masked_fill((rows == 0) | (rows == rows[:, -1:]), -torch.inf)
    best = between.argmax(1, keepdim=True)
    return torch.arange(value.shape[1], device=value.device) <= best


def _polynomial(model: Tensor) -> Tensor:
    """Write log(share · density), but for −½·log 2π, by its coefficients (problems, 2, 3)."""
    share, mean, variance = model.unbind(2)
    slope = mean / variance
    constant = share.log() - 0.5 * (variance.log() + mean * slope)
    return torch.stack([constant, slope, -0.5 / variance], 2)


def _log_odds(model: Tensor, value: Tensor) -> Tensor:
    """Compute the log-odds of the first component at each point: of its membership (E-step)."""
    both = _polynomial(model)
    constant, linear, quadratic = (both[:, :1] - both[:, 1:]).unbind(2)
    return torch.addcmul(linear, quadratic, value).mul_(value).add_(constant)


def _likelihood(problems: _Problems, log_odds: Tensor, member: Tensor) -> Tensor:
    """Compute the mean log-likelihood under the model that `log_odds` and `member` are of."""
    # Both densities together are the second times 1 + odds. The logarithm of that factor:
    surer = torch.maximum(member, 1 - member)
    excess = (log_odds.clamp(min=0) - surer.log_()).mul_(problems.count).sum(1)
    second = (problems.plain * _polynomial(problems.model)[:, 1]).sum(1)
    return (excess + second) / problems.plain[:, 0]


def _maximise(
    member: Tensor, moment: Tensor, total: Tensor, least: Tensor, added: Tensor
) -> Tensor:
    """Set both components to the moments of their members (M-step)."""
    first = (member[:, None] @ moment)[:, 0]
    rows, linear, quadratic = torch.stack([first, total - first], 1).unbind(2)
    safe = rows.clamp(min=1e-12)
    mean = linear / safe
    variance = torch.maximum(quadratic / safe - mean.square(), least[:, None]) + added[:, None]
    share = (rows / total[:, :1]).clamp(min=1e-300)  # which has a logarithm
    return torch.stack([share, mean, variance], 2)


def _gain(before: Tensor, after: Tensor, added: Tensor) -> Tensor:
    """Compute by how much a step raises EM's bound of the mean log-likelihood: its least gain.

    After a step the components have the moments of their members, so these need not be seen.
    """
    (old_share, old_mean, old_variance), (share, mean, variance) = before.unbind(2), after.unbind(2)
    within = variance - added[:, None]
    farther = within + (mean - old_mean).square()
    narrower = farther / old_variance - within / variance + (old_variance / variance).log()
    return (share * (0.5 * narrower + (share / old_share).log())).sum(1)
