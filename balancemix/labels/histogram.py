"""The losses of each class and side as weighted points: in integer bins, or one by one if few.

A histogram is one int64 tensor (2, K, BINS), side 0 being the given negatives. Bins are of equal
width within an octave, so a loss's bin is the leading bits of its float. An entry holds both how
many losses fell into the bin and where in it they lie on average. All of it is integers: histograms
of parts add up to that of the whole, whatever the parts and their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from balancemix.labels.chunks import chunks

# From 2⁻²⁴, a float32 probability's last bit, to 2⁸, beyond any BCE; what is outside is held there.
_OCTAVES, _LOWEST, _PER_OCTAVE = 32, -24, 32
BINS = _OCTAVES * _PER_OCTAVE

_MANTISSA = 23
_BIN_SHIFT = _MANTISSA - _PER_OCTAVE.bit_length() + 1
_PLACES = 64  # within a bin
_PLACE_SHIFT = _BIN_SHIFT - _PLACES.bit_length() + 1
_FIRST = (127 + _LOWEST) * _PER_OCTAVE

# An entry is count · 2³⁴ + sum of places: there is room for 2²⁸ losses in a bin.
_COUNT_SHIFT = 34
MOST_ROWS = 1 << 28

_TILE = 128  # classes at once
_GROUP = 1 << 18  # points at once


@dataclass(frozen=True)
class Points:
    """Weighted points of many problems, end to end; in each they are in order of their value."""

    value: Tensor
    count: Tensor
    spread: Tensor  # the variance of the losses that the point stands for
    length: Tensor  # points in each problem

    def thinned(self) -> Points:
        """Merge points near zero that lie closer than the narrowest Gaussian would tell apart.

        Of bins whose width shrinks with their value there are most where they matter least.
        """
        if not len(self.value):
            return self
        device = self.value.device
        problem = torch.arange(len(self.length), device=device).repeat_interleave(self.length)
        moment = self._moments(problem, len(self.length))
        deviation = (moment[2] - moment[1].square()).clamp(min=0).sqrt()
        # A variance is at least 1e-6 of the data's, so a deviation is four of these widths.
        width = (2.5e-4 * deviation).index_select(0, problem)
        place = (self.value / width).floor_()
        alone = ~(place[1:] < _PER_OCTAVE)  # from here on the bins themselves are wider
        first = alone | (place.diff() != 0) | (problem.diff() != 0)
        target = torch.cat([first.new_zeros(1, dtype=torch.int64), first.cumsum(0)])
        count, value, square = self._moments(target, int(target[-1]) + 1)
        length = torch.bincount(problem[1:][first], minlength=len(self.length))
        length[problem[0]] += 1
        return Points(value, count, (square - value.square()).clamp(min=0), length)

    def _moments(self, target: Tensor, targets: int) -> tuple[Tensor, Tensor, Tensor]:
        """Compute count, mean and mean square of the points with the same target."""
        mass = self.count * self.value
        square = mass * self.value + self.count * self.spread
        count = torch.bincount(target, self.count, minlength=targets)
        safe = count.clamp(min=1)
        mean = torch.bincount(target, mass, minlength=targets) / safe
        return count, mean, torch.bincount(target, square, minlength=targets) / safe

    def groups(self) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Yield problems of similar length: their index, value, count and spread (problems, L).

        Points that only fill up have a count of zero.
        """
        ends = self.length.cumsum(0)
        order = self.length.argsort(stable=True)
        end = len(order)
        while end > 0:
            longest = max(int(self.length[order[end - 1]]), 1)
            start = max(0, end - max(1, _GROUP // longest))
            index = order[start:end]
            length, place = self.length[index, None], torch.arange(longest, device=index.device)
            inside = place < length
            where = (ends[index, None] - length + place)[inside]
            padded = self.value.new_zeros(3, *inside.shape)
            for part, flat in zip(padded, (self.value, self.count, self.spread), strict=True):
                part.masked_scatter_(inside, flat.index_select(0, where))
            yield index, *padded
            end = start


def empty_histogram(classes: int, device: torch.device | str = "cpu") -> Tensor:
    """Make the histogram of no losses."""
    return torch.zeros(2, classes, BINS, dtype=torch.int64, device=device)


def add_losses(histogram: Tensor, given: Tensor, losses: Tensor) -> None:
    """Count N×K losses of given labels into `histogram`, in place.

    >>> histogram = empty_histogram(1)
    >>> add_losses(histogram, torch.tensor([[1], [0], [0]]), torch.tensor([[0.7], [0.7], [3.0]]))
    >>> points_of_histogram(histogram).count
    tensor([1., 1., 1.], dtype=torch.float64)
    """
    classes, flat = histogram.shape[1], histogram.view(-1)
    lowest, highest = _FIRST << _BIN_SHIFT, ((_FIRST + BINS) << _BIN_SHIFT) - 1
    column = torch.arange(classes, dtype=torch.int32, device=histogram.device) * BINS - _FIRST
    # Tile by tile: the bins of some classes stay in the cache, those of a thousand do not.
    for left in range(0, classes, _TILE):
        part = slice(left, left + _TILE)
        for rows in chunks(len(losses), min(classes, _TILE)):
            bits = losses[rows, part].float().contiguous().view(torch.int32).clamp(lowest, highest)
            cell = (bits >> _BIN_SHIFT).add_(column[part])
            cell.add_(given[rows, part] > 0, alpha=classes * BINS)
            place = bits.bitwise_right_shift_(_PLACE_SHIFT).bitwise_and_(_PLACES - 1)
            entry = place.long().add_(1 << _COUNT_SHIFT)
            flat.index_add_(0, cell.flatten(), entry.flatten())


def points_of_histogram(histogram: Tensor) -> Points:
    """Take each bin that is not empty as a point, at the mean of its losses."""
    flat = _in_double_precision(histogram).reshape(-1)
    cell = flat.nonzero()[:, 0]
    entry = flat.index_select(0, cell)
    count = (entry >> _COUNT_SHIFT).double()
    place = (entry & ((1 << _COUNT_SHIFT) - 1)).double() / count
    edges = torch.arange(_FIRST, _FIRST + BINS + 1, dtype=torch.int32, device=flat.device)
    edge = (edges << _BIN_SHIFT).view(torch.float32).double()
    bin_ = cell % BINS
    low, width = edge.index_select(0, bin_), edge.diff().index_select(0, bin_)
    value = low + width * (place + 0.5) / _PLACES
    # Of losses anywhere in the bin; a single one has no spread.
    spread = width.square() / 12 * (1 - 1 / count)
    length = torch.bincount(cell // BINS, minlength=histogram.shape[0] * histogram.shape[1])
    return Points(value, count, spread, length)


def points_of_losses(given: Tensor, losses: Tensor) -> Points:
    """Take each of N×K losses as a point of its own; for few rows."""
    losses = _in_double_precision(losses).double()
    given = given.to(losses.device)
    side = torch.stack([given <= 0, given > 0]).transpose(1, 2).flatten(0, 1)
    ordered = losses.T.repeat(2, 1).masked_fill(~side, torch.inf).sort(1).values
    value = ordered[torch.isfinite(ordered)]
    return Points(value, torch.ones_like(value), torch.zeros_like(value), side.sum(1))


def _in_double_precision(values: Tensor) -> Tensor:
    """Put a tensor where there are floats of 64 bits: Apple's GPUs have none."""
    return values.cpu() if values.device.type == "mps" else values
