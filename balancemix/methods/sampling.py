"""Which rows make a batch: uniform ones, then rows drawn for their hard labels (Eqs. 2–4)."""

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
    """Compute the probability of drawing each of N rows, from N×K given labels and confidence.

    `paper` is Eq. 4, raised to `power`. Its score is a sum of K numbers close to one, so it is
    nearly uniform unless the power is large. `positive-mean` scores by the given positives only,
    `inverse-frequency` does not use confidence. Unknown labels (−1) take no part, and a row without
    known labels is drawn only by `uniform`.

    >>> given, confidence = torch.tensor([[1, 0], [0, 1]]), torch.tensor([[0.9, 0.1], [0.1, 0.2]])
    >>> minority_odds(given, confidence)
    tensor([0.3793, 0.6207], dtype=torch.float64)
    """
    check_confidence(given, confidence)
    scores = row_scores(given, confidence, score)
    # Eq. 4 in logarithms: a score to the thirtieth power overflows a float.
    never = scores == torch.inf
    log_odds = scores.clamp_(min=1e-12).log_().mul_(-power).masked_fill_(never, -torch.inf)
    return log_odds.softmax(0).to(given.device)


def known_labels(given: Tensor) -> tuple[Tensor, Tensor]:
    """Count the known labels of each row and of each class, in float64 on the CPU.

    >>> known_labels(torch.tensor([[1, -1], [0, 1]]))[0]
    tensor([1., 2.], dtype=torch.float64)
    """
    by_row = torch.zeros(len(given), dtype=torch.float64)
    by_class = torch.zeros(given.shape[1], dtype=torch.float64)
    for rows in chunks(*given.shape):
        known = given[rows].cpu() >= 0
        by_row[rows] = known.sum(1).double()
        by_class += known.sum(0)
    return by_row, by_class


def row_scores(given: Tensor, confidence: Tensor, score: Score = "paper") -> Tensor:
    """Score each row, on the CPU; the higher the score, the less often it is drawn."""
    if score == "uniform":
        return torch.ones(len(given), dtype=torch.float64)
    presence, absence, positives = class_confidence(given, confidence)
    known, known_rows = known_labels(given)
    nothing = known == 0
    if score == "paper":  # Eq. 3: P(k) over a row's positives, A(k) over all other classes
        total = over_positives(given, presence - absence).add_(absence.sum())
        # A row's unknown labels count as the mean of its known ones.
        every = known.clamp_(min=1).reciprocal_().mul_(given.shape[1])
        total.sub_(over_labels(given, -1, absence)).mul_(every)
        return total.masked_fill_(nothing, torch.inf)
    count = over_positives(given, torch.ones_like(presence))  # positives of each row
    if score == "inverse-frequency":
        rarity = known_rows / positives.double().clamp(min=1)
        mean = over_positives(given, rarity) / count.clamp(min=1)
        # A row without positives counts as rare as the commonest class.
        commonest = float(rarity[known_rows > 0].amin())
        return (1 / torch.where(count > 0, mean, commonest)).masked_fill(nothing, torch.inf)
    occurs = positives > 0
    best = float(presence[occurs].amax()) if bool(occurs.any()) else 1.0
    mean = torch.where(count > 0, over_positives(given, presence) / count.clamp(min=1), best)
    return mean.masked_fill(nothing, torch.inf)


def class_confidence(given: Tensor, confidence: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute P(k) and A(k), the mean confidence in given positives and negatives (Eq. 2).

    Both are K float64 values on the CPU, 0 where a class has no such label. The third result is the
    number of positives of each class.

    >>> given, confidence = torch.tensor([[1], [1], [0]]), torch.tensor([[0.9], [0.4], [0.2]])
    >>> class_confidence(given, confidence)[0]
    tensor([0.6500], dtype=torch.float64)
    """
    sums = torch.zeros(4, given.shape[1], dtype=torch.float64)
    for rows in chunks(*given.shape):
        labels, p = given[rows].cpu(), confidence[rows].cpu().double()
        present, absent = labels > 0, labels == 0
        sums[0] += torch.where(present, p, 0.0).sum(0)
        sums[1] += torch.where(absent, 1 - p, 0.0).sum(0)
        sums[2] += present.sum(0)
        sums[3] += absent.sum(0)
    return sums[0] / sums[2].clamp(min=1), sums[1] / sums[3].clamp(min=1), sums[2].long()


def over_positives(given: Tensor, values: Tensor) -> Tensor:
    """Sum in each row the K `values` of its given classes, on the CPU.

    >>> over_positives(torch.tensor([[1, 0, 1], [0, 0, 0]]), torch.tensor([1.0, 2.0, 4.0]))
    tensor([5., 0.], dtype=torch.float64)
    """
    return over_labels(given, 1, values)


def over_labels(given: Tensor, label: int, values: Tensor) -> Tensor:
    """Sum in each row the K `values` of the classes that have this label, on the CPU."""
    total = torch.zeros(len(given), dtype=torch.float64)
    for rows in chunks(*given.shape):
        row, column = (given[rows] == label).cpu().nonzero(as_tuple=True)
        total[rows].index_add_(0, row, values.double()[column])
    return total


def upsampling(given: Tensor, odds: Tensor) -> Tensor:
    """Compute how many times more often than at random each class's positives are drawn; K values.

    >>> upsampling(torch.tensor([[1, 0], [0, 1]]), torch.tensor([0.75, 0.25]))
    tensor([1.5000, 0.5000], dtype=torch.float64)
    """
    drawn = torch.zeros(given.shape[1], dtype=torch.float64)
    positives = torch.zeros_like(drawn)
    for rows in chunks(*given.shape):
        positive = (given[rows] > 0).double()
        drawn += odds[rows].double() @ positive
        positives += positive.sum(0)
    return len(given) * drawn / positives


def effective_rows(odds: Tensor) -> float:
    """Compute Kish's effective sample size as a share of the rows: 1 where odds are uniform."""
    return float(1 / (odds.double().square().sum() * len(odds)))


class Batches(Sampler[list[int]]):
    """Batches of B uniform rows, each row once an epoch, followed by B rows drawn by `method.odds`.

    The order depends only on the seed and the method's epoch: every process draws the same batches,
    of `size` rows over all processes, and takes its shard of each, without padding; a resumed run
    draws what it would have drawn. Batch sizes differ by one at most, so BatchNorm never sees a
    tiny last batch. Fewer rows than `size` are one batch.
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
        self.number: Tensor | None = None  # of each row's batch in this epoch

    def __len__(self) -> int:
        return math.ceil(self.rows / self.size)

    @property
    def shards(self) -> list[Shard]:
        """This process's shard of each batch's uniform rows; the drawn rows are split likewise."""
        return [self._shard(number) for number in range(len(self))]

    def shard_of(self, index: Tensor) -> Shard | None:
        """Find the shard that these rows are, where other processes have the rest."""
        if self.number is None or not len(index):
            return None
        return self._shard(int(self.number[int(index[0])]))

    def _shard(self, number: int) -> Shard:
        least, larger = divmod(self.rows, len(self))
        return Shard(least + (number < larger), self.rank, self.world)

    def __iter__(self) -> Iterator[BatchIndex]:
        generator = torch.Generator().manual_seed(epoch_seed(self.seed, self.method.epoch))
        order = torch.randperm(self.rows, generator=generator)
        batches, shards = order.tensor_split(len(self)), self.shards
        if self.world > 1:
            sizes = torch.tensor([shard.total for shard in shards])
            numbers = torch.arange(len(shards), dtype=torch.int32).repeat_interleave(sizes)
            self.number = torch.empty_like(numbers).index_copy_(0, order, numbers)
        odds = self.method.odds
        cumulative = None if odds is None else cumulative_odds(odds)
        for shard, batch in zip(shards, batches, strict=True):
            places = shard.places
            if cumulative is not None:
                batch = torch.cat([batch, draw(cumulative, shard.total, generator)])
                places = places + [shard.total + place for place in places]
            yield BatchIndex(batch.tolist(), places if self.world > 1 else None)


def cumulative_odds(odds: Tensor) -> Tensor:
    """Add up the odds of the rows, once for all draws of an epoch."""
    return odds.double().cumsum(0)


def draw(cumulative: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Draw rows by their odds, with replacement; torch.multinomial has a limit of 2²⁴ rows."""
    place = torch.rand(count, dtype=torch.float64, generator=generator) * cumulative[-1]
    return torch.searchsorted(cumulative, place, right=True).clamp(max=len(cumulative) - 1)


def epoch_seed(seed: int, epoch: int) -> int:
    """Derive the seed of an epoch's random numbers."""
    return (seed * 1_000_003 + epoch) % 2**63
