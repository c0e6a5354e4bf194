"""Random samples for people to look at: whole images, or given labels by rank (`wrong:200`).

What is drawn is kept in the store beside the data, in drawing order. So the same command continues
where it stopped, and a larger number extends the sample instead of starting another one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from balancemix.auditing.judged import Judged
from balancemix.data.decisions.samples import Answered, Sample, Unit
from balancemix.data.decisions.store import Store
from balancemix.data.source import Source
from balancemix.data.splits import NAMES
from balancemix.errors import InputError, suggest
from balancemix.estimates import draw_strata, first_phase, second_phase

Kind = Literal["image", "label"]
WRONG = "wrong:"
PICTURES, LABELS = 50, 200  # that measure something


@dataclass(frozen=True)
class Request:
    """How many units of which kind to draw."""

    kind: Kind
    count: int

    @classmethod
    def parse(cls, text: str) -> Request:
        """Read `50`, images, or `wrong:200`, given labels.

        >>> Request.parse("50"), Request.parse("wrong:200").kind
        (Request(kind='image', count=50), 'label')
        """
        kind: Kind = "label" if text.startswith(WRONG) else "image"
        number = text.removeprefix(WRONG)
        if not (number.isascii() and number.isdigit() and 0 < int(number) < 10**9):
            raise InputError(
                f"--sample {text!r}: give a number of images, such as 50, or of given labels, "
                "such as wrong:200"
            )
        if kind == "label" and int(number) < LABELS:
            raise InputError(
                f"--sample {text}: fewer than {LABELS} labels measure nothing; draw wrong:{LABELS}"
            )
        return cls(kind, int(number))


@dataclass(frozen=True)
class Population:
    """The rows that a sample stands for, by name: those of a split, or all (`split` is None)."""

    split: str | None
    names: list[str]
    classes: list[str]

    @classmethod
    def of(cls, source: Source, split: str | None = None) -> Population:
        """Choose the rows of a split, `train` unless named; all, where the files name no splits."""
        if source.split is None:
            if split is not None:
                raise InputError(f"--split {split}: {source.path} names no splits; leave it out")
            rows = list(range(len(source)))
        else:
            split = split or "train"
            rows = source.rows_in(split)
            if not rows:
                known = [name for name in NAMES if name in source.split]
                raise InputError(f"--split {split}: no such rows; {suggest(split, known)}")
        if len(set(source.names)) < len(source.names):
            raise InputError(
                f"{source.path}: rows share a name, by which answers are kept; name each one "
                "differently"
            )
        return cls(split, [source.names[i] for i in rows], source.classes)


@dataclass(frozen=True)
class Drawn:
    """A sample: its units in drawing order, and which of them are answered."""

    sample: Sample
    units: list[Unit]
    answers: list[Answered]
    planned: int  # how many there will be; more than `units` before the second phase
    names: frozenset[str]  # of the images that the data still has

    @property
    def open(self) -> list[Unit]:
        """The units that nobody has answered yet, and that can be answered."""
        answered = {each.position for each in self.answers}
        units = enumerate(self.units)
        return [u for i, u in units if i not in answered and u.image in self.names]


def find_sample(store: Store, kind: Kind, split: str | None, seed: int | None) -> Sample | None:
    """Find the newest sample of a kind, split and, unless it is None, seed."""
    same = [
        each
        for each in store.samples()
        if each.unit == kind and each.strata.get("split") == split and seed in (None, each.seed)
    ]
    return same[-1] if same else None


def drawing_order(names: Sequence[str], seed: int) -> list[int]:
    """Put names in an order that is random, and depends on nothing but the seed and the names.

    Names that are added later change nothing in the order of the others.

    >>> order = drawing_order(["a", "b", "c"], 0)
    >>> [["a", "b", "c"][i] for i in order] == [["c", "a", "b"][i] for i in
    ...                                          drawing_order(["c", "a", "b"], 0)]
    True
    """

    def key(i: int) -> bytes:
        text = f"{seed} {names[i]}".encode("utf-8", "surrogateescape")
        return hashlib.blake2b(text, digest_size=16).digest()

    return sorted(range(len(names)), key=key)


def draw_images(store: Store, population: Population, count: int, seed: int) -> Drawn:
    """Draw `count` images at random, those counted that were drawn before."""
    sample = find_sample(store, "image", population.split, seed)
    before = [] if sample is None else [unit.image for unit in store.units(sample.id)]
    known = set(before)
    order = (population.names[i] for i in drawing_order(population.names, seed))
    more = [Unit(name) for name in order if name not in known][: max(count - len(before), 0)]
    if sample is None:
        store.new_sample(seed, "image", {"split": population.split}, more)
    elif more:
        store.extend(sample.id, more)
    return _drawn(store, "image", population, seed, count)


def draw_labels(
    store: Store, population: Population, judged: Judged, count: int, seed: int
) -> Drawn:
    """Draw given labels by ranks of doubt: first a third evenly, then by what these showed.

    `judged` must know nothing of what people decided, so that the strata are the same each time.
    The second part is drawn once the first is answered.
    """
    sample = find_sample(store, "label", population.split, seed)
    places, strata = _strata(population, judged, seed)
    sizes = [len(part) for part in strata]
    if sample is None:
        numbers = first_phase(sizes, count)
        units = _next(places, strata, numbers, judged, set())
        store.new_sample(seed, "label", {"split": population.split, "sizes": sizes}, units)
        return _drawn(store, "label", population, seed, count)
    if sample.strata["sizes"] != sizes:
        raise InputError(
            f"{store.file}: the given labels are no longer those that the sample of seed {seed} "
            "was drawn from; draw another one with --seed"
        )
    drawn = _drawn(store, "label", population, seed, count)
    if not drawn.open and len(drawn.units) < count:
        seen = errors_by_stratum(drawn.answers, len(sizes))
        numbers = second_phase(seen, sizes, count)
        known = {(unit.image, unit.class_) for unit in drawn.units}
        store.extend(sample.id, _next(places, strata, numbers, judged, known))
        drawn = _drawn(store, "label", population, seed, count)
    return drawn


def errors_by_stratum(
    answers: Sequence[Answered], strata: int, unsure: float = 0.0
) -> list[npt.NDArray[np.float64]]:
    """List the answers of each stratum: 1 an error, 0 none, `unsure` what nobody could say."""
    seen: list[list[float]] = [[] for _ in range(strata)]
    for each in answers:
        name = each.unit.class_
        value = unsure if name in each.unsure else float(name not in each.present)
        seen[each.unit.stratum].append(value)
    return [np.array(values, dtype=np.float64) for values in seen]


def _drawn(store: Store, kind: Kind, population: Population, seed: int, planned: int) -> Drawn:
    sample = find_sample(store, kind, population.split, seed)
    assert sample is not None
    units, answers = store.units(sample.id), store.answers(sample.id, population.classes)
    return Drawn(sample, units, answers, max(planned, len(units)), frozenset(population.names))


def _strata(
    population: Population, judged: Judged, seed: int
) -> tuple[npt.NDArray[Any], list[npt.NDArray[np.int64]]]:
    """Divide the given labels of a population by rank: row and column of each, and the strata."""
    place = place_of(judged)
    rows = [place[name] for name in population.names]
    given = judged.given[rows].numpy()
    i, k = np.nonzero(given == 1)
    if not len(i):
        raise InputError("--sample wrong: there are no given labels to draw from")
    places = np.stack([np.asarray(rows)[i], k], axis=1)
    doubt = judged.doubt[places[:, 0], places[:, 1]].double().numpy()
    order = drawing_order(
        [f"{judged.names[row]}\n{judged.classes[column]}" for row, column in places], seed
    )
    places, doubt = places[order], doubt[order]  # ties in an order that no file decides
    return places, draw_strata(doubt, np.random.default_rng(seed))


def place_of(judged: Judged) -> dict[str, int]:
    """Find rows by name."""
    return {name: i for i, name in enumerate(judged.names)}


def _next(
    places: npt.NDArray[Any],
    strata: Sequence[npt.NDArray[np.int64]],
    numbers: Sequence[int] | npt.NDArray[np.int64],
    judged: Judged,
    known: set[tuple[str, str | None]],
) -> list[Unit]:
    """Take so many more labels of each stratum, and mix the strata, so that none shows."""
    units = []
    for stratum, (part, number) in enumerate(zip(strata, numbers, strict=True)):
        labels = ((judged.names[i], judged.classes[k]) for i, k in places[part].tolist())
        fresh = [Unit(image, name, stratum) for image, name in labels if (image, name) not in known]
        units += fresh[: int(number)]
    order = drawing_order([f"{unit.image}\n{unit.class_}" for unit in units], 0)
    return [units[i] for i in order]
