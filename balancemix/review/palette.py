"""Which classes to show first beside a picture that is settled for a model; pure arithmetic.

Never in a sample: there every class is shown in the order of the alphabet, so that what is asked
does not depend on what a model thinks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def shares(given: npt.NDArray[Any]) -> Floats:
    """Say how often classes occur together: [j, k] is the share of the rows with j that have k.

    Row K is the share of all rows. `given` is N×K of 1, 0 and −1 (unknown, counted as absent).

    >>> shares(np.array([[1, 1], [1, 0], [0, 0]])).round(2).tolist()
    [[1.0, 0.5], [1.0, 1.0], [0.67, 0.33]]
    """
    present = (given == 1).astype(np.float32)
    both = (present.T @ present).astype(np.float64)
    alone = np.maximum(np.diag(both), 1)
    overall = present.sum(0, dtype=np.float64) / max(len(present), 1)
    return np.concatenate([both / alone[:, None], overall[None]])


def likeliest(labels: Sequence[int], suspected: Mapping[int, float], shares: Floats) -> list[int]:
    """Order the classes that a picture does not have: likeliest first.

    First those that the audit suspects, by their probability; then those that are often found
    beside the picture's `labels`.

    >>> likeliest([0], {2: 0.9}, np.array([[1, 0.5, 0.1], [1, 1, 0], [0, 0, 1], [0.6, 0.4, 0.2]]))
    [2, 1]
    """
    beside = shares[[*labels, len(shares) - 1]].mean(0)
    others = set(range(shares.shape[1])) - set(labels)
    return sorted(others, key=lambda k: (-suspected.get(k, 0), -beside[k], k))
