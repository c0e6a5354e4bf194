"""What a model said of the rows: an N×K matrix of confidence, or batch by batch without one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from balancemix import processes

# All rows in order; or batches of (row numbers, B×K confidence), of which each process has its own.
Said = Tensor | Iterable[tuple[Tensor, Tensor]]

_ROWS = 1024  # of a matrix, at a time


def by_batches(said: Said | None, shape: tuple[int, int]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield (row numbers, confidence) of N×K confidences on the CPU, or say what is wrong.

    >>> [index.tolist() for index, _ in by_batches(torch.zeros(3, 2), (3, 2))]
    [[0, 1, 2]]
    """
    if said is None:
        raise ValueError("end_epoch needs the N×K confidence on the training data")
    if isinstance(said, Tensor):
        _check(said, shape)
        said = zip(
            torch.split(torch.arange(shape[0]), _ROWS), torch.split(said, _ROWS), strict=True
        )
    for index, confidence in said:
        confidence = confidence.detach().cpu().float()
        _check(confidence, (len(index), shape[1]))
        yield index.cpu(), confidence


def as_matrix(said: Said | None, shape: tuple[int, int]) -> Tensor:
    """Collect N×K confidences of all processes on the CPU."""
    matrix = torch.zeros(shape)
    for index, confidence in by_batches(said, shape):
        matrix[index] = confidence
    return matrix if isinstance(said, Tensor) else processes.sum_over_processes(matrix)


def _check(confidence: Tensor, shape: tuple[int, int]) -> None:
    if confidence.shape != shape or not bool(confidence.isfinite().all()):
        found = f"{tuple(confidence.shape)}, {int((~confidence.isfinite()).sum())} not finite"
        raise ValueError(f"confidence must be N×K and finite as the labels are, it is {found}")
