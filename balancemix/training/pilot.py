"""A short training before the real one, to estimate label errors and choose settings by them."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable

from torch import Tensor, nn

from balancemix.data.rows import Rows
from balancemix.data.splits import draw_rows
from balancemix.judge.held_out import FEWEST, LabelErrors, estimate_errors
from balancemix.methods import Mixup
from balancemix.methods.base import warm_epochs
from balancemix.plan.plan import Plan
from balancemix.progress import Progress
from balancemix.training.fit import fit
from balancemix.training.predict import predict

_UNSEEN = 0.1


def explore(
    make_model: Callable[[], nn.Module], train: Rows, plan: Plan, progress: Progress | None = None
) -> LabelErrors:
    """Train on nine tenths of the rows, half as long as a warm-up; judge the labels of the others.

    The real training depends on it only through the settings chosen: it shares no random number and
    no weight with it.
    """
    kept, seen = _split(train, plan.seed)
    doubtful = _doubtful(kept)
    positives = int((doubtful > 0).sum())
    if positives < FEWEST:  # too few to decide anything
        return LabelErrors(positives, 0.0, 0.0)
    pilot = copy.deepcopy(plan)
    pilot.method, pilot.train.epochs, pilot.train.track = Mixup(), _epochs(plan), None
    pilot.train.batch_size = min(plan.train.batch_size, len(seen))
    with warnings.catch_warnings():  # classes without positives are expected in few rows
        warnings.simplefilter("ignore", UserWarning)
        model = fit(make_model, seen, kept, pilot, progress=progress).model
    confidence = predict(model, kept.plain, plan.train.batch_size)
    return estimate_errors(doubtful, confidence)


def steps(train: Rows, plan: Plan) -> int:
    """Count the batches of the pilot that a plan asks for, or 0."""
    if not plan.method.undecided:
        return 0
    kept, seen = _split(train, plan.seed)
    size = min(plan.train.batch_size, max(len(seen), 1))
    enough = int((_doubtful(kept) > 0).sum()) >= FEWEST
    return _epochs(plan) * math.ceil(len(seen) / size) if enough else 0


def _split(train: Rows, seed: int) -> tuple[Rows, Rows]:
    """Draw the rows to hold out, and return them and the others."""
    unseen, seen = draw_rows(len(train), int(_UNSEEN * len(train)), seed, train.groups)
    return train.subset(unseen), train.subset(seen)


def _doubtful(rows: Rows) -> Tensor:
    """Return the given labels that may be wrong; those that are verified count as unknown."""
    return rows.given if rows.verified is None else rows.given.masked_fill(rows.verified, -1)


def _epochs(plan: Plan) -> int:
    return max(warm_epochs(None, plan.train.epochs) // 2, 1)
