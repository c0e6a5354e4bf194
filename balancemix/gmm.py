"""Which labels are clean: 2·K two-component Gaussian mixtures over losses (Eqs. 6–8), in one batch.

The losses of each class and side (given negative, given positive) are reduced to weighted points:
the losses themselves while they are few, bins of a fixed width per octave beyond that. All 2·K EMs
then run at once on (2·K, points) matrices. Each starts from the exact two-means split of its
points and runs until its likelihood stands still.

Departure: the paper is silent on rare, constant or one-sided losses, where a literal mixture calls
every label noisy. Here such a mixture calls every label clean, and `Mixtures.guard` says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import torch
from torch import Tensor

Fit = Literal["raw", "dividemix"]

# Bins: 32 an octave, from 2⁻²⁴ (a float32 probability's last bit) to 2⁸ (beyond any BCE).
_OCTAVES, _LOWEST, _PER_OCTAVE = 32, -24, 32
_BINS = _OCTAVES * _PER_OCTAVE


class Guard(IntEnum):
    """Why a mixture was not used and all its labels count as clean."""

    FITTED = 0
    FEW = 1  # fewer labels than can be judged
    CONSTANT = 2  # all losses alike
    EMPTY = 3  # a component without members, or not a number
    OVERLAPPING = 4  # two components that are one (only if asked for)


@dataclass(frozen=True)
class Mixtures:
    """Parameters by side (0 negative, 1 positive), class and component (0 clean, 1 noisy)."""

    share: Tensor  # (2, K, 2)
    mean: Tensor  # (2, K, 2)
    variance: Tensor  # (2, K, 2)
    guard: Tensor  # (2, K) uint8: Guard

    def posterior(self, losses: Tensor, labels: Tensor) -> Tensor:
        """P(clean | loss) of N×K losses under the mixture of their class and given side (Eq. 8).

        Departure: two Gaussians of different width make the far tail of one side's losses change
        its mind (a very small loss may look noisy, a huge one clean). The loss is therefore held
        at the turning point of the log-odds, and P(clean) never grows with the loss.
        """
        share, mean, precision = self.share, self.mean, 1 / self.variance
        odds = share.log() + 0.5 * precision.log()
        gap = precision[..., 0] - precision[..., 1]
        turn = (mean * precision).diff(dim=-1)[..., 0] / -gap
        low = torch.where(gap > 0, turn, -torch.inf).nan_to_num(nan=-torch.inf)
        high = torch.where(gap < 0, turn, torch.inf).nan_to_num(nan=torch.inf)

        positive = labels > 0

        def of_side(values: Tensor) -> Tensor:  # (2, K) -> N×K
            values = values.to(losses.device, torch.float64)
            return torch.where(positive, values[1], values[0])

        held = losses.double().maximum(of_side(low)).minimum(of_side(high))
        to_clean = (held - of_side(mean[..., 0])).square() * of_side(precision[..., 0])
        to_noisy = (held - of_side(mean[..., 1])).square() * of_side(precision[..., 1])
        log_odds = of_side(-odds.diff(dim=-1)[..., 0]) + 0.5 * (to_noisy - to_clean)
        clean = torch.where(of_side(self.guard) > 0, 1.0, log_odds.sigmoid())
        return clean.to(losses.dtype)


def clean_probability(
    losses: Tensor,
    labels: Tensor,
    *,
    fit: Fit = "raw",
    fewest: int = 10,
    separation: float = 0.0,
    classes: Sequence[str] | None = None,
) -> Tensor:
    """Compute P(clean | loss) of every label (N×K) from its class's two loss mixtures.

    >>> losses = torch.tensor([0.1, 0.12, 0.11, 0.09, 0.1, 0.13, 0.1, 3.0, 3.1, 2.9, 3.2, 2.8])
    >>> clean_probability(losses[:, None], torch.ones(12, 1))[:, 0].round()
    tensor([1., 1., 1., 1., 1., 1., 1., 0., 0., 0., 0., 0.])
    """
    mixtures = fit_mixtures(
        losses, labels, fit=fit, fewest=fewest, separation=separation, classes=classes
    )
    return mixtures.posterior(losses, labels)


def fit_mixtures(
    losses: Tensor,
    labels: Tensor,
    *,
    fit: Fit = "raw",
    fewest: int = 10,
    separation: float = 0.0,
    classes: Sequence[str] | None = None,
) -> Mixtures:
    """Fit the two mixtures of each class to N×K losses of given labels (Eqs. 6 and 7).

    `raw` runs EM on the losses to convergence. `dividemix` is that paper's setting: losses scaled
    to [0, 1], variances kept wide, ten steps. A side with under `fewest` labels is not judged; with
    `separation` s > 0 neither is one whose means are closer than s times the sum of deviations.
    """
    _check(losses, labels, classes)
    reduce_ = _sorted_points if len(losses) <= _BINS else _bins
    values, counts, spread = reduce_(losses, labels)
    rows = counts.sum(1)
    few, safe = rows < fewest, rows.clamp(min=1)
    centre = (counts * values).sum(1) / safe
    data_variance = (counts * ((values - centre[:, None]).square() + spread)).sum(1) / safe
    inside = counts > 0
    widest = torch.where(inside, values, -torch.inf).amax(1)
    narrowest = torch.where(inside, values, torch.inf).amin(1)
    scale = (widest - narrowest).nan_to_num(0.0, 0.0, 0.0)
    constant = (scale < 1e-8) | (data_variance.sqrt() < 1e-8)

    if fit == "raw":
        floor, tolerance, steps = 1e-6 * data_variance, 1e-6, 500
    else:
        floor, tolerance, steps = 5e-4 * scale.square(), 1e-2, 10
    usable = ~(few | constant)
    share, mean, variance = _expectation_maximisation(
        values[usable], counts[usable], spread[usable], floor[usable], tolerance, steps
    )

    shape = (2, losses.shape[1])
    guard = torch.full(shape, Guard.FITTED, dtype=torch.uint8).flatten()
    guard[constant] = Guard.CONSTANT
    guard[few] = Guard.FEW
    broken = ~torch.isfinite(torch.cat([share, mean, variance], 1)).all(1)
    # A component of one label is judged like any other; rounding must not decide.
    broken |= (share * rows[usable, None] < 1 - 1e-6).any(1) | (variance <= 0).any(1)
    alike = mean.diff(dim=1)[:, 0] < separation * variance.sqrt().sum(1)
    fitted = torch.where(alike, Guard.OVERLAPPING, Guard.FITTED)
    guard[usable] = torch.where(broken, Guard.EMPTY, fitted).to(torch.uint8)

    def whole(part: Tensor, blank: float) -> Tensor:
        filled = torch.full((len(rows), 2), blank, dtype=part.dtype)
        filled[usable] = torch.where(broken[:, None], blank, part)
        return filled.view(*shape, 2)

    return Mixtures(whole(share, 0.5), whole(mean, 0.0), whole(variance, 1.0), guard.view(shape))


def _check(losses: Tensor, labels: Tensor, classes: Sequence[str] | None) -> None:
    if losses.shape != labels.shape or losses.ndim != 2:
        shapes = f"{tuple(losses.shape)} and {tuple(labels.shape)}"
        raise ValueError(f"losses and labels must both be N×K, they are {shapes}")
    wrong = ~(torch.isfinite(losses) & (losses >= 0))
    if bool(wrong.any()):
        row, column = (int(i) for i in wrong.nonzero()[0])
        name = classes[column] if classes is not None else column
        raise ValueError(f"loss {losses[row, column]} of row {row}, class {name} is not a loss ≥ 0")


def _sorted_points(losses: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Take each loss as a point of its own, in order: values, counts and spread, all (2·K, N)."""
    own = torch.stack([labels <= 0, labels > 0]).transpose(1, 2).flatten(0, 1)
    every = losses.double().T.repeat(2, 1).masked_fill(~own, torch.inf).sort(1).values
    counts = torch.isfinite(every).double()
    return every.nan_to_num(posinf=0.0), counts, torch.zeros_like(counts)


def _bins(losses: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Reduce losses to bins of equal width per octave: mean, count, variance, all (2·K, bins)."""
    # A float's leading bits are its octave and, linearly, the place within it.
    bits = losses.float().clamp(2.0**_LOWEST, 2.0 ** (_LOWEST + _OCTAVES)).view(torch.int32)
    first = (127 + _LOWEST) * _PER_OCTAVE
    bin_ = ((bits >> (23 - _PER_OCTAVE.bit_length() + 1)) - first).clamp(0, _BINS - 1)
    classes = losses.shape[1]
    problem = (labels > 0).int() * classes + torch.arange(classes, dtype=torch.int32)
    cell = (problem * _BINS + bin_).flatten()
    flat, cells = losses.double().flatten(), 2 * classes * _BINS
    counts = torch.bincount(cell, minlength=cells).double()
    safe = counts.clamp(min=1)
    mean = torch.bincount(cell, flat, minlength=cells) / safe
    square = torch.bincount(cell, flat.square(), minlength=cells) / safe
    spread = (square - mean.square()).clamp(min=0)
    shape = (2 * classes, _BINS)
    return mean.view(shape), counts.view(shape), spread.view(shape)


def _two_means(values: Tensor, counts: Tensor) -> Tensor:
    """Find the split of ordered points that leaves least variance; True on the small side."""
    # The points of a problem are in order, so the best of all two-means clusterings is a prefix.
    rows, mass = counts.cumsum(1), (counts * values).cumsum(1)
    left = mass.square() / rows.clamp(min=1)
    right = (mass[:, -1:] - mass).square() / (rows[:, -1:] - rows).clamp(min=1)
    between = (left + right).masked_fill((rows == 0) | (rows == rows[:, -1:]), -torch.inf)
    best = between.argmax(1, keepdim=True)
    return torch.arange(values.shape[1]) <= best


def _expectation_maximisation(
    values: Tensor, counts: Tensor, spread: Tensor, floor: Tensor, tolerance: float, steps: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Fit mixtures to weighted points: share, mean, variance (problems, 2), small mean first."""
    rows = counts.sum(1)
    small = _two_means(values, counts)
    members = torch.stack([counts * small, counts * ~small], 1)  # (problems, 2, points)
    share, mean, variance = _maximise(members, values, spread, floor)
    last = torch.full_like(rows, -torch.inf)
    active = torch.arange(len(rows))
    for _ in range(steps):
        if not len(active):
            break
        points, count, wide = values[active], counts[active], spread[active]
        precision = 1 / variance[active]
        constant = share[active].log() + 0.5 * (precision / (2 * torch.pi)).log()
        offset = points[:, None] - mean[active, :, None]
        log_density = constant[..., None] - 0.5 * offset.square() * precision[..., None]
        log_sum = log_density.logsumexp(1)  # (problems, points)
        members = (log_density - log_sum[:, None]).exp() * count[:, None]
        likelihood = (log_sum * count).sum(1) / rows[active]
        share[active], mean[active], variance[active] = _maximise(
            members, points, wide, floor[active]
        )
        moving = ~((likelihood - last[active]).abs() < tolerance)
        last[active] = likelihood
        active = active[moving]
    order = mean.argsort(1)
    return share.gather(1, order), mean.gather(1, order), variance.gather(1, order)


def _maximise(
    members: Tensor, values: Tensor, spread: Tensor, floor: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Set each component to the moments of its members (M-step)."""
    rows = members.sum(2)
    safe = rows.clamp(min=1e-12)
    mean = (members @ values[..., None])[..., 0] / safe
    offset = (values[:, None] - mean[..., None]).square() + spread[:, None]
    variance = (members * offset).sum(2) / safe + floor[:, None]
    return rows / rows.sum(1, keepdim=True), mean, variance
