"""Reduce the losses of each class and side to weighted points: integer bins, or single losses.

A histogram is one int64 tensor (2, K, BINS); side 0 holds the given negatives. Bins have equal
width within an octave, so a loss's bin is the leading bits of its float. An entry holds how many
losses fell into the bin and the sum of their places in it. All are integers: histograms of parts
add up to that of the whole, in any order.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from balancemix.labels.chunks import chunks

# From 2⁻²⁴, the last bit of a float32 probability, to 2⁸, beyond any BCE; others are clamped.
_OCTAVES, _LOWEST, _PER_OCTAVE = 32, -24, 32
BINS = _OCTAVES * _PER_OCTAVE

_MANTISSA = 23
_BIN_SHIFT = _MANTISSA - _PER_OCTAVE.bit_length() + 1
_PLACES = 64  # within a bin
_PLACE_SHIFT = _BIN_SHIFT - _PLACES.bit_length() + 1
_FIRST = (127 + _LOWEST) * _PER_OCTAVE

# An entry is count · 2³⁴ + sum of places, so a bin has room for 2²⁸ losses.
_COUNT_SHIFT = 34
MOST_ROWS = 1 << 28

_TILE = 128  # classes to count at once
_PROBLEMS = 512  # to fit at once


@dataclass(frozen=True)
class Points:
    """Weighted points of some problems, (problems, L) each; values ascend, count 0 is padding."""

    value: Tensor
    count: Tensor
    spread: Tensor  # the variance of the losses that a point stands for


def empty_histogram(classes: int, device: torch.device | str = "cpu") -> Tensor:
    """Make the histogram of no losses."""
    return torch.zeros(2, classes, BINS, dtype=torch.int64, device=device)


def add_losses(histogram: Tensor, given: Tensor, losses: Tensor) -> None:
    """Count N×K losses of given labels into `histogram`, in place; not those of unknown labels.

    >>> histogram = empty_histogram(1)
    >>> add_losses(histogram, torch.tensor([[1], [0], [0]]), torch.tensor([[0.7], [0.7], [3.0]]))
    >>> [points.count.tolist() for points in points_of_histogram(histogram)]
    [[[1.0, 1.0], [1.0, 0.0]]]
    """
    classes, flat = histogram.shape[1], histogram.view(-1)
    lowest, highest = _FIRST << _BIN_SHIFT, ((_FIRST + BINS) << _BIN_SHIFT) - 1
    column = torch.arange(classes, dtype=torch.int32, device=histogram.device) * BINS - _FIRST
    # Some classes at a time, so that their bins stay in the cache.
    for left in range(0, classes, _TILE):
        part = slice(left, left + _TILE)
        for rows in chunks(len(losses), min(classes, _TILE)):
            bits = losses[rows, part].float().contiguous().view(torch.int32).clamp(lowest, highest)
            cell = (bits >> _BIN_SHIFT).add_(column[part])
            cell.add_(given[rows, part] > 0, alpha=classes * BINS)
            place = bits.bitwise_right_shift_(_PLACE_SHIFT).bitwise_and_(_PLACES - 1)
            entry = place.long().add_(1 << _COUNT_SHIFT)
            entry.masked_fill_(given[rows, part] < 0, 0)
            flat.index_add_(0, cell.flatten(), entry.flatten())


def points_of_histogram(histogram: Tensor) -> Iterator[Points]:
    """Take each bin that is not empty as a point, at the mean of its losses.

    Yields the problems in order, all negative sides first, some at a time.
    """
    problems = _in_double_precision(histogram).flatten(0, 1)
    edges = torch.arange(_FIRST, _FIRST + BINS + 1, dtype=torch.int32, device=problems.device)
    edge = (edges << _BIN_SHIFT).view(torch.float32).double()
    for group in torch.split(problems, _PROBLEMS):
        problem, bin_ = group.nonzero(as_tuple=True)
        entry = group[problem, bin_]
        count = (entry >> _COUNT_SHIFT).double()
        place = (entry & ((1 << _COUNT_SHIFT) - 1)) / count
        low, width = edge[bin_], edge.diff()[bin_]
        value = low + width * (place + 0.5) / _PLACES
        # As of losses spread evenly over the bin; a single one has no spread.
        spread = width.square() / 12 * (1 - 1 / count)
        length = torch.bincount(problem, minlength=len(group))
        first = length.cumsum(0) - length
        position = torch.arange(len(problem), device=problem.device) - first[problem]
        points = value.new_zeros(3, len(group), max(int(length.max()), 1))
        points[:, problem, position] = torch.stack([value, count, spread])
        yield Points(*points)


def points_of_losses(given: Tensor, losses: Tensor) -> Iterator[Points]:
    """Take each loss of a known label as a point, for few rows; see `points_of_histogram`."""
    losses = _in_double_precision(losses).double()
    given = given.to(losses.device)
    sides = torch.stack([given == 0, given > 0]).transpose(1, 2).flatten(0, 1)
    values = losses.T.repeat(2, 1).masked_fill_(~sides, torch.inf).sort(1).values
    groups = (torch.split(part, _PROBLEMS) for part in (sides, values))
    for side, ordered in zip(*groups, strict=True):
        longest = int(side.sum(1).max())
        value = pad(ordered[:, :longest], (0, 1), value=torch.inf)  # at least one column
        inside = value.isfinite()
        yield Points(value.masked_fill_(~inside, 0.0), inside.double(), torch.zeros_like(value))


def _in_double_precision(values: Tensor) -> Tensor:
    """Move a tensor to where there is float64: Apple's GPUs have none."""
    return values.cpu() if values.device.type == "mps" else values
