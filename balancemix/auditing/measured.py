"""Measured: what people's answers to random samples say of all labels.

Only random samples count, never decisions on the list: these are about the labels that looked
wrong. Figures are shown at planned numbers only, fifty images at a time or two hundred labels:
whoever looks after every answer stops when the number pleases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from balancemix.auditing.agreement import Agreement, agreement_in
from balancemix.auditing.figures import Figures, Ints, Settled, measure_labels, measure_pictures
from balancemix.auditing.judged import Judged
from balancemix.auditing.sample import LABELS, PICTURES, Kind, place_of
from balancemix.data.decisions.samples import Answered, Sample
from balancemix.data.decisions.store import Store
from balancemix.estimates import Calibration


@dataclass(frozen=True)
class Progress:
    """A sample and how far people are with it: units drawn, answered, and used for figures."""

    sample: Sample
    drawn: int
    answered: int
    used: int
    reviewers: tuple[str, ...]
    times: tuple[str, str]  # of the first and the last answer; blank without any


@dataclass(frozen=True)
class Measured:
    """The figures of each problem that was measured, and the samples that they come from."""

    population: int  # images that the figures are about
    split: str | None
    pictures: Progress | None = None
    labels: Progress | None = None
    figures: Mapping[str, Figures] = field(default_factory=dict)
    why_not: str | None = None  # why answers cannot be used, if they cannot
    agreement: Agreement | None = None  # of the people in the store, on all that two answered

    @property
    def calibration(self) -> dict[str, Calibration]:
        """How doubt becomes a measured probability, by problem."""
        return {
            name: each.calibration
            for name, each in self.figures.items()
            if each.calibration is not None
        }

    @property
    def cautious(self) -> dict[str, Calibration]:
        """The same by the lower ends of what was measured, for labels that nobody will look at."""
        return {
            name: each.cautious for name, each in self.figures.items() if each.cautious is not None
        }

    @classmethod
    def of(cls, judged: Judged, store: Store, split: str = "train") -> Measured:
        """Measure the labels of a split by the answers to samples of it.

        `judged` must know nothing of what people decided: else the images of the sample would look
        cleaner than all others. Where the files name no splits, all rows are measured.
        """
        samples = {kind: _newest(store, kind, split) for kind in ("image", "label")}
        known = [each.strata["split"] for each in samples.values() if each is not None]
        split_of = known[0] if known else split
        rows = rows_of(judged, split_of)
        answered = {
            kind: _Answers(judged, store, sample, rows)
            for kind, sample in samples.items()
            if sample is not None
        }
        progress = {kind: each.progress for kind, each in answered.items()}
        figures: dict[str, Figures] = {}
        if "image" in answered and answered["image"].used:
            settled = answered["image"].settled()
            if _was_learned(judged, settled):
                why = "these labels were learned from the answers to the sample"
                return cls(len(rows), split_of, **_named(progress), why_not=why)
            figures |= measure_pictures(judged, rows, settled)
        if "label" in answered and answered["label"].used:
            wrong = answered["label"].wrong()
            classes = figures["wrong"].classes if "wrong" in figures else {}
            figures["wrong"] = replace(wrong, classes=classes)
        alike = agreement_in(store.written_since())
        return cls(len(rows), split_of, **_named(progress), figures=figures, agreement=alike)

    def as_json(self) -> dict[str, Any]:
        """Describe the figures by plain values."""
        samples = {"images": self.pictures, "labels": self.labels}
        return {
            "images": self.population,
            "split": self.split,
            "samples": {
                name: {
                    "seed": each.sample.seed,
                    "drawn": each.drawn,
                    "answered": each.answered,
                    "used": each.used,
                    "reviewers": list(each.reviewers),
                }
                for name, each in samples.items()
                if each is not None
            },
            "figures": {name: each.as_json() for name, each in self.figures.items()},
            "agreement": None if self.agreement is None else self.agreement.as_json(),
        }


class _Answers:
    """The answers to one sample, as far as its images are still in the data."""

    def __init__(self, judged: Judged, store: Store, sample: Sample, rows: Ints) -> None:
        self.judged, self.rows, self.sample = judged, rows, sample
        self.place = place_of(judged)
        inside = {judged.names[i] for i in rows.tolist()}
        units = [i for i, unit in enumerate(store.units(sample.id)) if unit.image in inside]
        answers = {each.position: each for each in store.answers(sample.id, judged.classes)}
        self.answers = [answers[i] for i in units if i in answers]
        prefix = next((n for n, i in enumerate(units) if i not in answers), len(units))
        size = len(rows) if sample.unit == "image" else sum(sample.strata["sizes"])
        count = _planned(prefix, len(units), size, PICTURES if sample.unit == "image" else LABELS)
        self.used = self.answers[:count]
        people = sorted({name for each in self.answers for name in each.reviewers})
        times = sorted(each.at for each in self.answers)
        ends = (times[0], times[-1]) if times else ("", "")
        counts = len(units), len(self.answers), len(self.used)
        self.progress = Progress(sample, *counts, tuple(people), ends)

    def settled(self) -> Settled:
        """Return the rows of settled images and what is in them."""
        column = {name: k for k, name in enumerate(self.judged.classes)}
        truth = np.zeros((len(self.used), len(column)), dtype=np.int8)
        for i, each in enumerate(self.used):
            truth[i, _columns(each.present, column)] = 1
            truth[i, _columns(each.unsure, column)] = -1
        rows = np.array([self.place[each.unit.image] for each in self.used], dtype=np.int64)
        return Settled(rows, truth)

    def wrong(self) -> Figures:
        """Measure the wrong labels by those that were drawn one by one."""
        column = {name: k for k, name in enumerate(self.judged.classes)}
        units = [each.unit for each in self.used]
        rows = np.array([self.place[unit.image] for unit in units], dtype=np.int64)
        columns = np.array([column[str(unit.class_)] for unit in units], dtype=np.int64)
        stratum = np.array([unit.stratum for unit in units], dtype=np.int64)
        verdicts = np.array([_verdict(each) for each in self.used], dtype=np.int64)
        places, sizes = (rows, columns), self.sample.strata["sizes"]
        return measure_labels(self.judged, self.rows, places, verdicts, stratum, sizes)


def _verdict(each: Answered) -> int:
    """Say whether a given label is wrong: 1, 0, or −1 for unsure."""
    name = each.unit.class_
    return -1 if name in each.unsure else int(name not in each.present)


def _columns(names: frozenset[str], column: Mapping[str, int]) -> list[int]:
    return [column[name] for name in names if name in column]


def _planned(prefix: int, drawn: int, size: int, step: int) -> int:
    """Say how many answers to use: all, if all are there and enough, or else some steps of them.

    `prefix` units are answered without a gap, of those `drawn`, of `size` in all.

    >>> _planned(50, 50, 900, 50), _planned(49, 50, 900, 50), _planned(120, 150, 900, 50)
    (50, 0, 100)
    >>> _planned(30, 30, 30, 50), _planned(66, 66, 900, 200)
    (30, 0)
    """
    if prefix == drawn and (drawn >= step or drawn == size):
        return drawn
    return prefix // step * step


def _named(progress: Mapping[str, Progress]) -> dict[str, Any]:
    return {"pictures": progress.get("image"), "labels": progress.get("label")}


def _newest(store: Store, kind: Kind | str, split: str) -> Sample | None:
    """Find the newest sample of a split, or of data without splits."""
    samples = [each for each in store.samples() if each.unit == kind]
    fitting = [each for each in samples if each.strata.get("split") in (split, None)]
    return fitting[-1] if fitting else None


def rows_of(judged: Judged, split: str | None) -> Ints:
    """List the rows of a split; all, if it is None."""
    every: Sequence[int] = range(len(judged))
    chosen = every if split is None else [i for i in every if judged.split[i] == split]
    rows: npt.NDArray[np.int64] = np.array(chosen, dtype=np.int64)
    return rows


def _was_learned(judged: Judged, settled: Settled) -> bool:
    """Tell whether labels of settled images are verified by more than the file itself."""
    if judged.verified is None:
        return False
    verified, source = judged.verified[settled.rows], judged.source
    if source is not None and source.verified is not None:
        by_file = source.verified if source.decided is None else source.verified & ~source.decided
        verified = verified & ~by_file[settled.rows]
    return bool(verified.any())
