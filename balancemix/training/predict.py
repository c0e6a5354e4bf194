"""A model's predictions for every row: N×K logits or confidence, in the order of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from balancemix import processes
from balancemix.data.loading import Loader
from balancemix.data.tables.new import label_cells
from balancemix.files import write_arrays, write_sheet
from balancemix.models.classifier import evaluating
from balancemix.models.fold import folded


def predict(
    model: nn.Module,
    data: Dataset[Any],
    batch_size: int = 64,
    *,
    workers: int = 0,
    advance: Callable[[int], None] | None = None,
) -> Tensor:
    """Compute the N×K confidence in presence; the mean over views where `data` has several.

    `data[i]` is `(x, i)`. Every process returns the same matrix.
    """
    return _run(model, data, batch_size, workers, advance, torch.sigmoid).clamp_(0, 1)


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


def write_predictions(
    out: Path, names: Sequence[str], classes: Sequence[str], confidence: Tensor, threshold: float
) -> None:
    """Write N×K confidences to an .npz, or to a CSV beside the classes over the threshold."""
    if out.suffix == ".npz":
        arrays = {"confidence": confidence.numpy(), "names": list(names), "classes": list(classes)}
        write_arrays(out, arrays)
        return
    numbers = [[f"{value:.4f}" for value in column] for column in confidence.T.tolist()]
    labels = label_cells((confidence >= threshold).int(), classes)
    write_sheet(out, ("image", "labels", *classes), zip(names, labels, *numbers, strict=True))


def _local_batches(total: int, size: int) -> list[list[int]]:
    """Cut rows into batches, and take those of this process: every n-th of n processes."""
    batches = [list(range(i, min(i + size, total))) for i in range(0, total, size)]
    return batches[processes.rank() :: processes.world_size()]


def _forward(
    model: nn.Module,
    data: Dataset[Any],
    batches: list[list[int]],
    workers: int,
    transform: Callable[[Tensor], Tensor],
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the index and the transformed logits of each batch; of several views, their mean."""
    tensors = chain(model.parameters(), model.buffers())  # what is solved has only buffers
    device = next((tensor.device for tensor in tensors), torch.device("cpu"))
    model, fast = processes.unwrap(model), None
    for x, index in Loader(data, batches, workers):
        views = [view.to(device) for view in ([x] if isinstance(x, Tensor) else x)]
        if fast is None:
            fast = folded(model, views[0][:1])
        with evaluating(fast):
            result = torch.stack([transform(fast(view).float()) for view in views]).mean(0)
        yield index, result.cpu()


def _run(
    model: nn.Module,
    data: Dataset[Any],
    batch_size: int,
    workers: int,
    advance: Callable[[int], None] | None,
    transform: Callable[[Tensor], Tensor],
) -> Tensor:
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, it is {batch_size}")
    total = len(data)  # type: ignore[arg-type]
    batches = _local_batches(total, batch_size)
    idle = total > 0 and not batches  # more processes than batches: learn K, add nothing
    batches = [[0]] if idle else batches
    result: Tensor | None = None
    predictions = _forward(model, data, batches, workers, transform)
    for batch, (index, values) in zip(batches, predictions, strict=True):
        _check(batch, index, values)
        if result is None:
            result = torch.zeros(total, values.shape[1])
        result[index] = values * (not idle)
        if advance is not None:
            advance(len(index))
    if result is None:
        raise ValueError("there is no row to predict")
    # Each row was filled by one process and is zero in the others: their sum is the whole.
    return processes.all_reduce(result)


def _check(batch: list[int], index: Tensor, values: Tensor) -> None:
    """Refuse rows that come under other numbers than asked for, and logits that are not B×K."""
    for row, number in zip(batch, torch.as_tensor(index).tolist(), strict=True):
        if row != number:
            raise ValueError(f"data[{row}] came as row {number}: it must be (x, {row})")
    if values.ndim != 2 or len(values) != len(batch):
        shape = tuple(values.shape)
        raise ValueError(
            f"the model must return B×K logits, not of shape {shape} for {len(batch)} rows"
        )
