"""Which rows make a batch: uniform ones, and beside them rows that hold hard labels (Eqs. 2–4)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor
from torch.utils.data import Sampler

from balancemix import processes
from balancemix.labels.chunks import chunks
from balancemix.labels.table import check_confidence
from balancemix.processes import BatchIndex, Shard

if TYPE_CHECKING:
    from balancemix.methods.base import Method

Score = Literal["paper", "positive-mean", "inverse-frequency", "uniform"]


def minority_odds(
    given: Tensor, confidence: Tensor, power: float = 1.0, score: Score = "paper"
) -> Tensor:
    """Compute how likely each of N rows is drawn, from N×K given labels and confidences.

    `paper` is Eq. 4, raised to `power`. It hardly leaves the uniform distribution, its score being
    a sum of K numbers close to one; a larger power makes it felt. `positive-mean` scores by the
    given positives alone, `inverse-frequency` does not look at confidence at all.

    >>> given, confidence = torch.tensor([[1, 0], [0, 1]]), torch.tensor([[0.9, 0.1], [0.1, 0.2]])
    >>> minority_odds(given, confidence)
    tensor([0.3793, 0.6207], dtype=torch.float64)
    """
    check_confidence(given, confidence)
    scores = row_scores(given, confidence, score)
    # Eq. 4 in logarithms: a score to the thirtieth power is no float any more.
    odds = (-power * scores.clamp(min=1e-12).log()).softmax(0)
    return odds.to(given.device)


def row_scores(given: Tensor, confidence: Tensor, score: Score = "paper") -> Tensor:
    """Score each row, on the CPU: the higher, the less it is to be drawn."""
    if score == "uniform":
        return torch.ones(len(given), dtype=torch.float64)
    presence, absence, positives = class_confidence(given, confidence)
    if score == "paper":  # Eq. 3: P(k) over a row's positives, A(k) over all other classes
        return float(absence.sum()) + over_positives(given, presence - absence)
    held = over_positives(given, torch.ones_like(presence))
    if score == "inverse-frequency":
        rarity = len(given) / positives.double().clamp(min=1)
        mean = over_positives(given, rarity) / held.clamp(min=1)
        # A row without positives is as rare as the commonest class, never rarer.
        return 1 / torch.where(held > 0, mean, float(rarity.amin()))
    known = positives > 0
    best = float(presence[known].amax()) if bool(known.any()) else 1.0
    return torch.where(held > 0, over_positives(given, presence) / held.clamp(min=1), best)


def class_confidence(given: Tensor, confidence: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute P(k) and A(k), the mean confidence in given positives and negatives (Eq. 2).

    Both are K float64 values on the CPU, 0 where a class has no such label. Also counted are the
    positives of each class.

    >>> given, confidence = torch.tensor([[1], [1], [0]]), torch.tensor([[0.9], [0.4], [0.2]])
    >>> class_confidence(given, confidence)[0]
    tensor([0.6500], dtype=torch.float64)
    """
    sums = torch.zeros(4, given.shape[1], dtype=torch.float64)
    for rows in chunks(*given.shape):
        labels, seen = given[rows].cpu(), confidence[rows].cpu().double()
        present, absent = labels > 0, labels == 0
        sums[0] += torch.where(present, seen, 0.0).sum(0)
        sums[1] += torch.where(absent, 1 - seen, 0.0).sum(0)
        sums[2] += present.sum(0)
        sums[3] += absent.sum(0)
    return sums[0] / sums[2].clamp(min=1), sums[1] / sums[3].clamp(min=1), sums[2].long()


def over_positives(given: Tensor, value: Tensor) -> Tensor:
    """Add up in each row the values (K) of the classes that it is given, on the CPU.

    >>> over_positives(torch.tensor([[1, 0, 1], [0, 0, 0]]), torch.tensor([1.0, 2.0, 4.0]))
    tensor([5., 0.], dtype=torch.float64)
    """
    total = torch.zeros(len(given), dtype=torch.float64)
    for rows in chunks(*given.shape):
        row, column = (given[rows].cpu() > 0).nonzero(as_tuple=True)
        total[rows].index_add_(0, row, value.double()[column])
    return total


def upsampling(given: Tensor, odds: Tensor) -> Tensor:
    """Compute how many times as often as at random each class's positives are drawn; K values.

    >>> upsampling(torch.tensor([[1, 0], [0, 1]]), torch.tensor([0.75, 0.25]))
    tensor([1.5000, 0.5000], dtype=torch.float64)
    """
    drawn = torch.zeros(given.shape[1], dtype=torch.float64)
    held = torch.zeros_like(drawn)
    for rows in chunks(*given.shape):
        positive = (given[rows] > 0).double()
        drawn += odds[rows].double() @ positive
        held += positive.sum(0)
    return len(given) * drawn / held


def effective_rows(odds: Tensor) -> float:
    """Compute Kish's effective sample size as a share of the rows: 1 where odds are uniform."""
    return float(1 / (odds.double().square().sum() * len(odds)))


class Batches(Sampler[list[int]]):
    """Batches of B uniform rows, each row once an epoch, followed by B rows drawn by `method.odds`.

    The order depends on the seed and the method's epoch alone: every process draws the same
    batches, of `size` rows over all processes, and takes its share of each, without padding; a
    resumed run repeats what it would have drawn. The rows are dealt so that batch sizes differ by
    one at most: no tiny last batch for BatchNorm. Fewer rows than `size` are one batch.
    """

    def __init__(
        self,
        method: Method,
        size: int,
        seed: int = 0,
        *,
        rank: int | None = None,
        world: int | None = None,
    ) -> None:
        self.rows = len(method.table)
        if size < 1 or self.rows < 1:
            raise ValueError(f"batch size {size} of {self.rows} rows: both must be at least 1")
        self.method, self.size, self.seed = method, min(size, self.rows), seed
        self.rank = processes.rank() if rank is None else rank
        self.world = processes.world_size() if world is None else world
        self.number: Tensor | None = None  # of the batch that holds each row in this epoch

    def __len__(self) -> int:
        return math.ceil(self.rows / self.size)

    @property
    def parts(self) -> list[Shard]:
        """This process's part of the uniform rows of each batch, and of the drawn ones alike."""
        return [self._part(number) for number in range(len(self))]

    def part_of(self, index: Tensor) -> Shard | None:
        """Find which part of which batch these rows are, where other processes have the rest."""
        if self.number is None or not len(index):
            return None
        return self._part(int(self.number[int(index[0])]))

    def _part(self, number: int) -> Shard:
        least, larger = divmod(self.rows, len(self))
        return Shard(least + (number < larger), self.rank, self.world)

    def __iter__(self) -> Iterator[BatchIndex]:
        generator = torch.Generator().manual_seed(epoch_seed(self.seed, self.method.epoch))
        order = torch.randperm(self.rows, generator=generator)
        batches, parts = order.tensor_split(len(self)), self.parts
        if self.world > 1:
            sizes = torch.tensor([part.total for part in parts])
            numbers = torch.arange(len(parts), dtype=torch.int32).repeat_interleave(sizes)
            self.number = torch.empty_like(numbers).index_copy_(0, order, numbers)
        ladder = None if self.method.odds is None else ladder_of(self.method.odds)
        for part, batch in zip(parts, batches, strict=True):
            places = part.places
            if ladder is not None:
                batch = torch.cat([batch, draw(ladder, part.total, generator)])
                places = places + [part.total + place for place in places]
            yield BatchIndex(batch.tolist(), places if self.world > 1 else None)


def ladder_of(odds: Tensor) -> Tensor:
    """Stack the odds of all rows, once for all that will be drawn by them."""
    return odds.double().cumsum(0)


def draw(ladder: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Draw rows by their odds, with replacement; unlike torch.multinomial, from any number."""
    place = torch.rand(count, dtype=torch.float64, generator=generator) * ladder[-1]
    return torch.searchsorted(ladder, place, right=True).clamp(max=len(ladder) - 1)


def epoch_seed(seed: int, epoch: int) -> int:
    """Give each epoch of each seed a stream of random numbers of its own."""
    return (seed * 1_000_003 + epoch) % 2**63
