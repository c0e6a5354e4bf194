"""The same by class, where a class has been looked at often enough to say anything."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from balancemix.estimates.estimate import Estimate
from balancemix.estimates.few import exact_count

LEAST = 20  # labels of the class and side that were looked at


def by_class(
    errors: npt.ArrayLike, seen: npt.ArrayLike, labels: npt.ArrayLike, given: npt.ArrayLike
) -> list[Estimate | None]:
    """Estimate the errors of each of K classes on one side; None where too little was seen.

    `seen` counts the labels of the class on this side (given, or not given) in the pictures that
    were settled, `errors` those of them that are errors, `labels` all of them in the data, and
    `given` all given positives of the class. Pictures drawn at random hold a random sample of each
    class, so the exact interval applies. Enough is 20 labels, and so many that an upper end with
    no error seen (3.7·labels/seen) is below the given positives: a rule that does not depend on
    what the answers were.

    >>> by_class([0, 0], [40, 5], [400, 50], [400, 50])[1] is None
    True
    """
    counts = zip(
        *(np.asarray(each).tolist() for each in (errors, seen, labels, given)), strict=True
    )
    return [
        exact_count(int(wrong), int(looked), int(size))
        if looked >= LEAST and 3.7 * size / looked <= positives
        else None
        for wrong, looked, size, positives in counts
    ]
