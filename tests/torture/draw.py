"""Random choices of one case, which its key alone determines."""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np


class Draw:
    """Make choices that depend on nothing but the key: part, seed, number of the case."""

    def __init__(self, part: str, seed: int, number: int) -> None:
        self.rng = np.random.default_rng([crc32(part.encode()), seed, number])

    def below(self, n: int) -> int:
        """Choose a whole number from 0 to n − 1; 0 if there is none."""
        return int(self.rng.integers(n)) if n > 1 else 0

    def chance(self, p: float) -> bool:
        """Return True with probability p."""
        return bool(self.rng.random() < p)

    def pick(self, items: Sequence[Any]) -> Any:
        """Choose one of the items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[Any]) -> list[Any]:
        """Return the items in another order."""
        return [items[i] for i in self.rng.permutation(len(items))]

    def some(self, items: Sequence[Any], p: float = 0.5) -> list[Any]:
        """Keep each item with probability p."""
        return [item for item, u in zip(items, self.rng.random(len(items)), strict=True) if u < p]

    def bytes(self, n: int) -> bytes:
        """Return n random bytes."""
        return self.rng.bytes(n)
