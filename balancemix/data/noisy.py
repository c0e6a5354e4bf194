"""A data set whose training labels were made wrong on purpose."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from balancemix.data.source import Source
from balancemix.data.splits import Splits
from balancemix.errors import InputError
from balancemix.labels import noise


def add_noise(splits: Splits, kind: str, seed: int) -> tuple[Source, Tensor, dict[str, float]]:
    """Add noise to the training labels of what was loaded.

    Returns the source, to whose truth belong the labels as they were, the N×K labels with noise,
    and the rates that came of it.
    """
    source = splits.source
    if source is None:
        raise InputError("only data that was loaded from files can be written again")
    given = noise.parse(kind).apply(splits.train.given, seed)
    measured = noise.measured_rates(splits.train.given, given)
    noisy = source.given.clone()
    noisy[source.rows_in("train")] = given.to(noisy.dtype)
    truth = source.labels if source.truth is None else source.truth
    facts = {"noise": kind, "seed": seed, "measured": measured}
    return replace(source, truth=truth, facts=facts), noisy, measured
