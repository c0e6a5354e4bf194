"""What a model says of rows, as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from balancemix.data.formats.csv import write_table
from balancemix.files import write_arrays


def write_predictions(
    out: Path, names: Sequence[str], classes: Sequence[str], confidence: Tensor, threshold: float
) -> None:
    """Write N×K confidences to an .npz, or to a CSV beside the classes over the threshold."""
    if out.suffix == ".npz":
        arrays = {"confidence": confidence.numpy(), "names": list(names), "classes": list(classes)}
        write_arrays(out, arrays)
        return
    numbers = [[f"{value:.4f}" for value in column] for column in confidence.T.tolist()]
    columns = dict(zip(classes, numbers, strict=True))
    write_table(out, names, (confidence >= threshold).int(), classes, columns)
