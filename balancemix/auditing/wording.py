"""Measured figures in sentences, for a terminal and for a data-set card."""

from __future__ import annotations

from collections.abc import Iterator

from balancemix.auditing.figures import Ends, Figures
from balancemix.auditing.measured import Measured, Progress
from balancemix.auditing.sample import LABELS, PICTURES
from balancemix.errors import listing

WHAT = {"wrong": "wrong", "missing": "missing", "unknown": "present"}
RATE = {
    "wrong": "of the given labels are wrong",
    "missing": "of what is there is not labelled",
    "unknown": "of the unknown labels are present",
}
MOST_CLASSES = 5  # that are named


def sentences(measured: Measured) -> Iterator[str]:
    """Say what was measured, or how far it is from that; nothing where no sample was drawn."""
    if measured.why_not is not None:
        yield f"not measured: {measured.why_not}"
    for progress in (measured.pictures, measured.labels):
        if progress is not None and not (progress.used or measured.why_not):
            yield unfinished(progress)
    if measured.figures:
        yield f"measured by {_basis(measured)}:"
    for problem, figures in measured.figures.items():
        yield from (f"  {line}" for line in _lines(problem, figures))


def unfinished(progress: Progress) -> str:
    """Say how many answers are missing; no figures before all are there."""
    noun, least = ("images", PICTURES) if progress.sample.unit == "image" else ("labels", LABELS)
    if progress.answered < progress.drawn or progress.drawn >= least:
        return (
            f"{progress.answered:,} of {progress.drawn:,} {noun} of the sample are answered; "
            "figures come when all are"
        )
    flag = f"--sample {least}" if noun == "images" else f"--sample wrong:{least}"
    return f"{progress.drawn:,} {noun} are too few to measure anything; {flag} draws more"


def percent(share: float) -> str:
    """Write a share in percent, with a digit more where it is small.

    >>> percent(0.0412), percent(0.31), percent(0.0004)
    ('4.1 %', '31 %', '0.04 %')
    """
    value = 100 * share
    if value >= 9.95 or value == 0:
        return f"{value:.0f} %"
    return f"{value:.1f} %" if value >= 0.095 else f"{value:.2g} %"


def share_of(ends: Ends) -> str:
    """Write a rate with its interval.

    >>> from balancemix.estimates import Estimate
    >>> share_of(Ends(*[Estimate(0.041, 0.015, 0.089, False)] * 2))
    '4.1 % (1.5 % to 8.9 %)'
    """
    return f"{percent(ends.value)} ({percent(ends.low)} to {percent(ends.high)})"


def count_of(ends: Ends) -> str:
    """Write a number with its interval; "at most" where none was seen."""
    if ends.value == 0:
        return f"none seen, at most {ends.high:,.0f}"
    return f"about {ends.value:,.0f} ({ends.low:,.0f} to {ends.high:,.0f})"


def _basis(measured: Measured) -> str:
    parts = []
    where = f"{measured.population:,}" + (f" ({measured.split})" if measured.split else "")
    if measured.pictures is not None and measured.pictures.used:
        parts.append(f"{measured.pictures.used:,} images drawn at random of {where}")
    if measured.labels is not None and measured.labels.used:
        parts.append(f"{measured.labels.used:,} given labels drawn by rank")
    return " and ".join(parts) + ", 95 % intervals"


def _lines(problem: str, figures: Figures) -> Iterator[str]:
    yield (
        f"{share_of(figures.rate)} {RATE[problem]}: {count_of(figures.total)} of "
        f"{figures.labels:,} labels" + ("" if problem != "missing" else " that are not given")
    )
    if figures.total.right.rough and figures.images is not None:
        yield (
            f"  few errors were seen: the number of labels is rough; {count_of(figures.images)} "
            f"images have {'one' if problem != 'unknown' else 'such a label'}"
        )
    if figures.unsure:
        yield (
            f"  {figures.unsure:,} answers are unsure: lower ends count them as right, upper ends "
            "as errors"
        )
    if figures.top is not None:
        most, ends = figures.top
        yield (
            f"  of the {most:,} labels that look most {WHAT[problem]}, {ends.low:,.0f} to "
            f"{ends.high:,.0f} are"
        )
    worst = sorted(figures.classes.items(), key=lambda item: -item[1].low)
    named = [
        f"{name} {each.value:,.0f} ({each.low:,.0f} to {each.high:,.0f})"
        for name, each in worst
        if each.low > 0
    ]
    if named:
        yield f"  by class, where enough was seen: {listing(named, MOST_CLASSES)}"
