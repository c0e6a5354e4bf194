"""Built-in data, nothing to download: strips of one to four handwritten digits, long-tailed.

Real digits (scikit-learn's, 8×8 pixels) in up to four cells of a strip; the labels are the digits
present. In training, 0 is about thirty times as frequent as 9; in the test split all are equally
frequent. The two splits are made from different digits. Minutes on a CPU show what takes days on
photographs. `digits` has features of the strips, `digits:pixels` their pixels.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from balancemix.data.rows import Rows, batch_seed
from balancemix.data.source import ReadOptions, Source
from balancemix.processes import BatchIndex

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NAMES = ("digits", "digits:pixels")
TRAIN, TEST = 4000, 1000  # strips
CELLS = 4
TAIL = 38.0  # odds of 0 to 9 in a cell; a strip counts a digit once, so positives are ~30 to 1
SHARE = 0.7  # of the original digits, for training
COMPONENTS = 300
GAMMA = 0.2  # of the kernel; with COMPONENTS, chosen on clean labels


def recognise(path: Path) -> str | None:
    """Say whether a path is the name of built-in data.

    >>> recognise(Path("digits:pixels"))
    'it is the name of built-in data'
    """
    return "it is the name of built-in data" if str(path) in NAMES else None


def read(path: Path, options: ReadOptions) -> Source:
    """Make the strips; features are a frozen kernel map of the cells, or the 256 raw pixels."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    shapes = np.concatenate([digits.data / 16, np.zeros((1, 64))])  # the last is a blank cell
    digit = np.append(digits.target, 10)
    generator = np.random.default_rng(options.seed)
    order = generator.permutation(len(digits.target))
    known, unseen = np.split(order, [int(SHARE * len(order))])
    # Steeper towards the end: a steep start would put a 0 into most strips.
    tail = TAIL ** -((np.arange(10) / 9) ** 2)
    trained = strips(known, digit, tail, TRAIN, generator)
    tested = strips(unseen, digit, np.ones(10), TEST, generator)
    cells = np.concatenate([trained, tested])  # (N, CELLS)
    drawn = shapes[cells].reshape(-1, CELLS, 8, 8).transpose(0, 2, 1, 3).reshape(-1, 8, 8 * CELLS)
    if str(path) == "digits:pixels":
        features = drawn.reshape(len(drawn), -1)
    else:
        features = kernel_map(shapes, known)[cells].sum(1)
        features = (features - features[:TRAIN].mean(0)) / features[:TRAIN].std(0)
    return Source(
        path=Path("digits"),
        classes=[str(k) for k in range(10)],
        names=[f"row {i}" for i in range(len(drawn))],
        given=torch.from_numpy((digit[cells][..., None] == np.arange(10)).any(1).astype(np.int8)),
        split=["train"] * TRAIN + ["test"] * TEST,
        images=torch.from_numpy((drawn * 255).round().astype(np.uint8)),
        features=torch.from_numpy(features.astype(np.float32)),
    )


def strips(
    pool: Ints, digit: Ints, odds: Floats, count: int, generator: np.random.Generator
) -> Ints:
    """Fill `count` strips with one to four members of `pool`, their digits drawn by ten `odds`.

    Returns positions in `digit`, whose last entry is a blank cell.

    >>> strips(np.array([2]), np.array([0, 0, 7, 10]), np.ones(10), 1, np.random.default_rng(0))
    array([[3, 3, 3, 2]])
    """
    members = digit[pool]
    weight = (odds / np.bincount(members, minlength=10).clip(1))[members]
    cells = generator.choice(pool, size=(count, CELLS), p=weight / weight.sum())
    held = generator.integers(1, CELLS + 1, size=(count, 1))
    place = generator.random((count, CELLS)).argsort(1)
    return np.where(place < held, cells, len(digit) - 1)


def kernel_map(shapes: Floats, known: Ints) -> Floats:
    """Map M×64 pixels to M×COMPONENTS features, fitted on the `known` rows without labels."""
    from sklearn.kernel_approximation import Nystroem

    nystroem = Nystroem(gamma=GAMMA, n_components=COMPONENTS, random_state=0)
    mapped: Floats = nystroem.fit(shapes[known]).transform(shapes)
    return mapped


class RandomImages(Rows):
    """Rows of random pixels, (B, 3, size, size), for a dry run without data.

    Every class has positives and negatives.
    """

    def __init__(self, count: int, classes: int, size: int) -> None:
        generator = torch.Generator().manual_seed(0)
        given = (torch.rand(count, classes, generator=generator) < 0.5).to(torch.uint8)
        given[0], given[1] = 1, 0
        super().__init__(given, [f"class {k}" for k in range(classes)])
        self.size = size

    def _draw(self, share: BatchIndex) -> list[Tensor]:
        generator = torch.Generator().manual_seed(batch_seed(self.seed, share.batch))
        shape = (len(share.batch), 3, self.size, self.size)
        views = range(max(self.views, 1))
        return [share.take(torch.randn(shape, generator=generator)) for _ in views]
