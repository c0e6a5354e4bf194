"""Score label selection where the truth is known: labels kept, re-labelled or left in doubt."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from balancemix.labels.chunks import chunks
from balancemix.labels.table import LabelTable, Status

# Every entry falls into one of 48 cells: N×K numbers are read once, and shares come from counts.
GIVEN, TRUTH, TARGET, STATUS = torch.meshgrid(
    torch.arange(2), torch.arange(2), torch.arange(2), torch.arange(len(Status)), indexing="ij"
)
CELLS = STATUS.numel()
EVERY = STATUS >= 0
CORRECT = GIVEN == TRUTH
RIGHT_TARGET = TARGET == TRUTH
SELECTED = (STATUS == Status.CLEAN) | (STATUS == Status.VERIFIED)
RELABELLED = (STATUS == Status.PRESENT) | (STATUS == Status.ABSENT)
FLIPPED = RELABELLED & (TARGET != GIVEN)
CONFIRMED = RELABELLED & (TARGET == GIVEN)
AMBIGUOUS = (STATUS == Status.AMBIGUOUS) | (STATUS == Status.IGNORED)  # less weight, or none

SHARES = {  # the share of the first within the second
    "clean_precision": (CORRECT, SELECTED),
    "clean_recall": (SELECTED, CORRECT),
    "relabel_proportion": (RELABELLED, EVERY),
    "relabel_accuracy": (RIGHT_TARGET, RELABELLED),
    "flip_proportion": (FLIPPED, EVERY),
    "flip_accuracy": (RIGHT_TARGET, FLIPPED),
    "confirm_accuracy": (RIGHT_TARGET, CONFIRMED),
    "ambiguous_proportion": (AMBIGUOUS, EVERY),
    "target_accuracy": (RIGHT_TARGET, EVERY),
}
MEANS = {"clean_probability_right": CORRECT, "clean_probability_wrong": ~CORRECT}


def table_quality(
    table: LabelTable, truth: Tensor, groups: Mapping[str, Tensor] | None = None
) -> dict[str, float]:
    """Return shares in 0..1 that say how well labels were selected and re-labelled.

    A `truth` (N×K) of −1 leaves its entry out. Each name comes again as `<name>_positive` and
    `<name>_negative` (by given value) and as `<name>_<group>` for each group of class indices, then
    relative to that part alone. "Flipped" and "confirmed" divide the re-labelled labels by whether
    the target differs from the given label; most only confirm it. A share of nothing is left out.

    Unknown given labels are left out too, but for `fill_proportion`, the share of them that were
    filled in, and `fill_accuracy`, the share of these that are right.

    >>> table = LabelTable.from_given(torch.tensor([[1, 1, 0]]))
    >>> table.write(slice(None), torch.tensor([[Status.CLEAN, Status.ABSENT, Status.AMBIGUOUS]]))
    >>> table_quality(table, torch.tensor([[1, 0, 0]]))["clean_recall"]
    0.5
    """
    if truth.shape != table.shape:
        raise ValueError(
            f"truth must be N×K like the table, {table.shape}, not {tuple(truth.shape)}"
        )
    shape = (table.shape[1], *STATUS.shape)
    counts, sums = (torch.zeros(shape, dtype=torch.float64) for _ in range(2))
    filled = torch.zeros(3, dtype=torch.int64)
    for rows in chunks(*table.shape):  # without a matrix of floats as large as the table
        target, _ = table.rows(rows)
        given, status, clean = table.given[rows], table.status[rows], table.clean[rows]
        chunk = _tabulate(given, truth[rows], target, status, clean)
        counts += chunk[0]
        sums += chunk[1]
        filled += _count_filled(given, truth[rows], target, status)
    return _quality(counts, sums, groups) | _fill_shares(*filled.tolist())


def _count_filled(given: Tensor, truth: Tensor, target: Tensor, status: Tensor) -> Tensor:
    """Count the unknown labels, those filled in, and those filled in rightly."""
    unknown = (given < 0) & (truth >= 0)
    filled = unknown & ((status == Status.PRESENT) | (status == Status.ABSENT))
    right = filled & ((target > 0.5) == (truth == 1))
    return torch.stack([part.sum() for part in (unknown, filled, right)])


def _fill_shares(unknown: int, filled: int, right: int) -> dict[str, float]:
    shares = {"fill_proportion": filled / unknown} if unknown else {}
    return shares | ({"fill_accuracy": right / filled} if filled else {})


def _quality(counts: Tensor, sums: Tensor, groups: Mapping[str, Tensor] | None) -> dict[str, float]:
    """Name the shares of all entries, of each given value, and of each group."""
    parts = {"": (counts.sum(0), sums.sum(0))}
    for value, name in enumerate(("_negative", "_positive")):
        parts[name] = (counts.sum(0) * (value == GIVEN), sums.sum(0) * (value == GIVEN))
    for name, index in (groups or {}).items():
        parts[f"_{name}"] = (counts[index].sum(0), sums[index].sum(0))
    quality = {
        name + part: value
        for part, cells in parts.items()
        for name, value in _shares(*cells).items()
    }
    return {name: value for name, value in quality.items() if not math.isnan(value)}


def _tabulate(
    given: Tensor, truth: Tensor, target: Tensor, status: Tensor, clean: Tensor
) -> tuple[Tensor, Tensor]:
    """Count the entries, and add up P(clean), by class and cell of the grid: (K, 2, 2, 2, 6)."""
    classes = given.shape[1]
    cell = (given == 1).to(torch.int64)
    for bit in (truth == 1, target > 0.5):
        cell.mul_(2).add_(bit)
    cell.mul_(len(Status)).add_(status)
    cell.add_(torch.arange(classes, device=cell.device) * CELLS)
    unknown = (truth < 0) | (given < 0)
    cell.masked_fill_(unknown, classes * CELLS)  # one cell past the end for the unknown
    size = classes * CELLS + 1
    counts = torch.bincount(cell.flatten(), minlength=size).double()
    sums = torch.bincount(cell.flatten(), clean.flatten().double(), minlength=size)
    shape = (classes, *STATUS.shape)
    return counts[:-1].cpu().view(shape), sums[:-1].cpu().view(shape)


def _shares(counts: Tensor, sums: Tensor) -> dict[str, float]:
    """Divide cells by cells; a share of nothing is NaN."""
    shares = {
        name: counts[part & whole].sum() / counts[whole].sum()
        for name, (part, whole) in SHARES.items()
    }
    means = {name: sums[whole].sum() / counts[whole].sum() for name, whole in MEANS.items()}
    return {name: value.item() for name, value in (shares | means).items()}
