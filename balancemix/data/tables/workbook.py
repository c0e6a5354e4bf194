"""Tables of Excel, .xlsx: read by openpyxl, written by changing cells in the file's own XML.

The first worksheet that holds anything is read, unless another is asked for. Of a formula, the
value is read that the file keeps beside it; a cell with a formula is never changed.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from balancemix.data.tables.cell_order import check_order
from balancemix.data.tables.cells import text_of
from balancemix.data.tables.edits import Edits
from balancemix.data.tables.sheet import Stamp
from balancemix.data.tables.worksheet import rewrite
from balancemix.errors import InputError, suggest
from balancemix.files import write_whole
from balancemix.progress import Show, silence

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook

EVERY = 1000  # records after which the progress moves


class WorkbookSheet:
    """A worksheet of an .xlsx file."""

    def __init__(self, file: Path, title: str | None = None) -> None:
        self.file = file
        self.stamp = Stamp.of(file)
        self.title, self.others, self.count = self._choose(title)
        self.header = next(self._rows(), [])

    def records(self, show: Show = silence) -> Iterator[list[str]]:
        """Read record by record, as wide as the header or, where more cells hold text, wider."""
        width = len(self.header)
        rows = self._rows()
        next(rows, None)
        with show(f"read {self.file.name}", self.count) as bar:
            for i, cells in enumerate(rows, start=1):
                yield cells + [""] * (width - len(cells))
                if i % EVERY == 0:
                    bar.advance(EVERY)

    def write(self, out: Path, edits: Edits) -> None:
        """Write the file with some cells changed; its other parts keep every byte.

        A record that is dropped leaves a blank row, which a new record takes; further ones follow
        after the last row.
        """
        self.stamp.check(self.file)

        def save(draft: Path) -> None:
            try:
                rewrite(self.file, self.title, edits, draft)
            except InputError:
                raise
            except (KeyError, StopIteration, SyntaxError, ValueError, zipfile.BadZipFile) as error:
                raise self._unusual() from error

        write_whole(out, save, ready=lambda draft: self._check(draft, edits))

    def _check(self, draft: Path, edits: Edits) -> None:
        """Read what was written: whatever XML the file has, its cells must be what they should."""
        written = WorkbookSheet(draft, self.title)
        width = len(self.header)
        changed = edits.applied(self.records())
        expected = [row + [""] * (width - len(row)) for row in changed if any(row)]
        found = [row for row in written.records() if any(row)]
        same = sorted(found) == sorted(expected) if edits.added else found == expected
        if not same or written.header != self.header:
            raise self._unusual()

    def _unusual(self) -> InputError:
        return InputError(f"{self.file}: cannot be changed cell by cell; save it again in Excel")

    def _choose(self, asked: str | None) -> tuple[str, list[str], int]:
        """Choose the worksheet; name the others that hold anything, and count its rows."""
        with self._opened() as book:
            counts = {sheet.title: sheet.max_row or 0 for sheet in book.worksheets}
            titles = [sheet.title for sheet in book.worksheets if any(map(any, _values(sheet)))]
        if asked is not None and asked not in counts:
            raise InputError(
                f"--sheet {asked}: {self.file} has no such sheet; {suggest(asked, list(counts))}"
            )
        if asked is not None and asked not in titles:
            raise InputError(f"--sheet {asked}: holds nothing; begin it with a header")
        if not titles:
            raise InputError(f"{self.file}: no worksheet holds anything; begin it with a header")
        title = asked or titles[0]
        with self._readable():
            check_order(self.file, title)
        return title, [each for each in titles if each != title], counts[title]

    def _rows(self) -> Iterator[list[str]]:
        with self._opened() as book:
            for values in _values(book[self.title]):
                cells = [text_of(value) for value in values]
                while cells and not cells[-1]:
                    del cells[-1]
                yield cells

    @contextmanager
    def _opened(self) -> Iterator[Workbook]:
        openpyxl = import_openpyxl(self.file)
        with self._readable(), self.file.open("rb") as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about parts that openpyxl does not know
            yield openpyxl.load_workbook(stream, read_only=True, data_only=True)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except InputError:
            raise
        except Exception as error:  # zip, XML and openpyxl raise different ones
            reason = " ".join(str(error).split())
            raise InputError(
                f"{self.file}: cannot be read ({reason}); save it again as .xlsx"
            ) from error


def _values(sheet: Any) -> Iterator[tuple[Any, ...]]:
    """Read the values of each row, however large the file says that it is."""
    sheet.reset_dimensions()
    return iter(sheet.iter_rows(values_only=True))


def import_openpyxl(file: Path) -> Any:
    """Import openpyxl, or say how to install it."""
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            f"{file}: an .xlsx needs openpyxl; install it with: pip install 'balancemix[tables]'"
        ) from None
    return openpyxl
