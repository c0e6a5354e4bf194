"""Make labels wrong on purpose, as the paper and related work do (training labels only).

Every function takes N×K uint8 labels and a generator, and returns new labels.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from balancemix.errors import InputError, suggest


def mislabel(
    labels: Tensor, rate: float, generator: torch.Generator, exact: bool = False
) -> Tensor:
    """Move each positive, with probability `rate`, to a class that is absent from its row.

    The class is drawn in proportion to its positives, among the classes absent from the row that no
    other label moved to. So a row keeps its number of positives, and `rate` of them end up false. A
    label stays if no class is left. `exact` moves int(rate × positives) labels, if it can.

    >>> mislabel(torch.eye(2, dtype=torch.uint8), 1.0, torch.Generator())
    tensor([[0, 1],
            [1, 0]], dtype=torch.uint8)
    """
    _check_rate("rate", rate)
    positive = labels > 0
    count = positive.sum(0)
    absent = ~positive & (count > 0)
    room = absent.sum(1, keepdim=True)
    if exact:
        movable = (positive & (positive.cumsum(1) <= room)).flatten().nonzero().flatten()
        chosen = torch.randperm(len(movable), generator=generator)[: int(rate * int(count.sum()))]
        moved = torch.zeros_like(positive).flatten().index_fill_(0, movable[chosen], True)
        moved = moved.view_as(positive)
    else:
        moved = positive & (torch.rand(labels.shape, generator=generator) < rate)
        moved &= moved.cumsum(1) <= room
    # The first m of exponential clocks with rates N_j to ring are m draws without replacement.
    clock = -torch.log1p(-torch.rand(labels.shape, generator=generator)) / count
    moves = moved.sum(1, keepdim=True)
    most = int(moves.max()) if len(labels) else 0
    order = clock.masked_fill_(~absent, torch.inf).topk(most, largest=False).indices
    received = (torch.arange(most) < moves).to(labels.dtype)
    return (labels * ~moved).scatter_add_(1, order, received)


def flip(
    labels: Tensor,
    rate: float,
    generator: torch.Generator,
    positive_rate: float | None = None,
    negative_rate: float | None = None,
) -> Tensor:
    """Flip each label with probability `rate`, or with the rate of its side.

    >>> flip(torch.tensor([[1, 0]], dtype=torch.uint8), 0, torch.Generator(), negative_rate=1)
    tensor([[1, 1]], dtype=torch.uint8)
    """
    positive_rate = rate if positive_rate is None else positive_rate
    negative_rate = rate if negative_rate is None else negative_rate
    _check_rate("positive_rate", positive_rate)
    _check_rate("negative_rate", negative_rate)
    draw = torch.rand(labels.shape, generator=generator)
    flipped = torch.where(labels > 0, draw < positive_rate, draw < negative_rate)
    return labels ^ flipped.to(labels.dtype)


def single_positive(labels: Tensor, generator: torch.Generator) -> Tensor:
    """Keep one positive of each row, chosen uniformly; a row without positives stays as it is.

    >>> single_positive(torch.ones(5, 3, dtype=torch.uint8), torch.Generator()).sum(1)
    tensor([1, 1, 1, 1, 1])
    """
    # From (0, 1], so that a positive is always above the negatives, which are 0.
    draw = (1 - torch.rand(labels.shape, generator=generator)) * labels
    return torch.zeros_like(labels).scatter_(1, draw.argmax(1, keepdim=True), 1) * labels


def drop(labels: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Turn each positive into a negative with probability `rate`: partial labels.

    >>> drop(torch.tensor([[1, 0]], dtype=torch.uint8), 1.0, torch.Generator())
    tensor([[0, 0]], dtype=torch.uint8)
    """
    _check_rate("rate", rate)
    return labels * (torch.rand(labels.shape, generator=generator) >= rate)


def measured_rates(truth: Tensor, given: Tensor) -> dict[str, float]:
    """Measure how many given labels are wrong, as shares; the share of an empty set is 0.

    `wrong` of all labels; `false_positives` and `false_negatives` of the given positives and
    negatives; `lost_positives` and `flipped_negatives` of the true positives and negatives.

    >>> measured_rates(torch.tensor([[1, 1, 0, 0]]), torch.tensor([[1, 0, 0, 0]]))["lost_positives"]
    0.5
    """
    wrong = truth != given

    def share(part: Tensor) -> float:
        return (wrong & part).sum().item() / max(int(part.sum()), 1)

    return {
        "wrong": share(torch.ones_like(wrong)),
        "false_positives": share(given > 0),
        "false_negatives": share(given == 0),
        "lost_positives": share(truth > 0),
        "flipped_negatives": share(truth == 0),
    }


@dataclass(frozen=True)
class Noise:
    """One kind of noise and its rates; `parse` makes it from text, `str` makes the text again."""

    kind: str
    rate: float = 0.0
    positive_rate: float | None = None
    negative_rate: float | None = None

    def __post_init__(self) -> None:
        _check_kind(self.kind)
        for rate in (self.rate, self.positive_rate, self.negative_rate):
            _check_rate("noise rate", 0.0 if rate is None else rate)

    def apply(self, labels: Tensor, seed: int) -> Tensor:
        """Make N×K labels wrong; the same seed makes the same mistakes."""
        generator = torch.Generator().manual_seed(seed)
        if self.kind == "mislabel":
            return mislabel(labels, self.rate, generator)
        if self.kind == "flip":
            return flip(labels, self.rate, generator, self.positive_rate, self.negative_rate)
        if self.kind == "single":
            return single_positive(labels, generator)
        if self.kind == "drop":
            return drop(labels, self.rate, generator)
        return labels.clone()

    def __str__(self) -> str:
        if self.positive_rate is self.negative_rate is None:
            return f"{self.kind}:{self.rate}" if KINDS[self.kind] else self.kind
        sides = (self.positive_rate, self.negative_rate)
        return f"{self.kind}:" + ",".join(str(self.rate if r is None else r) for r in sides)


KINDS = {"none": 0, "mislabel": 1, "flip": 2, "single": 0, "drop": 1}  # and how many rates at most


_LETTERS = set("0123456789.eE+- naif")  # of numbers, nan and inf, which have no rate


def parse(text: str) -> Noise:
    """Read `none`, `mislabel:0.4`, `flip:0.2`, `flip:0.1,0.3` (positives, negatives) and the like.

    >>> parse("flip:0.1,0.3")
    Noise(kind='flip', rate=0.0, positive_rate=0.1, negative_rate=0.3)
    """
    kind, colon, rest = text.strip().partition(":")
    _check_kind(kind)
    given = rest.split(",") if colon else []
    if not bool(KINDS[kind]) <= len(given) <= KINDS[kind]:
        form = ("no rate", "one rate, as in {}:0.4", "one rate or two, as in {}:0.1,0.3")
        raise InputError(f"noise {text!r}: {kind} takes {form[KINDS[kind]].format(kind)}")
    rates = [_rate(text, value) for value in given]
    return Noise(kind, 0.0, *rates) if len(rates) == 2 else Noise(kind, *rates)


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise InputError(f"noise: unknown kind {kind!r}; {suggest(kind, list(KINDS))}")


def _rate(text: str, value: str) -> float:
    try:
        if not set(value) <= _LETTERS:  # Python also reads 1_0 and a line break
            raise ValueError
        rate = float(value)
    except ValueError:
        raise InputError(
            f"noise {text!r}: {value!r} is not a number; use one from 0 to 1"
        ) from None
    _check_rate(f"noise {text!r}: rate", rate)
    return rate


def _check_rate(name: str, rate: float) -> None:
    if not 0 <= rate <= 1:
        raise InputError(f"{name} must be from 0 to 1, not {rate}")
