"""The random sample of the page: the one that `audit --sample` draws, extends and measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict

from balancemix.auditing.judged import Judged
from balancemix.auditing.sample import Population, draw_images, find_sample
from balancemix.errors import InputError

if TYPE_CHECKING:
    from balancemix.review.desk import Desk

SEED = 0  # as `audit --sample` without --seed


class Facts(TypedDict):
    """How far people are with a sample."""

    id: int
    drawn: int
    answered: int


class Sampling:
    """The newest sample of images: its rows in drawing order, of images that the data still has."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._read_at: int | None = None  # version of the store
        self.judge: Callable[..., Judged] = _no_judge  # `verified` trusts what people decided
        self.id: int | None = None
        self.rows: list[int] = []

    def draw(self, size: int) -> None:
        """Draw a sample of so many images, or extend the newest one to them."""
        population, seed = self._newest()
        draw_images(self._desk.store, population, size, SEED if seed is None else seed)
        self._read_at = None

    def facts(self) -> Facts | None:
        """Count what is drawn and answered; None where no sample is drawn."""
        self._read()
        if self.id is None:
            return None
        open_ = len(self.open())
        return {"id": self.id, "drawn": len(self.rows), "answered": len(self.rows) - open_}

    def open(self) -> list[int]:
        """List the rows to answer, in drawing order."""
        self._read()
        return [row for row in self.rows if not self._is_answered(row)]

    def _is_answered(self, row: int) -> bool:
        """Tell whether all classes of a picture are settled, asked without what an audit thinks.

        The same as in `Store.answers`, by which the sample is measured.
        """
        seen: set[str] = set()
        for entry in self._desk.log.settled_of(row):
            if entry.sample is not None or entry.mode == "file":
                seen |= entry.covers
        return self._desk.column.keys() <= seen

    def _read(self) -> None:
        """Read what was drawn, unless it is known: in a large store this takes a while."""
        desk, version = self._desk, self._desk.store.version()
        if version == self._read_at:
            return
        self._read_at, self.id, self.rows = version, None, []
        try:
            population, seed = self._newest()
        except InputError:  # no rows to draw from
            return
        newest = find_sample(desk.store, "image", population.split, seed)
        self.id = None if newest is None else newest.id
        units = [] if newest is None else desk.store.units(newest.id)
        inside = set(population.names)
        self.rows = [desk.place[unit.image] for unit in units if unit.image in inside]

    def _newest(self) -> tuple[Population, int | None]:
        """Find the rows that `audit` draws from by itself, and the seed of their newest sample."""
        population = Population.of(self._desk.source)
        newest = find_sample(self._desk.store, "image", population.split, None)
        return population, None if newest is None else newest.seed


def _no_judge(*, verified: bool) -> Judged:
    raise InputError("nothing judges the labels of this review; end it and run `balancemix audit`")
