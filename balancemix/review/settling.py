"""Which whole pictures to settle next, and which labels are shown beside each."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from balancemix.auditing.sample import drawing_order
from balancemix.review.leases import counted
from balancemix.review.palette import Floats, likeliest, shares
from balancemix.review.queue import Person, image_of, labels_of

if TYPE_CHECKING:
    from balancemix.review.desk import Desk

Order = Literal["sample", "random", "errors"]
SEED = 1  # of the random order; the sample has its own


class Settling:
    """The pictures of a desk as whole ones."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def next_pictures(
        self,
        who: Person,
        order: Order,
        count: int,
        holding: Collection[int] = (),
        *,
        anyway: bool = False,
    ) -> dict[str, Any]:
        """Choose pictures that nobody has settled or holds (or `anyway`), and lease them."""
        desk = self._desk
        taken = {} if anyway else desk.leases.others(who.tab)
        rows = desk.sampling.open() if order == "sample" else self.unsettled(order)
        picked = [row for row in rows if row not in taken and row not in holding][:count]
        desk.leases.hold(who.tab, who.name or "", [*holding, *picked])
        describe = self.of_sample if order == "sample" else self.of_model
        return {
            "items": [describe(row) for row in picked],
            "open": len(rows),
            "others": counted(taken[row] for row in rows if row in taken),
            "sample": desk.sampling.facts(),
        }

    def unsettled(self, order: Order) -> list[int]:
        """List the rows that nobody has settled: in random order, or most expected errors first."""
        listed, rows = self._desk.listed, self._mixed
        if order == "errors":
            asked = self._desk.is_asked(None)
            expected = np.bincount(listed.row[asked], listed.p[asked], minlength=len(rows))
            rows = rows[np.argsort(-expected[rows], kind="stable")]
        settled = self._desk.log.settled_rows()
        return [row for row in rows.tolist() if row not in settled]

    def of_sample(self, row: int) -> dict[str, Any]:
        """Describe a picture with the labels of the files; the page adds every other class."""
        return {"image": image_of(self._desk, row), "labels": labels_of(self._desk.source, row)}

    def of_model(self, row: int) -> dict[str, Any]:
        """Describe a picture with the labels that hold by now, and the others, likeliest first."""
        desk = self._desk
        present = set(labels_of(desk.source, row))
        for column in range(len(desk.source.classes)):
            verdict = desk.state(row, column).verdict
            if verdict is not None:
                (present.add if verdict == "present" else present.discard)(column)
        listed = desk.listed
        suspected = {
            int(listed.column[i]): float(listed.p[i])
            for i in listed.of_row(row)
            if listed.suggested[i] == 1
        }
        labels = sorted(present)
        palette = likeliest(labels, suspected, self._shares)
        return {"image": image_of(desk, row), "labels": labels, "palette": palette}

    @cached_property
    def _mixed(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.array(drawing_order(self._desk.source.names, SEED), dtype=np.int64)

    @cached_property
    def _shares(self) -> Floats:
        return shares(self._desk.source.given.numpy())
