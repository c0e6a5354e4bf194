"""The values of a row that has no picture, in a line that people can read."""

from __future__ import annotations

from torch import Tensor


def written(features: Tensor | None, row: int, most: int = 8) -> str:
    """Write the first features of a row; "" if there are none, and the size of a map.

    >>> import torch
    >>> written(torch.tensor([[0.25, -3.0], [1234.5, 0.0]]), 1), written(torch.ones(1, 9), 0, 2)
    ('1,234, 0', '1, 1 … (9 values)')
    """
    if features is None:
        return ""
    values = features[row]
    if values.ndim > 1:
        return f"{'×'.join(map(str, values.shape))} values"
    shown = ", ".join(
        f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
        for value in values[:most].tolist()
    )
    return shown if len(values) <= most else f"{shown} … ({len(values):,} values)"
