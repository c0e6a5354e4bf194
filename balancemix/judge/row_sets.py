"""Sets of rows that are handled together: those in which classes are known, and groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor


def patterns(known: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Group the classes by the rows in which they are known: the classes, and those rows."""
    sharing: dict[bytes, list[int]] = {}
    for k, column in enumerate(known.T):
        sharing.setdefault(np.packbits(column.numpy()).tobytes(), []).append(k)
    for names in sharing.values():
        classes, rows = torch.tensor(names), known[:, names[0]].nonzero()[:, 0]
        if len(rows):
            yield classes, rows


def shared_groups(groups: Tensor | None) -> Iterator[Tensor]:
    """List the rows of each group of two or more."""
    if groups is None:
        return
    _, group, counts = np.unique(groups.numpy(), return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    for rows in np.split(order, counts.cumsum()[:-1]):
        if len(rows) > 1:
            yield torch.from_numpy(rows)
