"""Estimate which labels are clean: 2·K mixtures of two Gaussians over losses (Eqs. 6–8).

The losses of each class and side (given negative, given positive) become weighted points: the
losses themselves if there are few rows, otherwise the bins of `histogram.py`. `em.py` fits all
mixtures at once, and P(clean) of a label is a sigmoid of a quadratic of its loss.

Departure: the paper does not say what to do with rare, constant or one-sided losses, where a
literal mixture calls every label noisy. Here every such label is clean, and `Mixtures.guard` says
why.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import torch
from torch import Tensor

from balancemix.labels.chunks import chunks
from balancemix.labels.em import fit_two_gaussians
from balancemix.labels.histogram import (
    BINS,
    MOST_ROWS,
    Points,
    add_losses,
    empty_histogram,
    points_of_histogram,
    points_of_losses,
)
from balancemix.labels.table import check_confidence, check_given

Fit = Literal["raw", "dividemix"]
EDGE = 1e-7  # from 0 and 1: a probability in float32 closer to them has no finite logarithm


def label_loss(given: Tensor, confidence: Tensor) -> Tensor:
    """Compute the binary cross-entropy of hard labels under predicted probabilities (Eqs. 6–8).

    >>> label_loss(torch.tensor([1, 0]), torch.tensor([0.5, 1.0]))
    tensor([ 0.6931, 16.1181])
    """
    of_given = torch.where(given > 0, confidence, 1 - confidence)
    return -of_given.clamp(EDGE, 1 - EDGE).log()


class Guard(IntEnum):
    """Why a mixture is not used, so that all its labels count as clean."""

    FITTED = 0
    FEW = 1  # too few labels
    CONSTANT = 2  # equal losses
    EMPTY = 3  # a component without members, or NaN
    OVERLAPPING = 4  # components that overlap too much (only with `separation`)


@dataclass(frozen=True)
class Mixtures:
    """Parameters by side (0 negative, 1 positive), class and component (0 clean, 1 noisy)."""

    share: Tensor  # (2, K, 2)
    mean: Tensor  # (2, K, 2)
    variance: Tensor  # (2, K, 2)
    guard: Tensor  # (2, K) uint8: Guard

    def clean(self, given: Tensor, confidence: Tensor) -> Tensor:
        """Compute P(clean) of N×K given labels from a model's confidence (Eq. 8)."""
        return self.posterior(given, label_loss(given, confidence))

    def posterior(self, given: Tensor, losses: Tensor) -> Tensor:
        """Compute P(clean | loss) of N×K losses under the mixture of their class and side (Eq. 8).

        Departure: the log-odds of two Gaussians of different width turn back in one tail, where
        a very small loss may look noisy, or a huge one clean. The loss is therefore clamped at
        the turning point, so P(clean) never grows with the loss.
        """
        dtype = losses.dtype if losses.dtype == torch.float64 else torch.float32
        curves = [part.to(losses.device, dtype) for part in self._curves()]
        clean = torch.empty_like(losses)

        def log_odds(chunk: Tensor, side: int) -> Tensor:
            root, low, high, constant, linear, quadratic = (curve[side] for curve in curves)
            offset = torch.clamp(chunk - root, low, high)
            return torch.addcmul(linear, quadratic, offset).mul_(offset).add_(constant)

        for rows in chunks(*losses.shape):
            chunk = losses[rows].to(dtype)
            odds = torch.where(given[rows] > 0, log_odds(chunk, 1), log_odds(chunk, 0))
            torch.sigmoid(odds, out=clean[rows])
        return clean

    def _curves(self) -> tuple[Tensor, ...]:
        """Write the log-odds of clean as a quadratic of the loss's offset from a point, (2, K).

        The point is where they cross zero, or else turn, so that float32 is precise enough there.
        Returns the point, the least and greatest offset, and the coefficients.
        """
        precision, apart = 1 / self.variance, self.mean.diff(dim=-1)[..., 0]
        # First in terms of u, the offset from the clean mean: quadratic·u² − slope·u + height.
        ratio = self.share.log() + 0.5 * precision.log()
        quadratic = 0.5 * precision.diff(dim=-1)[..., 0]
        slope = precision[..., 1] * apart
        height = 0.5 * slope * apart - ratio.diff(dim=-1)[..., 0]
        turn = slope / (2 * quadratic)
        square = slope.square() - 4 * quadratic * height
        crosses = square > 0
        fall = square.clamp(min=0).sqrt()
        root = torch.where(crosses, 2 * height / (slope + fall), turn)
        low = torch.where(quadratic < 0, turn - root, -torch.inf)
        high = torch.where(quadratic > 0, turn - root, torch.inf)
        constant = torch.where(crosses, 0.0, height - 0.5 * slope * turn)
        point = self.mean[..., 0] + root
        # With a guard, or equal components, the log-odds are the same everywhere.
        flat = (self.guard > 0) | ~torch.isfinite(point)
        level = torch.where(self.guard > 0, torch.inf, height)
        return (
            point.masked_fill(flat, 0.0),
            low.masked_fill(flat, -torch.inf),
            high.masked_fill(flat, torch.inf),
            torch.where(flat, level, constant),
            (-fall).masked_fill(flat, 0.0),
            quadratic.masked_fill(flat, 0.0),
        )


def guard_counts(guard: Tensor) -> dict[str, float]:
    """Count the mixtures that were not used, by reason, under the names that the log has."""
    counts = {g: int((guard == g).sum()) for g in Guard if g}
    return {f"mixtures_{g.name.lower()}": count for g, count in counts.items() if count}


def clean_probability(
    given: Tensor,
    confidence: Tensor,
    *,
    fit: Fit = "raw",
    min_labels: int = 10,
    separation: float = 0.0,
) -> Tensor:
    """Fit the mixtures and compute P(clean | loss) of every label, N×K; see `fit_mixtures`.

    >>> confidence = torch.tensor([0.9, 0.88, 0.91, 0.9, 0.92, 0.89, 0.9, 0.05, 0.04, 0.06])
    >>> clean_probability(torch.ones(10, 1), confidence[:, None])[:, 0].round()
    tensor([1., 1., 1., 1., 1., 1., 1., 0., 0., 0.])
    """
    mixtures = fit_mixtures(
        given, confidence, fit=fit, min_labels=min_labels, separation=separation
    )
    return mixtures.clean(given, confidence)


def fit_mixtures(
    given: Tensor,
    confidence: Tensor,
    *,
    fit: Fit = "raw",
    min_labels: int = 10,
    separation: float = 0.0,
) -> Mixtures:
    """Fit the two mixtures of each class to the losses of N×K given labels (Eqs. 6 and 7).

    `raw` runs EM to convergence; a variance is at least a millionth of the data's. `dividemix` is
    that paper's setting: losses scaled to [0, 1], variances widened, ten steps. All labels of a
    side are clean if there are fewer than `min_labels`, or, with `separation` s > 0, if the two
    means are closer than s times the sum of the deviations. Unknown labels (−1) take no part.
    """
    check_confidence(given, confidence)
    points = _points(given, confidence, label_loss)
    return _fit_groups(points, fit, min_labels, separation)


def fit_losses(
    given: Tensor,
    losses: Tensor,
    *,
    fit: Fit = "raw",
    min_labels: int = 10,
    separation: float = 0.0,
) -> Mixtures:
    """Fit the mixtures to N×K losses of any kind, ≥ 0; see `fit_mixtures`."""
    _check(given, losses)
    points = _points(given, losses, lambda _, chunk: chunk)
    return _fit_groups(points, fit, min_labels, separation)


def _points(
    given: Tensor, values: Tensor, loss: Callable[[Tensor, Tensor], Tensor]
) -> Iterator[Points]:
    """Reduce `loss(given, values)` to points: each loss one, or of many rows their bins."""
    if len(given) <= BINS:
        return points_of_losses(given, loss(given, values))
    if len(given) > MOST_ROWS:
        raise ValueError(f"mixtures can be fitted to at most {MOST_ROWS} rows, not {len(given)}")
    histogram = empty_histogram(given.shape[1], values.device)
    # In chunks: a matrix of losses would be as large as the confidence.
    for rows in chunks(*given.shape):
        add_losses(histogram, given[rows], loss(given[rows], values[rows]))
    return points_of_histogram(histogram)


def _fit_groups(groups: Iterable[Points], fit: Fit, min_labels: int, separation: float) -> Mixtures:
    """Fit 2·K mixtures to groups of their points, all negative sides first."""
    fitted = [_fit_points(points, fit, min_labels, separation) for points in groups]
    model, guard = (torch.cat(parts) for parts in zip(*fitted, strict=True))
    share, mean, variance = model.view(2, -1, 3, 2).unbind(2)
    return Mixtures(share, mean, variance, guard.view(2, -1))


def _fit_points(
    points: Points, fit: Fit, min_labels: int, separation: float
) -> tuple[Tensor, Tensor]:
    """Fit the mixtures that can be; return parameters (problems, 3, 2) and guards."""
    value, count, spread = points.value, points.count, points.spread
    inside = count > 0
    rows = count.sum(1)
    safe = rows.clamp(min=1)
    centre = (count * value).sum(1) / safe
    centred = value - centre[:, None]
    deviation = ((count * (centred.square() + spread)).sum(1) / safe).sqrt()
    highest = torch.where(inside, value, -torch.inf).amax(1)
    lowest = torch.where(inside, value, torch.inf).amin(1)
    guard = torch.full_like(rows, Guard.FITTED, dtype=torch.uint8)
    guard[(highest - lowest < 1e-8) | (deviation < 1e-8)] = Guard.CONSTANT
    guard[rows < max(min_labels, 1)] = Guard.FEW

    # Centred, in units of the deviation: no sum of squares loses precision.
    usable = guard == Guard.FITTED
    unit = torch.where(usable, deviation, 1.0)[:, None]
    if fit == "raw":
        least, added, tolerance, steps = 1e-6, torch.zeros_like(rows), 1e-6, 500
    else:
        added = 5e-4 * ((highest - lowest) / unit[:, 0]).square()
        least, tolerance, steps = 0.0, 1e-2, 10
    share, mean, variance = fit_two_gaussians(
        centred / unit,
        count * usable[:, None],
        spread / unit.square(),
        least,
        added,
        tolerance,
        steps,
    )
    mean, variance = mean * unit + centre[:, None], variance * unit.square()
    fitted = torch.stack([share, mean, variance], 1)
    broken = ~torch.isfinite(fitted).all(2).all(1)
    # A component may be a single label; the tolerance keeps rounding from deciding.
    broken |= (share * rows[:, None] < 1 - 1e-6).any(1) | (variance <= 0).any(1)
    alike = mean.diff(dim=1)[:, 0] < separation * variance.sqrt().sum(1)
    guard[usable & alike] = Guard.OVERLAPPING
    guard[usable & broken] = Guard.EMPTY
    parts = torch.full_like(share, 0.5), torch.zeros_like(mean), torch.ones_like(variance)
    return torch.where(broken[:, None, None], torch.stack(parts, 1), fitted), guard


def _check(given: Tensor, losses: Tensor) -> None:
    if losses.shape != given.shape or losses.ndim != 2:
        shapes = f"{tuple(given.shape)} and {tuple(losses.shape)}"
        raise ValueError(f"given and losses must both be N×K, not {shapes}")
    check_given(given)
    if not losses.numel():
        return
    least, most = losses.aminmax()
    if not bool((least >= 0) & (most < torch.inf)):  # also if there is a NaN
        wrong = ~(torch.isfinite(losses) & (losses >= 0))
        row, k = (int(i) for i in wrong.nonzero()[0])
        bad = float(losses[row, k])
        raise ValueError(f"loss of row {row}, class {k} must be finite and ≥ 0, not {bad}")
