"""Expectation maximisation of many mixtures of two Gaussians at once, over weighted points.

The log-odds of two Gaussians are a quadratic of the value. So an E-step is a quadratic and a
sigmoid a point, and an M-step the moments under the result: one matrix product.
"""

import torch
from torch import Tensor


def fit_two_gaussians(
    value: Tensor,
    count: Tensor,
    spread: Tensor,
    least: float,
    added: Tensor,
    tolerance: float,
    steps: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Fit a mixture to each row of points (problems, L); return share, mean and variance.

    Values ascend along a row; a count of 0 is padding. The component with the smaller mean comes
    first. Each fit starts from the exact two-means split and stops when a step no longer raises
    the mean log-likelihood by `tolerance`, or after `steps`. A variance is at least `least`, and
    then widened by `added` (problems,). Moments are taken about zero, so centre the values first.
    A row without points gets NaN.
    """
    moments = torch.stack([count, count * value, count * (value.square() + spread)], 2)
    total = moments.sum(1)
    model = _maximise(_two_means(value, count), moments, total, least, added)
    fitted, active = model.clone(), torch.arange(len(value), device=value.device)
    likelihood = torch.full_like(added, -torch.inf)
    for _ in range(steps):
        before = model
        model = _maximise(_log_odds(model, value).sigmoid_(), moments, total, least, added)
        fitted[active] = model
        # The likelihood says when to stop. It need not be computed while its bound still rises.
        near = ~(_gain(before, model, added) >= 1.5 * tolerance)
        last, likelihood = likelihood, torch.full_like(likelihood, -torch.inf)
        likelihood[near] = _likelihood(*_rows(near, before, value, moments))
        moving = ~near | ((likelihood - last).abs() >= tolerance)  # NaN ends a fit
        if not bool(moving.any()):
            break
        if not bool(moving.all()):
            active, value, moments, total, added, model, likelihood = _rows(
                moving, active, value, moments, total, added, model, likelihood
            )
    order = fitted[..., 1].argsort(1)
    share, mean, variance = (part.gather(1, order) for part in fitted.unbind(2))
    return share, mean, variance


def _rows(which: Tensor, *parts: Tensor) -> list[Tensor]:
    """Take some problems of each tensor."""
    index = which.nonzero()[:, 0]
    return [part.index_select(0, index) for part in parts]  # faster than by booleans


def _two_means(value: Tensor, count: Tensor) -> Tensor:
    """Find the split of ordered points with the least variance: 1 for small values, else 0."""
    # Values ascend, so the best two-means clustering splits them into a prefix and the rest.
    rows, mass = count.cumsum(1), (count * value).cumsum(1)
    left = mass.square() / rows.clamp(min=1)
    right = (mass[:, -1:] - mass).square() / (rows[:, -1:] - rows).clamp(min=1)
    between = (left + right).masked_fill((rows == 0) | (rows == rows[:, -1:]), -torch.inf)
    best = between.argmax(1, keepdim=True)
    return (torch.arange(value.shape[1], device=value.device) <= best).to(value.dtype)


def _log_densities(model: Tensor) -> Tensor:
    """Write log(share · density), but for −½·log 2π, by its coefficients (problems, 2, 3)."""
    share, mean, variance = model.unbind(2)
    slope = mean / variance
    constant = share.log() - 0.5 * (variance.log() + mean * slope)
    return torch.stack([constant, slope, -0.5 / variance], 2)


def _quadratic(coefficients: Tensor, value: Tensor) -> Tensor:
    """Evaluate a quadratic (problems, 3) at each point (problems, L)."""
    constant, linear, quadratic = coefficients[:, None].unbind(2)
    return torch.addcmul(linear, quadratic, value).mul_(value).add_(constant)


def _log_odds(model: Tensor, value: Tensor) -> Tensor:
    """Compute the log-odds that each point belongs to the first component (E-step)."""
    first, second = _log_densities(model).unbind(1)
    return _quadratic(first - second, value)


def _maximise(
    member: Tensor, moments: Tensor, total: Tensor, least: float, added: Tensor
) -> Tensor:
    """Set both components to the moments of their members (M-step): (problems, 2, 3)."""
    first = (member[:, None] @ moments)[:, 0]
    rows, linear, quadratic = torch.stack([first, total - first], 1).unbind(2)
    safe = rows.clamp(min=1e-12)
    mean = linear / safe
    variance = (quadratic / safe - mean.square()).clamp(min=least) + added[:, None]
    share = (rows / total[:, :1]).clamp(min=1e-300)  # so that it has a logarithm
    return torch.stack([share, mean, variance], 2)


def _likelihood(model: Tensor, value: Tensor, moments: Tensor) -> Tensor:
    """Compute the mean log-likelihood, but for −½·log 2π."""
    count = moments[..., 0]
    first, second = (_quadratic(part, value) for part in _log_densities(model).unbind(1))
    return (count * torch.logaddexp(first, second)).sum(1) / count.sum(1)


def _gain(before: Tensor, after: Tensor, added: Tensor) -> Tensor:
    """Compute by how much a step raises EM's lower bound of the mean log-likelihood.

    The likelihood itself rises by at least as much. After a step the components have the moments
    of their members, so the points are not needed.
    """
    (old_share, old_mean, old_variance), (share, mean, variance) = before.unbind(2), after.unbind(2)
    within = variance - added[:, None]
    about_old_mean = within + (mean - old_mean).square()
    sharper = about_old_mean / old_variance - within / variance + (old_variance / variance).log()
    return (share * (0.5 * sharper + (share / old_share).log())).sum(1)
