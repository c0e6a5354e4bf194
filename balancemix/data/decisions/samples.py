"""Random samples: what was drawn, in which order, and what people answered about it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from balancemix.data.decisions.logs import insert, now, rows_of
from balancemix.data.decisions.names import Names, palettes
from balancemix.errors import InputError

if TYPE_CHECKING:
    from balancemix.data.decisions.store import Store


@dataclass(frozen=True)
class Sample:
    """A sample: what its units are, and what it needs to be drawn again or extended."""

    id: int
    made_at: str
    seed: int
    unit: Literal["image", "label"]
    strata: Any  # whatever JSON can hold


@dataclass(frozen=True)
class Unit:
    """A drawn image or, with a class, label."""

    image: str
    class_: str | None = None
    stratum: int = 0


@dataclass(frozen=True)
class Answered:
    """What people say of a drawn unit: all classes of an image, or one label.

    A class on which they differ is `unsure`; of an image, what is neither `present` nor `unsure` is
    absent.
    """

    position: int
    unit: Unit
    present: frozenset[str]
    unsure: frozenset[str]
    reviewers: tuple[str, ...]
    at: str  # the time of the last answer


def new_sample(
    self: Store, seed: int, unit: Literal["image", "label"], strata: Any, units: Iterable[Unit] = ()
) -> int:
    """Save a new sample with its first units, in the order in which they were drawn."""
    with self._writing() as ids:
        newest = self._connection.execute("SELECT max(id) FROM sample").fetchone()[0]
        number = (newest or 0) + 1
        insert(self._connection, "sample", [(number, now(), seed, unit, json.dumps(strata))])
        _add(self, ids, number, units, unit)
        return int(number)


def extend(self: Store, sample: int, units: Iterable[Unit]) -> int:
    """Add units to a sample, behind those that it has; returns how many it has now."""
    with self._writing() as ids:
        row = self._connection.execute("SELECT unit FROM sample WHERE id=?", (sample,)).fetchone()
        if row is None:
            raise InputError(f"{self.file}: has no sample {sample}")
        return _add(self, ids, sample, units, row[0])


def _add(self: Store, ids: Names, sample: int, units: Iterable[Unit], kind: str) -> int:
    query = "SELECT count(*) FROM sample_unit WHERE sample=?"
    count = int(self._connection.execute(query, (sample,)).fetchone()[0])
    rows = []
    for position, unit in enumerate(units, start=count):
        if (unit.class_ is None) != (kind == "image"):
            raise ValueError(f"the units of sample {sample} are of kind {kind!r}")
        class_ = None if unit.class_ is None else ids.class_(unit.class_)
        rows.append((sample, position, ids.image(unit.image), class_, unit.stratum))
    ids.save()
    return count + insert(self._connection, "sample_unit", rows)


def samples(self: Store) -> list[Sample]:
    """List the samples, oldest first."""
    with self._reading():
        rows = rows_of(self._connection, "sample", order="id")
        return [Sample(n, at, seed, unit, json.loads(s)) for n, at, seed, unit, s in rows]


def units(self: Store, sample: int) -> list[Unit]:
    """List what was drawn, in this order."""
    with self._reading() as ids:
        images, classes = ids.names("image"), ids.names("class")
        return [
            Unit(images[image], None if class_ is None else classes[class_], stratum)
            for number, _, image, class_, stratum in rows_of(
                self._connection, "sample_unit", order="sample, position"
            )
            if number == sample
        ]


def answers(self: Store, sample: int, classes: Sequence[str] | None = None) -> list[Answered]:
    """List what people answered about the units of a sample, in drawing order.

    An image counts once somebody settled all of `classes` in it (or of the classes of the store),
    in a sample or by a file; a label once it has an answer.
    """
    drawn = list(enumerate(self.units(sample)))
    if not drawn:
        return []
    people = _people(self)
    images = {unit.image for _, unit in drawn}
    said: dict[str, dict[str, Any]] = {image: {} for image in images}
    for image, class_, state, _ in self.each_state():
        if image in images and state.state != "open":
            said[image][class_] = state
    found = []
    for position, unit in drawn:
        image, name = unit.image, unit.class_
        if name is None:
            who, at, shown = people.wholes.get(image, ((), "", frozenset()))
            if not who or not set(people.classes if classes is None else classes) <= shown:
                continue
            about = said[image]
        else:
            if name not in said[image]:
                continue
            who, at = people.labels.get((image, name)) or people.wholes[image][:2]
            about = {name: said[image][name]}
        found.append(
            Answered(
                position,
                unit,
                frozenset(c for c, s in about.items() if s.verdict == "present"),
                frozenset(c for c, s in about.items() if s.verdict is None),
                who,
                at,
            )
        )
    return sorted(found, key=lambda each: each.position)


@dataclass(frozen=True)
class _People:
    """Who answered, and when last, about whole images and about labels."""

    classes: frozenset[str]
    wholes: dict[str, tuple[tuple[str, ...], str, frozenset[str]]]
    labels: dict[tuple[str, str], tuple[tuple[str, ...], str]]


def _people(self: Store) -> _People:
    with self._reading() as ids:
        image, class_, person = (ids.names(each) for each in ("image", "class", "reviewer"))
        shown = palettes(self._connection)
        columns = "seq, undoes, image, reviewer, mode, sample, shown, at"
        rows = list(rows_of(self._connection, "settled", columns, "seq"))
        undone = {row[1] for row in rows}
        wholes: dict[str, tuple[tuple[str, ...], str, frozenset[str]]] = {}
        for seq, undoes, i, who, mode, sample, palette, at in rows:
            if undoes is None and seq not in undone:
                before, last, seen = wholes.get(image[i], ((), "", frozenset()))
                if sample is not None or mode == "file":  # asked without what an audit thinks
                    seen |= {class_[k] for k in shown[palette]}
                wholes[image[i]] = _joined(before, person[who]), max(last, at), seen
        columns = "seq, undoes, image, class, reviewer, verdict, at"
        decisions = list(rows_of(self._connection, "decision", columns, "seq"))
        undone = {row[1] for row in decisions}
        labels: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {}
        for seq, _, i, k, who, verdict, at in decisions:
            if verdict != "undone" and seq not in undone:
                before, last = labels.get((image[i], class_[k]), ((), ""))
                labels[image[i], class_[k]] = _joined(before, person[who]), max(last, at)
        return _People(frozenset(class_.values()), wholes, labels)


def _joined(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return names if name in names else (*names, name)
