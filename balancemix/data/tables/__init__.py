"""People's tables: cells as text in, and the same file with some cells changed out."""

from collections.abc import Callable
from pathlib import Path

from balancemix.data.tables.edits import Edits as Edits
from balancemix.data.tables.parquet import ParquetSheet
from balancemix.data.tables.records import RecordsSheet
from balancemix.data.tables.sheet import Sheet as Sheet
from balancemix.data.tables.text import TextSheet as TextSheet
from balancemix.data.tables.workbook import WorkbookSheet
from balancemix.errors import InputError, suggest

# What opens a file, by its ending.
SHEETS: dict[str, Callable[[Path], Sheet]] = {
    ".csv": TextSheet,
    ".tsv": TextSheet,
    ".txt": TextSheet,
    ".xlsx": WorkbookSheet,
    ".parquet": ParquetSheet,
    ".json": RecordsSheet,
    ".jsonl": RecordsSheet,
}


def open_sheet(file: Path, title: str | None = None) -> Sheet:
    """Open a table by the ending of its name; reads its header and no more.

    `title` names a sheet of a workbook; without it, the first that holds anything is read.

    >>> open_sheet(Path("photos.doc"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    balancemix.errors.InputError: photos.doc: not a table; use one of: .csv, .tsv, ...
    """
    kind = SHEETS.get(file.suffix.lower())
    if kind is None:
        raise InputError(f"{file}: not a table; {suggest(file.suffix, list(SHEETS))}")
    if kind is WorkbookSheet:
        return WorkbookSheet(file, title)
    if title is not None:
        raise InputError(f"--sheet {title}: {file} has no sheets; leave it out")
    return kind(file)
