"""The noise passport: measured figures as a Markdown block for a data-set card."""

from __future__ import annotations

from collections.abc import Iterator

from balancemix.auditing.agreement import ENOUGH, Agreement
from balancemix.auditing.figures import Ends
from balancemix.auditing.measured import Measured, Progress
from balancemix.auditing.wording import count_of, percent, sentences
from balancemix.errors import InputError, printable

ROWS = {
    "wrong": ("given labels that are wrong", "of the given labels"),
    "missing": ("labels that are missing", "of what is there"),
    "unknown": ("unknown labels that are present", "of the unknown labels"),
}


def passport(measured: Measured, data: str, version: str) -> str:
    """Write what was measured, by whom, when and how; refuses while nothing is."""
    if not measured.figures:
        reason = " ".join(sentences(measured)) or "no sample was drawn"
        raise InputError(
            f"--passport: nothing is measured yet ({reason}); `balancemix audit {data} --sample "
            "50` draws images to settle"
        )
    return "\n".join(_lines(measured, data, version)) + "\n"


def _lines(measured: Measured, data: str, version: str) -> Iterator[str]:
    where = f"{measured.population:,} images" + (
        f" of the split `{measured.split}`" if measured.split else ""
    )
    yield "## Label noise, measured"
    yield ""
    yield f"About the {where}, by random samples that people looked at without seeing any model's"
    yield "opinion. Intervals are 95 %."
    yield ""
    yield "| | share | labels | interval |"
    yield "|---|---|---|---|"
    for problem, figures in measured.figures.items():
        name, of = ROWS[problem]
        share, total = figures.rate, figures.total
        rough = " (rough: few errors seen)" if total.right.rough else ""
        yield (
            f"| {name} | {percent(share.value)} {of} ({percent(share.low)} to "
            f"{percent(share.high)}) | {total.value:,.0f} of {figures.labels:,} | "
            f"{total.low:,.0f} to {total.high:,.0f}{rough} |"
        )
    images = {n: f.images for n, f in measured.figures.items() if f.images is not None}
    for problem, ends in images.items():
        yield f"| images with {ROWS[problem][0]} | | | {_count(ends)} |"
    unsure = sum(figures.unsure for figures in measured.figures.values())
    yield ""
    if unsure:
        yield (
            f"{unsure:,} answers were unsure: lower ends count them as right, upper ends as errors."
        )
        yield ""
    for progress, what, flag in (
        (measured.pictures, "images, all classes of each", "{n}"),
        (measured.labels, "given labels, by strata of rank", "wrong:{n}"),
    ):
        if progress is not None and progress.used:
            yield _source(progress, what, flag.format(n=progress.used), data)
    if measured.agreement is not None and measured.agreement.both:
        yield _agreement(measured.agreement)
    yield ""
    yield f"Made by `balancemix audit {_plain(data)} --passport`, balancemix {version}."


def _source(progress: Progress, what: str, sample: str, data: str) -> str:
    people = ", ".join(map(_plain, progress.reviewers))
    first, last = (time[:10] for time in progress.times)
    when = first if first == last else f"{first} to {last}"
    seed = f" --seed {progress.sample.seed}" if progress.sample.seed else ""
    return (
        f"- {progress.used:,} {what}: drawn by `balancemix audit {_plain(data)} --sample "
        f"{sample}{seed}`, answered by {people}, {when}."
    )


def _agreement(found: Agreement) -> str:
    who = f"two people ({', '.join(map(_plain, found.people))})"
    text = f"- {found.both:,} labels, of samples and findings, were answered by {who}, neither "
    text += f"seeing the other's answer: {found.same:,} alike"
    if found.kappa is not None:
        ends = f"{found.kappa.low:.2f} to {found.kappa.high:.2f}"
        return f"{text}, Cohen's κ {found.kappa.value:.2f} ({ends})."
    few = f"under {ENOUGH} labels" if found.both < ENOUGH else "both always gave one answer"
    return f"{text} (no κ: {few})."


def _count(ends: Ends) -> str:
    return count_of(ends)


def _plain(text: str) -> str:
    """Keep what a person typed from being read as Markdown."""
    escaped = printable(text)
    for mark in "\\`*_[]<>|#":
        escaped = escaped.replace(mark, f"\\{mark}") if mark != "`" else escaped.replace(mark, "'")
    return escaped
