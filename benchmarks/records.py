"""What a benchmark that takes hours has measured: a line of JSON each, so that a run continues."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from balancemix.files import to_json, write_text

HERE = Path(__file__).resolve().parent
Record = dict[str, Any]
Key = TypeVar("Key", bound=tuple[Any, ...])


class Records:
    """The records of benchmarks/NAME.jsonl; `key` names the fields that tell them apart."""

    def __init__(self, name: str, key: tuple[str, ...]) -> None:
        self.file = HERE / f"{name}.jsonl"
        self.key = key
        self.all: list[Record] = [json.loads(line) for line in self._text().splitlines()]

    def missing(self, keys: Iterable[Key]) -> Iterator[Key]:
        """List the keys that have no record yet."""
        known = {tuple(record[name] for name in self.key) for record in self.all}
        return (key for key in keys if key not in known)

    def add(self, record: Record) -> Record:
        """Append a record to the file at once."""
        self.all.append(record)
        write_text(self.file, self._text() + to_json(record) + "\n")
        return record

    def keep(self, wanted: Callable[[Record], bool]) -> None:
        """Drop the other records from the file, so that they are measured again."""
        self.all = [record for record in self.all if wanted(record)]
        write_text(self.file, "".join(to_json(record) + "\n" for record in self.all))

    def _text(self) -> str:
        return self.file.read_text(encoding="utf-8") if self.file.exists() else ""
