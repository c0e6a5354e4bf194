"""The N×K label table: what is given, what is believed of it, and what training makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, Self

import torch
from torch import Tensor

from balancemix import processes
from balancemix.labels.chunks import chunks

RelabelWeight = Literal["one", "confidence"]


class Status(IntEnum):
    """The reliability of a label: C, R and U of the paper."""

    CLEAN = 0
    RELABELLED = 1
    AMBIGUOUS = 2


# A label's two bytes: given, target and status in four bits, the log-odds of P(clean) above them.
_TARGET, _STATUS, _ODDS = 1, 2, 4  # how far each is shifted; given is not
_STEPS, _MOST = 128, 2047  # 128 steps to a unit of log-odds; ± 2047 stand for 1 and 0
_FINE_STEPS = 1024


@dataclass
class LabelTable:
    """Everything known of the labels, N×K on the CPU, in two bytes a label.

    Every field reads as a matrix of its own: `given` (uint8, as annotated; never written to),
    `target` (float: what to train on), `weight` (float in [0, 1]: how far to trust it), `status`
    (uint8: Status) and `clean` (float: P(clean | loss), Eq. 8, to within 0.4 % of itself). Labels
    count fully but for ambiguous ones, which count by `clean` (Eq. 10). Only a method whose targets
    or weights are others pays for a float matrix of them.
    """

    code: Tensor  # int16
    soft: Tensor | None = None  # float: targets that are not all 0 or 1
    set_weight: Tensor | None = None  # float: weights that are not Eq. 10's

    @classmethod
    def trusting(cls, given: Tensor) -> Self:
        """Make the table that believes every given label."""
        if given.ndim != 2:
            raise ValueError(f"labels must be an N×K matrix, not of shape {tuple(given.shape)}")
        for rows in chunks(*given.shape):
            if not bool(((given[rows] == 0) | (given[rows] == 1)).all()):
                raise ValueError("labels must be 0 or 1")
        code = given.to("cpu", torch.int16, copy=True)
        return cls(code.mul_(1 + (1 << _TARGET)).add_(_MOST << _ODDS))

    def __len__(self) -> int:
        return len(self.code)

    @property
    def shape(self) -> tuple[int, int]:
        """N and K."""
        return len(self.code), self.code.shape[1]

    @property
    def given(self) -> Tensor:
        """The labels as annotated."""
        given = torch.empty(self.code.shape, dtype=torch.uint8)
        for rows in chunks(*self.shape):
            given[rows] = self.as_given(rows)
        return given

    @property
    def target(self) -> Tensor:
        """What to train on."""
        return self._target(self.code, self.soft)

    @target.setter
    def target(self, target: Tensor) -> None:
        if bool(((target == 0) | (target == 1)).all()):
            self.soft = None
            self._put(target, _TARGET, 1)
        else:
            self.soft = target.float()

    @property
    def weight(self) -> Tensor:
        """How much each label counts."""
        return self._weight(self.code, self.set_weight)

    @weight.setter
    def weight(self, weight: Tensor) -> None:
        self.set_weight = weight.float()

    @property
    def status(self) -> Tensor:
        """What was decided of each label."""
        return (self.code >> _STATUS & 3).to(torch.uint8)

    @status.setter
    def status(self, status: Tensor) -> None:
        self._put(status, _STATUS, 3)

    @property
    def clean(self) -> Tensor:
        """P(clean) of each label."""
        return self._clean(self.code)

    @clean.setter
    def clean(self, clean: Tensor) -> None:
        self._put(odds_code(clean), _ODDS, -1)

    def rows(self, index: Tensor, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
        """Look up target and weight of the rows `index`, both B×K."""
        part = self.part(index.to(self.code.device))
        target, weight = (
            self._target(part.code, part.soft),
            self._weight(part.code, part.set_weight),
        )
        return target.to(device), weight.to(device)

    def part(self, rows: Tensor | slice) -> Self:
        """Take some rows as a table; a slice of them shares its bytes with this one."""
        soft, weight = (
            None if part is None else part[rows] for part in (self.soft, self.set_weight)
        )
        return type(self)(self.code[rows], soft, weight)

    def as_given(self, rows: Tensor | slice) -> Tensor:
        """Look up the given labels of some rows, B×K."""
        return (self.code[rows] & 1).to(torch.uint8)

    def doubts(self, rows: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Look up given and clean of some rows, both B×K."""
        code = self.code[rows]
        return (code & 1).to(torch.uint8), self._clean(code)

    def note(self, rows: Tensor | slice, confidence: Tensor) -> None:
        """Write the confidence in some rows over all but their given labels, until it is `judge`d.

        With the bits of target and status its steps are an eighth of those of P(clean).
        """
        steps = (confidence.double().logit() * _FINE_STEPS).round().clamp(-(1 << 14), (1 << 14) - 1)
        self.code[rows] = self.code[rows] & 1 | steps.to(torch.int16) << 1

    def noted(self, rows: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Look up given labels and the confidence noted of some rows, both B×K."""
        code = self.code[rows]
        return (code & 1).to(torch.uint8), ((code >> 1).float() / _FINE_STEPS).sigmoid()

    def judge(self, rows: Tensor | slice, clean: Tensor) -> None:
        """Write P(clean) of some rows."""
        self.code[rows] = self.code[rows] & 15 | odds_code(clean) << _ODDS

    def decide(
        self, rows: Tensor | slice, target: Tensor, status: Tensor, weight: Tensor | None = None
    ) -> None:
        """Write what becomes of some rows' labels; a `weight` only if it is not Eq. 10's."""
        bits = (target.to(torch.int16) << _TARGET) + (status.to(torch.int16) << _STATUS)
        self.code[rows] = self.code[rows] & ~14 | bits
        if weight is not None:
            if self.set_weight is None:
                self.set_weight = torch.ones(self.code.shape)
            self.set_weight[rows] = weight

    def gather(self, own: Tensor) -> None:
        """Take the rows that are not one's `own` (N booleans) from the processes whose they are."""
        for matrix in (self.code, self.set_weight):
            if matrix is not None:
                matrix[~own] = 0
                # Of each byte all processes but one hold a zero.
                processes.sum_over_processes(matrix.view(torch.uint8))

    def shares(self) -> dict[str, float]:
        """Say which shares of the labels are of each status, and which are flipped."""
        counts = torch.zeros(16, dtype=torch.int64)
        for rows in chunks(*self.shape):
            counts += torch.bincount((self.code[rows] & 15).flatten(), minlength=16)
        bits, total = torch.arange(16), max(int(counts.sum()), 1)
        found = {
            status.name.lower(): float(counts[bits >> _STATUS == status].sum()) / total
            for status in Status
        }
        flipped = counts[(bits & 1) != (bits >> _TARGET & 1)].sum()
        return {**found, "flipped": float(flipped) / total}

    def matrices(self) -> dict[str, Tensor]:
        """Name every matrix."""
        names = ("given", "target", "weight", "status", "clean")
        return {name: getattr(self, name) for name in names}

    def copy(self) -> Self:
        """Make a table that shares nothing with this one: tables are written to in place."""
        soft, weight = (
            None if part is None else part.clone() for part in (self.soft, self.set_weight)
        )
        return type(self)(self.code.clone(), soft, weight)

    def state_dict(self) -> dict[str, Tensor | None]:
        """Name what is stored."""
        return dict(vars(self.copy()))

    def _put(self, values: Tensor, shift: int, mask: int) -> None:
        values = values.to("cpu", torch.int16)
        self.code = self.code & ~(mask << shift) | values << shift

    @staticmethod
    def _target(code: Tensor, soft: Tensor | None) -> Tensor:
        return (code >> _TARGET & 1).float() if soft is None else soft

    @classmethod
    def _weight(cls, code: Tensor, weight: Tensor | None) -> Tensor:
        if weight is not None:
            return weight
        return torch.where((code >> _STATUS & 3) == Status.AMBIGUOUS, cls._clean(code), 1.0)

    @staticmethod
    def _clean(code: Tensor) -> Tensor:
        steps = (code >> _ODDS).float()
        clean = (steps / _STEPS).sigmoid()
        return clean.masked_fill_(steps == _MOST, 1.0).masked_fill_(steps == -_MOST - 1, 0.0)


def odds_code(clean: Tensor) -> Tensor:
    """Write probabilities as steps of their log-odds (int16), which never cross a half.

    >>> odds_code(torch.tensor([0.0, 0.4999999, 0.5, 0.5000001, 1.0])).tolist()
    [-2048, 0, 0, 1, 2047]
    """
    odds = clean.double().logit()
    steps = (odds * _STEPS).round().clamp(1 - _MOST, _MOST - 1)
    steps = torch.where(odds > 0, steps.clamp(min=1), steps.clamp(max=0))
    steps = torch.where(clean >= 1, _MOST, torch.where(clean <= 0, -_MOST - 1, steps))
    return steps.to(torch.int16)


def manage(
    given: Tensor,
    clean: Tensor,
    confidence: Tensor,
    *,
    epsilon: float = 0.975,
    relabel: bool = True,
    reweight: bool = True,
    relabel_weight: RelabelWeight = "one",
) -> tuple[Tensor, Tensor, Tensor]:
    """Decide the fate of each label: target, weight and status (Eqs. 8–10).

    All matrices are of one shape. `confidence` is the mean over two augmented views (Eq. 9); a
    label that is not clean is re-labelled where it is above `epsilon` or below 1 − `epsilon`, both
    strictly. The new label may equal the given one: it is then confirmed and has full weight. What
    is left is ambiguous: weighted by its clean probability, or dropped without `reweight`.

    >>> given, clean = torch.tensor([[1, 1, 0, 1]]), torch.tensor([[0.9, 0.2, 0.1, 0.3]])
    >>> target, weight, status = manage(given, clean, torch.tensor([[0.0, 0.001, 0.999, 0.5]]))
    >>> target.tolist(), status.tolist()
    ([[1.0, 0.0, 1.0, 1.0]], [[0, 1, 1, 2]])
    """
    doubted = ~(clean > 0.5)
    present = doubted & (confidence > epsilon) if relabel else torch.zeros_like(doubted)
    absent = doubted & (confidence < 1 - epsilon) if relabel else torch.zeros_like(doubted)
    rewritten = present | absent
    undecided = doubted & ~rewritten

    target = given.to(clean.dtype).masked_fill(present, 1.0).masked_fill(absent, 0.0)
    status = torch.full_like(given, Status.CLEAN, dtype=torch.uint8)
    status = status.masked_fill(rewritten, Status.RELABELLED)
    status = status.masked_fill(undecided, Status.AMBIGUOUS)

    weight = torch.ones_like(clean)
    if relabel_weight == "confidence":
        weight = torch.where(rewritten, torch.maximum(confidence, 1 - confidence), weight)
    return target, torch.where(undecided, clean if reweight else 0.0, weight), status
