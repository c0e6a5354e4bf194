"""Which rows make a batch: uniform ones, and beside them rows that hold hard labels (Eqs. 2–4)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor
from torch.utils.data import Sampler

from balancemix.histogram import chunks
from balancemix.sharing import Part, Share
from balancemix.statistics import Statistics, over_positives

if TYPE_CHECKING:
    from balancemix.methods.base import Method

Score = Literal["paper", "positive-mean", "inverse-frequency", "uniform"]


def minority_odds(
    confidence: Tensor, labels: Tensor, power: float = 1.0, score: Score = "paper"
) -> Tensor:
    """Compute how likely each of N rows is drawn, from N×K confidences and given labels.

    `paper` is Eq. 4, raised to `power`. It hardly leaves the uniform distribution, its score being
    a sum of K numbers close to one; a larger power makes it felt. `positive-mean` scores by the
    given positives alone, `inverse-frequency` does not look at confidence at all.

    >>> confidence, labels = torch.tensor([[0.9, 0.1], [0.1, 0.2]]), torch.tensor([[1, 0], [0, 1]])
    >>> minority_odds(confidence, labels)
    tensor([0.3793, 0.6207], dtype=torch.float64)
    """
    statistics = Statistics.empty(labels.shape[1], losses=False)
    return odds_of_rows(statistics.update(confidence, labels), labels, power, score)


def odds_of_rows(
    statistics: Statistics, labels: Tensor, power: float = 1.0, score: Score = "paper"
) -> Tensor:
    """Compute `minority_odds` of N×K given labels from the statistics of these rows."""
    if score == "uniform":
        return torch.full((len(labels),), 1 / len(labels), dtype=torch.float64)
    if score == "paper":
        total = statistics.scores(labels)  # Eq. 3
    else:
        held = (labels > 0).sum(1)
        if score == "inverse-frequency":
            rarity = statistics.rows / statistics.positives.double().clamp(min=1)
            # A row without positives is as rare as the commonest class, never rarer.
            commonest = rarity.amin()
            mean = over_positives(labels, rarity) / held.clamp(min=1)
            total = 1 / torch.where(held > 0, mean, commonest)
        else:
            presence = statistics.presence
            best = presence[statistics.positives > 0].amax() if bool(held.any()) else 1.0
            mean = over_positives(labels, presence) / held.clamp(min=1)
            total = torch.where(held > 0, mean, best)
    # Eq. 4 in logarithms: a score to the thirtieth power is no float any more.
    return (-power * total.clamp(min=1e-12).log()).softmax(0)


def upsampling(odds: Tensor, labels: Tensor) -> Tensor:
    """Compute how many times as often as at random each class's positives are drawn; K values.

    >>> upsampling(torch.tensor([0.75, 0.25]), torch.tensor([[1, 0], [0, 1]]))
    tensor([1.5000, 0.5000], dtype=torch.float64)
    """
    drawn = torch.zeros(labels.shape[1], dtype=torch.float64)
    for rows in chunks(*labels.shape):
        drawn += odds[rows].double() @ (labels[rows] > 0).double()
    return len(labels) * drawn / (labels > 0).sum(0)


def effective_rows(odds: Tensor) -> float:
    """Compute Kish's effective sample size as a share of the rows: 1 where odds are uniform."""
    return float(1 / (odds.double().square().sum() * len(odds)))


class Batches(Sampler[list[int]]):
    """Batches of B uniform rows, each row once an epoch, followed by B rows drawn by `method.odds`.

    The order depends on the seed and the method's epoch alone: every process draws the same
    batches, of `size` rows over all processes, and takes its share of each, without padding; a
    resumed run repeats what it would have drawn. The rows are dealt so that batch sizes differ by
    one at most: no tiny last batch for BatchNorm.
    """

    def __init__(
        self, method: Method, size: int, seed: int = 0, *, rank: int = 0, world: int = 1
    ) -> None:
        self.rows = len(method.table.given)
        if not 1 <= size <= self.rows:
            raise ValueError(f"batch size {size} is not between 1 and the {self.rows} rows of data")
        self.method, self.size, self.seed = method, size, seed
        self.rank, self.world = rank, world

    def __len__(self) -> int:
        return math.ceil(self.rows / self.size)

    @property
    def parts(self) -> list[Part]:
        """This process's part of the uniform rows of each batch, and of the drawn ones alike."""
        least, larger = divmod(self.rows, len(self))
        sizes = [least + (number < larger) for number in range(len(self))]
        return [Part(size, self.rank, self.world) for size in sizes]

    def __iter__(self) -> Iterator[Share]:
        generator = torch.Generator().manual_seed(epoch_seed(self.seed, self.method.epoch))
        order = torch.randperm(self.rows, generator=generator)
        odds = self.method.odds
        for part, batch in zip(self.parts, order.tensor_split(len(self)), strict=True):
            places = part.places
            if odds is not None:
                batch = torch.cat([batch, draw(odds, part.total, generator)])
                places = places + [part.total + place for place in places]
            yield Share(batch.tolist(), places if self.world > 1 else None)


def draw(odds: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Draw rows by their odds, with replacement; unlike torch.multinomial, from any number."""
    ladder = odds.double().cumsum(0)
    place = torch.rand(count, dtype=torch.float64, generator=generator) * ladder[-1]
    return torch.searchsorted(ladder, place, right=True).clamp(max=len(odds) - 1)


def epoch_seed(seed: int, epoch: int) -> int:
    """Give each epoch of each seed a stream of random numbers of its own."""
    return (seed * 1_000_003 + epoch) % 2**63
