"""Made-up findings."""

from typing import NamedTuple

import numpy as np


class Listed(NamedTuple):
    """Findings as arrays."""

    row: np.ndarray
    column: np.ndarray
    given: np.ndarray
    p: np.ndarray


def listed(count=200, seed=0, rows=80, classes=6, unknown=False):
    """Make findings in a random order, none twice."""
    generator = np.random.default_rng(seed)
    labels = generator.choice(rows * classes, count, replace=False)
    given = generator.integers(-1 if unknown else 0, 2, count)
    p = np.sort(generator.random(count))[::-1] * 0.98 + 0.01
    return Listed(labels // classes, labels % classes, given, p)
