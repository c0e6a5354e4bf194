"""Make labels wrong or unknown on purpose, as the paper and related work do (training labels only).

Every function takes N×K labels and a generator, and returns new labels. Unknown labels (−1) stay
unknown: none moves, flips or counts. Verified labels are known to be right, so `Noises` leaves
them as they are.
"""

import re
from dataclasses import dataclass

import torch
from torch import Tensor

from balancemix.errors import InputError, suggest


def mislabel(
    labels: Tensor,
    rate: float,
    generator: torch.Generator,
    exact: bool = False,
    verified: Tensor | None = None,
) -> Tensor:
    """Move each positive, with probability `rate`, to a class that is absent from its row.

    The class is drawn in proportion to its positives, among the classes absent from the row that no
    other label moved to. So a row keeps its number of positives, and `rate` of them end up false. A
    label stays if no class is left. `exact` moves int(rate × positives) labels, if it can. No
    `verified` label (N×K bool) moves, and none takes the place of one.

    >>> mislabel(torch.eye(2, dtype=torch.uint8), 1.0, torch.Generator())
    tensor([[0, 1],
            [1, 0]], dtype=torch.uint8)
    """
    _check_rate("rate", rate)
    positive = labels > 0
    count = positive.sum(0)
    absent = (labels == 0) & (count > 0)
    if verified is not None:
        positive, absent = positive & ~verified, absent & ~verified
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
    return torch.where((labels >= 0) & flipped, 1 - labels, labels)


def single_positive(labels: Tensor, generator: torch.Generator) -> Tensor:
    """Keep one positive of each row, chosen uniformly; a row without positives stays as it is.

    >>> single_positive(torch.ones(5, 3, dtype=torch.uint8), torch.Generator()).sum(1)
    tensor([1, 1, 1, 1, 1])
    """
    # From (0, 1], so that a positive is always above the negatives, which are 0.
    draw = (1 - torch.rand(labels.shape, generator=generator)) * (labels > 0)
    chosen = torch.zeros_like(labels).scatter_(1, draw.argmax(1, keepdim=True), 1)
    return torch.where(labels > 0, chosen, labels)


def drop(labels: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Turn each positive into a negative with probability `rate`: partial labels.

    >>> drop(torch.tensor([[1, 0]], dtype=torch.uint8), 1.0, torch.Generator())
    tensor([[0, 0]], dtype=torch.uint8)
    """
    _check_rate("rate", rate)
    lost = torch.rand(labels.shape, generator=generator) < rate
    return labels.masked_fill((labels > 0) & lost, 0)


def hide(labels: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Make each label unknown with probability `rate`, present or absent alike.

    >>> hide(torch.tensor([[1, 0]], dtype=torch.int8), 1.0, torch.Generator())
    tensor([[-1, -1]], dtype=torch.int8)
    """
    _check_rate("rate", rate)
    if not labels.dtype.is_signed:
        raise InputError(
            f"labels must be of a type that can be −1, such as int8, not {labels.dtype}"
        )
    return labels.masked_fill(torch.rand(labels.shape, generator=generator) < rate, -1)


def draw_kept(count: int, rate: float, generator: torch.Generator) -> Tensor:
    """Draw the share `rate` of N rows that a person checks: N bool.

    >>> int(draw_kept(10, 0.3, torch.Generator()).sum())
    3
    """
    _check_rate("rate", rate)
    chosen = torch.randperm(count, generator=generator)[: round(rate * count)]
    return torch.zeros(count, dtype=torch.bool).index_fill_(0, chosen, True)


def measured_rates(
    truth: Tensor, given: Tensor, verified: Tensor | None = None
) -> dict[str, float]:
    """Measure how many given labels are wrong, as shares; the share of an empty set is 0.

    `wrong` of all labels; `false_positives` and `false_negatives` of the given positives and
    negatives; `lost_positives` and `flipped_negatives` of the true positives and negatives. Labels
    that are unknown in either matrix are left out. If there are any, `unknown` is the share of all
    labels that are not given, and `verified` the share that are verified.

    >>> measured_rates(torch.tensor([[1, 1, 0, 0]]), torch.tensor([[1, 0, 0, 0]]))["lost_positives"]
    0.5
    """
    known = (truth >= 0) & (given >= 0)
    wrong = (truth != given) & known

    def share(part: Tensor) -> float:
        return (wrong & part).sum().item() / max(int((part & known).sum()), 1)

    rates = {
        "wrong": share(known),
        "false_positives": share(given > 0),
        "false_negatives": share(given == 0),
        "lost_positives": share(truth > 0),
        "flipped_negatives": share(truth == 0),
    }
    for name, part in (("unknown", given < 0), ("verified", verified)):
        if part is not None and bool(part.any()):
            rates[name] = int(part.sum()) / part.numel()
    return rates


KINDS = {  # and how many rates at most
    "none": 0, "mislabel": 1, "flip": 2, "single": 0, "drop": 1, "unknown": 1, "keep": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Noise:
    """One kind of noise and its rates; `str` makes the text that `parse` reads."""

    kind: str
    rate: float = 0.0
    positive_rate: float | None = None
    negative_rate: float | None = None

    def __post_init__(self) -> None:
        _check_kind(self.kind)
        for rate in (self.rate, self.positive_rate, self.negative_rate):
            _check_rate("noise rate", 0.0 if rate is None else rate)

    def add(self, labels: Tensor, generator: torch.Generator, verified: Tensor | None) -> Tensor:
        """Make N×K labels wrong, but for verified ones; `keep` changes none."""
        if self.kind == "mislabel":
            return mislabel(labels, self.rate, generator, verified=verified)
        if self.kind == "flip":
            made = flip(labels, self.rate, generator, self.positive_rate, self.negative_rate)
        elif self.kind == "single":
            made = single_positive(labels, generator)
        elif self.kind == "drop":
            made = drop(labels, self.rate, generator)
        elif self.kind == "unknown":
            made = hide(labels, self.rate, generator)
        else:
            return labels
        return made if verified is None else torch.where(verified, labels, made)

    def __str__(self) -> str:
        if self.positive_rate is self.negative_rate is None:
            return f"{self.kind}:{self.rate}" if KINDS[self.kind] else self.kind
        sides = (self.positive_rate, self.negative_rate)
        return f"{self.kind}:" + ",".join(str(self.rate if r is None else r) for r in sides)


@dataclass(frozen=True)
class Noisy:
    """Labels with noise, N×K int8, and which of them are verified, if any are."""

    given: Tensor
    verified: Tensor | None


@dataclass(frozen=True)
class Noises:
    """Kinds of noise that are added one after the other; `parse` makes them from text."""

    parts: tuple[Noise, ...]

    @property
    def kind(self) -> str:
        """The kinds, joined by +."""
        return "+".join(part.kind for part in self.parts)

    @property
    def errs(self) -> bool:
        """Whether any kind makes labels wrong; `unknown` and `keep` make none."""
        return any(part.kind not in ("none", "unknown", "keep") for part in self.parts)

    def apply(
        self, labels: Tensor, seed: int, verified: Tensor | None = None, truth: Tensor | None = None
    ) -> Noisy:
        """Add the noise to N×K labels; the same seed makes the same mistakes.

        The rows that `keep` draws are those that a person has checked: wherever it stands, they
        have the labels from before all noise, or the `truth` where it is known, and these become
        verified.
        """
        generator = torch.Generator().manual_seed(seed)
        labels = labels.to(torch.int8)
        given, kept = labels, torch.zeros(len(labels), dtype=torch.bool)
        for part in self.parts:
            if part.kind == "keep":
                kept |= draw_kept(len(labels), part.rate, generator)
            given = part.add(given, generator, verified)
        if bool(kept.any()):
            row = kept.unsqueeze(1)
            right = labels if truth is None else torch.where(truth < 0, labels, truth)
            if verified is not None:
                right = torch.where(verified, labels, right)
            given = torch.where(row, right.to(given.dtype), given)
            checked = row & (given >= 0)
            verified = checked if verified is None else verified | checked
        return Noisy(given.clone() if given is labels else given, verified)

    def __str__(self) -> str:
        return "+".join(map(str, self.parts))


_LETTERS = set("0123456789.eE+- naif")  # of numbers, nan and inf, which have no rate


def parse(text: str) -> Noises:
    """Read `none`, `mislabel:0.4`, `flip:0.1,0.3` (positives, negatives), `unknown:0.5+keep:0.1`…

    >>> parse("flip:0.1,0.3").parts
    (Noise(kind='flip', rate=0.0, positive_rate=0.1, negative_rate=0.3),)
    """
    parts = re.split(r"\+(?=\s*[^\W\d_])", text)  # before a letter: 1e+0 is a number
    return Noises(tuple(_parse_one(part) for part in parts))


def _parse_one(text: str) -> Noise:
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
