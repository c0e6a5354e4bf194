"""A table as it stands in its file: cells as text, nothing interpreted."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from balancemix.data.tables.edits import Edits
from balancemix.errors import InputError
from balancemix.progress import Show, silence


class Sheet(Protocol):
    """A table: a header, and records that are read one after another."""

    file: Path
    header: list[str]

    def records(self, show: Show = silence) -> Iterator[list[str]]:
        """Read record by record: cells as text, "" where blank; a blank row may have no cells.

        Every record below the header is counted, also a blank one: record i is row i + 2 of a
        spreadsheet.
        """

    def write(self, out: Path, edits: Edits) -> None:
        """Write the same file with these edits and nothing else.

        Refuses if the file has changed since it was opened.
        """


@dataclass(frozen=True)
class Stamp:
    """The size and date of a file when it was opened."""

    size: int
    changed: int

    @classmethod
    def of(cls, file: Path) -> "Stamp":
        """Note the size and date of a file."""
        try:
            state = file.stat()
        except FileNotFoundError as error:
            raise InputError(f"{file}: not found") from error
        except (OSError, ValueError) as error:  # or a name that no file can have
            raise InputError(f"{file}: cannot be read ({error})") from error
        return cls(state.st_size, state.st_mtime_ns)

    def check(self, file: Path) -> None:
        """Refuse a file that has changed since."""
        if Stamp.of(file) != self:
            raise InputError(f"{file}: has changed since it was read; run the command again")
