"""The N×K label table: what is given, what is believed of it, and what training makes of it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Literal, Self

import torch
from torch import Tensor

RelabelWeight = Literal["one", "confidence"]


class Status(IntEnum):
    """The reliability of a label: C, R and U of the paper."""

    CLEAN = 0
    RELABELLED = 1
    AMBIGUOUS = 2


@dataclass
class LabelTable:
    """Everything known of the labels; every field is N×K and lives on the CPU."""

    given: Tensor  # uint8, as annotated; never written to
    target: Tensor  # float: what to train on
    weight: Tensor  # float in [0, 1]: how far to trust it
    status: Tensor  # uint8: Status
    clean: Tensor  # float: P(clean | loss), Eq. 8

    @classmethod
    def trusting(cls, given: Tensor) -> Self:
        """Make the table that believes every given label."""
        if given.ndim != 2:
            raise ValueError(f"labels must be an N×K matrix, not of shape {tuple(given.shape)}")
        if not bool(((given == 0) | (given == 1)).all()):
            raise ValueError("labels must be 0 or 1")
        given = given.to("cpu", torch.uint8, copy=True)
        ones = torch.ones(given.shape)
        return cls(given, given.float(), ones, torch.zeros_like(given), ones.clone())

    def rows(self, index: Tensor, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
        """Look up target and weight of the rows `index`, both B×K."""
        index = index.to(self.given.device)
        return self.target[index].to(device), self.weight[index].to(device)

    def state_dict(self) -> dict[str, Tensor]:
        """Name every field."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


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
