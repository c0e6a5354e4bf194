"""All figures of one run, from its record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from balancemix.labels.classes import NAMES
from balancemix.report.figures import classes, curves, mixtures
from balancemix.report.figures.frequency import by_frequency
from balancemix.report.summary import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDES = ("negative", "positive")


def every(record: Record) -> Iterator[tuple[str, Figure]]:
    """Draw them all, by the name of the file that each may be stored in."""
    yield "distribution", distribution(record)
    yield "learning", learning(record)
    sampled = upsampling(record)
    if sampled is not None:
        yield "upsampling", sampled
    yield "frequency", frequency(record)
    for k in record.telling():
        name = "".join(letter if letter.isalnum() else "-" for letter in record.classes[k])
        for side in (1, 0):
            yield f"losses-{name}-{SIDES[side]}", losses(record, k, side)


def distribution(record: Record) -> Figure:
    """Draw how often each class occurs."""
    return classes.distribution(record.counts.numpy(), _members(record), record.classes)


def learning(record: Record) -> Figure:
    """Draw mAP by epoch, of all classes and of each group."""
    names = {"all": "mAP", **{name: f"mAP_{name}" for name in NAMES}}
    have = {name: key for name, key in names.items() if key in record.log[-1]}
    nothing = float("nan")
    return curves.learning(
        {name: [line.get(key, nothing) for line in record.log] for name, key in have.items()}
    )


def upsampling(record: Record) -> Figure | None:
    """Draw what the minority sampler draws, where there is one."""
    drawn = any(key.startswith("upsampling_") for line in record.log for key in line)
    return curves.upsampling(record.log) if drawn else None


def frequency(record: Record) -> Figure:
    """Draw AP and confidence by class frequency."""
    ap, scored_on = record.ap
    present, absent = (part.numpy() for part in record.assurance)
    counts = record.counts.numpy()
    return by_frequency(counts, ap.numpy(), present, absent, _members(record), scored_on)


def losses(record: Record, k: int, side: int) -> Figure:
    """Draw the losses of a class and side with their mixture."""
    own = (record.given[:, k] > 0) == bool(side)
    wrong = None
    if record.truth is not None:
        wrong = (record.truth[own, k] != record.given[own, k]).numpy()
    return mixtures.loss_histogram(record.losses[own, k].numpy(), record.mixtures, k, side, wrong)


def _members(record: Record) -> dict[str, list[int]]:
    return {name: index.tolist() for name, index in record.groups.items()}
