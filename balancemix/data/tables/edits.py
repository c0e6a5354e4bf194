"""What changes in a table, by the numbers of its records; the header is no record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Edits:
    """Changes of a table; numbers count its records from 0, as they were before any change.

    cells      (record, column) → the new text
    dropped    records to leave out
    added      after record i, these records; after −1 they come first
    """

    cells: Mapping[tuple[int, int], str] = field(default_factory=dict)
    dropped: Set[int] = frozenset()
    added: Mapping[int, Sequence[list[str]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.cells or self.dropped or self.added)

    @property
    def by_record(self) -> dict[int, dict[int, str]]:
        """The new cells of each record that has any: column → text."""
        found: dict[int, dict[int, str]] = {}
        for (record, column), text in self.cells.items():
            found.setdefault(record, {})[column] = text
        return found

    def applied(self, records: Iterable[list[str]]) -> Iterator[list[str]]:
        """Change records of text.

        >>> list(Edits({(0, 1): "cat"}, {1}, {0: [["b", "owl"]]}).applied([["a", ""], ["c", ""]]))
        [['a', 'cat'], ['b', 'owl']]
        """
        changed = self.by_record
        yield from self.added.get(-1, ())
        for i, cells in enumerate(records):
            if i not in self.dropped:
                new = changed.get(i, {})
                yield [new.get(column, text) for column, text in enumerate(cells)]
            yield from self.added.get(i, ())
