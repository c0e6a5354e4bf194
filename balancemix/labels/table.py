"""The N×K label table: what is given, what is believed of it, and what training makes of it."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from balancemix.labels.chunks import chunks

LabelMatrix = Tensor | npt.ArrayLike  # N×K: a tensor, an array, a list of rows, a pandas frame


class Status(IntEnum):
    """What became of a label; C, R and U are the paper's sets."""

    CLEAN = 0  # as given, full weight (C)
    PRESENT = 1  # re-labelled present, full weight (R)
    ABSENT = 2  # re-labelled absent, full weight (R)
    AMBIGUOUS = 3  # as given, weight P(clean) (U)
    IGNORED = 4  # no weight: dropped by the method, or unknown and not filled in
    VERIFIED = 5  # checked by a person: as given, full weight, never changed


class Labels(NamedTuple):
    """All of a table as N×K matrices; target, weight and clean are float32."""

    given: Tensor
    target: Tensor
    weight: Tensor
    status: Tensor
    clean: Tensor


@dataclass
class LabelTable:
    """What is known of the labels: N×K arrays on the CPU, four bytes a label.

    Target and weight are not stored: `rows` derives those of a batch, `whole` those of all rows.
    """

    given: Tensor  # int8: 1 present, 0 absent, −1 unknown; shared with the data, never written to
    status: Tensor  # uint8: Status
    clean: Tensor  # float16: P(clean | loss), Eq. 8
    soft: Tensor | None = None  # float: targets between 0 and 1, for methods that learn from them

    @classmethod
    def from_given(cls, given: LabelMatrix, verified: LabelMatrix | None = None) -> Self:
        """Make a table in which every known label is clean, and verified ones are VERIFIED.

        Unknown labels (−1) are ignored, and verifying one does not make it known. See `as_given`
        and `as_verified`.
        """
        given = as_given(given)
        checked = None if verified is None else as_verified(verified, given)
        status = torch.full(given.shape, Status.CLEAN, dtype=torch.uint8)
        clean = torch.ones(given.shape, dtype=torch.float16)
        for rows in chunks(*given.shape):
            if checked is not None:
                status[rows].masked_fill_(checked[rows], Status.VERIFIED)
            status[rows].masked_fill_(given[rows] < 0, Status.IGNORED)
            clean[rows].masked_fill_(given[rows] < 0, 0.0)  # there is no given label to be right
        return cls(given, status, clean)

    def __len__(self) -> int:
        return len(self.given)

    @property
    def shape(self) -> tuple[int, int]:
        """N and K."""
        return len(self.given), self.given.shape[1]

    def rows(
        self, index: Tensor | slice, device: torch.device | str = "cpu"
    ) -> tuple[Tensor, Tensor]:
        """Look up target and weight of some rows, both B×K float32."""
        index = index.cpu() if isinstance(index, Tensor) else index
        status = self.status[index]
        target, weight = training_labels(self.given[index], status, self.clean[index])
        if self.soft is not None:
            target = torch.where(status == Status.VERIFIED, target, self.soft[index].float())
        return target.to(device), weight.to(device)

    def verified(self, index: Tensor | slice = slice(None)) -> Tensor:
        """Mark the verified labels of some rows: B×K booleans."""
        return self.status[index.cpu() if isinstance(index, Tensor) else index] == Status.VERIFIED

    def doubtful(self) -> Tensor:
        """Return the given labels that may be wrong: verified ones are −1, as unknown ones are."""
        if not any(bool(self.verified(rows).any()) for rows in chunks(*self.shape)):
            return self.given
        given = self.given.clone()
        for rows in chunks(*self.shape):
            given[rows].masked_fill_(self.verified(rows), -1)
        return given

    def write(
        self, rows: Tensor | slice, status: Tensor | Status, clean: Tensor | None = None
    ) -> None:
        """Set status and P(clean) of some rows; VERIFIED labels stay as they are.

        An unknown label without a new value is IGNORED, whatever its `status`, and its P(clean) is
        0.
        """
        before, status = self.status[rows], torch.as_tensor(status, dtype=torch.uint8)
        status, unknown = status.expand(before.shape), self.given[rows] < 0
        unfilled = unknown & (status != Status.PRESENT) & (status != Status.ABSENT)
        status = status.masked_fill(unfilled, Status.IGNORED)
        verified = before == Status.VERIFIED
        self.status[rows] = torch.where(verified, before, status)
        if clean is not None:
            clean = rounded(clean).masked_fill(unknown, 0.0)
            self.clean[rows] = torch.where(verified, self.clean[rows], clean)

    def shares(self) -> dict[str, float]:
        """Compute the share of labels of each status, and of those flipped.

        PRESENT and ABSENT count together as re-labelled; flipped are those that differ from the
        given label. Ignored and verified are left out where there are none.
        """
        counts = torch.zeros(3 * len(Status), dtype=torch.int64)
        for rows in chunks(*self.shape):
            cell = (self.given[rows] + 1) * len(Status) + self.status[rows]
            counts += torch.bincount(cell.flatten(), minlength=len(counts))
        by_given = counts.view(3, len(Status)).double() / max(int(counts.sum()), 1)
        share = {status: float(by_given[:, status].sum()) for status in Status}
        rare = (Status.IGNORED, Status.VERIFIED)
        return {
            "clean": share[Status.CLEAN],
            "relabelled": share[Status.PRESENT] + share[Status.ABSENT],
            "ambiguous": share[Status.AMBIGUOUS],
            **{status.name.lower(): share[status] for status in rare if share[status]},
            "flipped": float(by_given[1, Status.PRESENT] + by_given[2, Status.ABSENT]),
        }

    def whole(self) -> Labels:
        """Derive target and weight of every row: fourteen bytes a label, so for files and tests."""
        target, weight = self.rows(slice(None))
        return Labels(self.given, target, weight, self.status, self.clean.float())

    def copy(self) -> Self:
        """Copy what can be written to; `given` is shared."""
        soft = None if self.soft is None else self.soft.clone()
        return type(self)(self.given, self.status.clone(), self.clean.clone(), soft)

    def state_dict(self) -> dict[str, Tensor | None]:
        """Return copies of the arrays by name, for a checkpoint."""
        return dict(vars(self.copy()))


def as_given(labels: LabelMatrix) -> Tensor:
    """Read given labels, N×K: int8, 1 present, 0 absent, −1 unknown. All labels come in here.

    Takes tensors, NumPy arrays, pandas frames and lists, of booleans, integers or floats; NaN (in
    frames also a missing value) is unknown. Labels that already are 8-bit integers are not copied.

    >>> as_given([[1, 0], [-1, float("nan")]])
    tensor([[ 1,  0],
            [-1, -1]], dtype=torch.int8)
    """
    matrix = (labels if isinstance(labels, Tensor) else _as_tensor(labels)).detach().cpu()
    if matrix.is_floating_point():
        matrix = torch.where(matrix.isnan(), -1.0, matrix)
    check_given(matrix)
    # As uint8, 0 and 1 are the same bytes.
    return matrix.view(torch.int8) if matrix.dtype == torch.uint8 else matrix.to(torch.int8)


def as_verified(verified: LabelMatrix, given: Tensor) -> Tensor:
    """Read which of N×K given labels are verified: booleans, or 0 and 1."""
    matrix = verified if isinstance(verified, Tensor) else _as_tensor(verified)
    if matrix.shape != given.shape:
        shapes = f"{tuple(given.shape)}, not {tuple(matrix.shape)}"
        raise ValueError(f"verified must have the shape of given, {shapes}")
    if not bool(((matrix == 0) | (matrix == 1)).all()):
        raise ValueError("verified must be 0 or 1 (or False and True) for each label")
    return matrix.detach().cpu() > 0


def _as_tensor(labels: Any) -> Tensor:
    """Make a tensor of what NumPy understands."""
    array = np.asarray(labels)
    if array.dtype.kind == "O":  # a frame of several types, or with missing values
        try:
            if hasattr(labels, "to_numpy"):
                array = labels.to_numpy(dtype=np.float64, na_value=np.nan)
            else:
                array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"labels must be numbers in N rows of K ({error})") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"labels must be numbers, not {array.dtype}")
    if array.dtype.kind == "u" and array.itemsize > 1:
        array = np.minimum(array, 2).astype(np.uint8)  # 2 is refused, as any other number is
    if array.dtype.kind == "f" and array.itemsize > 8:
        array = array.astype(np.float64)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    # torch cannot read backwards, and warns of arrays that are read-only.
    return torch.from_numpy(np.require(array, requirements=["C", "W"]))


def check_given(given: Tensor) -> None:
    """Refuse anything but an N×K matrix of 1 (present), 0 (absent) and −1 (unknown)."""
    if given.ndim != 2:
        raise ValueError(f"given must be an N×K matrix, not of shape {tuple(given.shape)}")
    for rows in chunks(*given.shape):
        chunk = given[rows]
        known = (chunk == 0) | (chunk == 1)
        if chunk.dtype.is_signed:  # as uint8, −1 would equal 255
            known |= chunk == -1
        if bool(known.all()):
            continue
        shares = chunk[(chunk > 0) & (chunk < 1)]
        advice = ": round shares of votes and soft labels, or give unsure ones as unknown"
        which = f", not {float(shares[0]):g}{advice}" if len(shares) else ""
        raise ValueError(f"given labels must be 0, 1 or −1 (unknown){which}")


def check_confidence(given: Tensor, confidence: Tensor) -> None:
    """Refuse invalid N×K labels, and confidence of another shape or outside 0 to 1.

    This notices swapped arguments, unless both are all 0 and 1.
    """
    if given.shape != confidence.shape or given.ndim != 2:
        shapes = f"{tuple(given.shape)} and {tuple(confidence.shape)}"
        raise ValueError(f"given and confidence must both be N×K, not {shapes}")
    check_given(given)
    if confidence.numel():
        least, most = confidence.aminmax()
        if not bool((least >= 0) & (most <= 1)):  # also if there is a NaN
            raise ValueError(f"confidence must be between 0 and 1, not {least:g} to {most:g}")


def rounded(clean: Tensor) -> Tensor:
    """Round probabilities to float16 without crossing a half, where Eq. 9 decides.

    >>> rounded(torch.tensor([0.0, 0.4999999, 0.5, 0.5000001, 1.0])) > 0.5
    tensor([False, False, False,  True,  True])
    """
    half = clean.to(torch.float16)
    return half.masked_fill((clean > 0.5) & (half <= 0.5), 0.5 + 2**-11)  # the next one above


def manage(
    given: Tensor,
    clean: Tensor,
    confidence: Tensor,
    epsilon: float = 0.975,
    *,
    relabel: bool = True,
    reweight: bool = True,
) -> Tensor:
    """Decide what becomes of each label: its status (Eqs. 8 and 9).

    All matrices have one shape. `confidence` is the mean over two augmented views (Eq. 9); a
    label that is not clean is re-labelled where it is above `epsilon` or below 1 − `epsilon`, both
    strictly. The new label may equal the given one, which is then confirmed. What is left is
    ambiguous, or ignored without `reweight`. An unknown label is filled in likewise, or ignored.

    >>> given, clean = torch.tensor([[1, 1, 0, 1]]), torch.tensor([[0.9, 0.2, 0.1, 0.3]])
    >>> status = manage(given, clean, torch.tensor([[0.0, 0.001, 0.999, 0.5]]))
    >>> [Status(code).name for code in status[0].tolist()]
    ['CLEAN', 'ABSENT', 'PRESENT', 'AMBIGUOUS']
    """
    unknown = given < 0
    doubted = ~(clean > 0.5) | unknown
    left = Status.AMBIGUOUS if reweight else Status.IGNORED
    status = torch.full_like(given, Status.CLEAN, dtype=torch.uint8).masked_fill_(doubted, left)
    status.masked_fill_(unknown, Status.IGNORED)
    if relabel:
        status.masked_fill_(doubted & (confidence > epsilon), Status.PRESENT)
        status.masked_fill_(doubted & (confidence < 1 - epsilon), Status.ABSENT)
    return status


def training_labels(given: Tensor, status: Tensor, clean: Tensor) -> tuple[Tensor, Tensor]:
    """Derive the target to train on and its weight (Eq. 10).

    >>> given, clean = torch.tensor([[1, 1, 0, 1]]), torch.tensor([[0.9, 0.2, 0.1, 0.25]])
    >>> status = torch.tensor([[Status.CLEAN, Status.ABSENT, Status.PRESENT, Status.AMBIGUOUS]])
    >>> training_labels(given, status, clean)
    (tensor([[1., 0., 1., 1.]]), tensor([[1.0000, 1.0000, 1.0000, 0.2500]]))
    """
    dtype = torch.promote_types(clean.dtype, torch.float32)
    present, absent = status == Status.PRESENT, status == Status.ABSENT
    target = (((given > 0) & ~absent) | present).to(dtype)
    dropped = (status == Status.IGNORED) | ((given < 0) & ~present & ~absent)
    weight = torch.where(status == Status.AMBIGUOUS, clean.to(dtype), 1.0)
    return target, weight.masked_fill_(dropped, 0.0)
