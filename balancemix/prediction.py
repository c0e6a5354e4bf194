"""What a model says of every row: N×K logits or confidences, in the order of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from balancemix import distributed


def predict(
    model: nn.Module,
    data: Dataset[Any],
    batch_size: int = 64,
    *,
    workers: int = 0,
    advance: Callable[[int], None] | None = None,
) -> Tensor:
    """Compute the N×K confidence in presence; the mean over views where `data` hands out several.

    `data[i]` is `(x, i)`. The same matrix is returned by every process.
    """
    run = _run(model, data, batch_size, workers, advance, torch.sigmoid)
    return run.clamp(0, 1)


def predict_logits(
    model: nn.Module,
    data: Dataset[Any],
    batch_size: int = 64,
    *,
    workers: int = 0,
    advance: Callable[[int], None] | None = None,
) -> Tensor:
    """Compute N×K float32 logits, which rank rows without the ties of saturated probabilities."""
    return _run(model, data, batch_size, workers, advance, lambda logits: logits)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch to evaluation without gradients, and back to each module's own mode after."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def loader(data: Dataset[Any], workers: int = 0, **order: Any) -> DataLoader[Any]:
    """Make a loader, with the data's own `collate` if it has one."""
    collate = getattr(data, "collate", None)
    return DataLoader(data, num_workers=workers, collate_fn=collate, **order)


def _run(
    model: nn.Module,
    data: Dataset[Any],
    batch_size: int,
    workers: int,
    advance: Callable[[int], None] | None,
    transform: Callable[[Tensor], Tensor],
) -> Tensor:
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    total = len(data)  # type: ignore[arg-type]
    batches = [range(i, min(i + batch_size, total)) for i in range(0, total, batch_size)]
    mine = [list(batch) for batch in batches[distributed.rank() :: distributed.world()]]
    idle = total > 0 and not mine  # more processes than batches: learn K, add nothing
    result: Tensor | None = None
    with evaluating(model):
        for x, index in loader(data, workers, batch_sampler=[[0]] if idle else mine):
            views = [x] if isinstance(x, Tensor) else x
            said = torch.stack([transform(model(v.to(device)).float()) for v in views]).mean(0)
            if result is None:
                result = torch.zeros(total, said.shape[1])
            result[index] = said.cpu() * (not idle)
            if advance is not None:
                advance(len(index))
    if result is None:
        raise ValueError("there is no row to predict")
    # Each row was filled by one process and is zero in the others: their sum is the whole.
    return distributed.sum_over_processes(result)
