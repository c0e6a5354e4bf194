"""The other processes of a run, if there are any; the only file that talks to torch.distributed."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor


def _grouped() -> bool:
    return dist.is_available() and dist.is_initialized()


def rank() -> int:
    """Number this process, from 0."""
    return dist.get_rank() if _grouped() else 0


def world() -> int:
    """Count the processes."""
    return dist.get_world_size() if _grouped() else 1


def sum_over_processes(values: Tensor) -> Tensor:
    """Add up a tensor over all processes, in place."""
    if world() > 1:
        dist.all_reduce(values)
    return values
