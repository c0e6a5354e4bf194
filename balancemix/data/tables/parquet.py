"""Tables of Parquet, read and written by pyarrow in row groups; lists are read as JSON lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from balancemix.data.tables.cells import text_of, value_like
from balancemix.data.tables.edits import Edits
from balancemix.data.tables.sheet import Stamp
from balancemix.errors import InputError
from balancemix.files import write_whole
from balancemix.progress import Show, silence

BATCH = 4096  # records read at once


class ParquetSheet:
    """A table in a .parquet file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.stamp = Stamp.of(file)
        with self._opened() as table:
            self.header = list(table.schema_arrow.names)

    def records(self, show: Show = silence) -> Iterator[list[str]]:
        """Read record by record."""
        with (
            self._opened() as table,
            show(f"read {self.file.name}", table.metadata.num_rows) as bar,
        ):
            left = table.metadata.num_rows
            for batch in table.iter_batches(BATCH):
                columns = [_texts(column) for column in batch.columns]
                yield from map(list, zip(*columns, strict=True))
                bar.advance(batch.num_rows)
                left -= batch.num_rows
            if left:
                raise ValueError("it has another number of rows than it says")

    def write(self, out: Path, edits: Edits) -> None:
        """Write the file with some cells changed; schema, metadata and row groups stay."""
        self.stamp.check(self.file)
        write_whole(out, lambda draft: self._save(draft, edits))

    def _save(self, draft: Path, edits: Edits) -> None:
        import pyarrow.parquet

        start, cells = 0, edits.by_record
        with self._opened() as table:
            schema, kept = table.schema_arrow, _compression(table)
            with pyarrow.parquet.ParquetWriter(draft, schema, compression=kept) as writer:
                for i in range(table.num_row_groups):
                    group = table.read_row_group(i)
                    end = start + len(group)
                    touched = range(start if start else -1, end)
                    if any(n in cells or n in edits.dropped or n in edits.added for n in touched):
                        group = self._changed(group, start, edits)
                    if len(group):
                        writer.write_table(group, row_group_size=len(group))
                    start = end

    def _changed(self, group: Any, start: int, edits: Edits) -> Any:
        """Change the records of one row group, the first of which has the number `start`."""
        import pyarrow

        columns = []
        for k, field in enumerate(group.schema):
            order, texts = _order(k, start, len(group), edits)
            column = group.column(k)
            if texts:
                new = [self._value(field, text) for text in texts]
                both = [*column.chunks, pyarrow.array(new, type=field.type)]
                column = pyarrow.chunked_array(both).unify_dictionaries()
            same = order == list(range(len(group)))
            columns.append(column if same else column.combine_chunks().take(pyarrow.array(order)))
        return pyarrow.table(columns, schema=group.schema)

    def _value(self, field: Any, text: str) -> Any:
        """Read a text as a value of a column."""
        from pyarrow import types

        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        try:
            if types.is_string(kind) or types.is_large_string(kind):
                return text
            if not text:
                return None
            if types.is_boolean(kind):
                return value_like(True, text)
            if types.is_integer(kind):
                return int(text)
            if types.is_floating(kind):
                return float(text)
            if types.is_list(kind) or types.is_large_list(kind):
                return value_like([], text)
        except ValueError as error:
            raise self._refusal(field, text) from error
        raise self._refusal(field, text)

    def _refusal(self, field: Any, text: str) -> InputError:
        return InputError(
            f"{self.file}: column {field.name!r} holds {field.type}, which cannot be {text!r}"
        )

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        parquet = import_parquet(self.file)
        try:
            with (
                self.file.open("rb") as stream,
                parquet.ParquetFile(stream, page_checksum_verification=True) as table,
            ):
                yield table
        except InputError:
            raise
        except Exception as error:  # of pyarrow and of the system
            reason = " ".join(str(error).split())
            raise InputError(f"{self.file}: cannot be read ({reason}); write it again") from error


def _order(k: int, start: int, count: int, edits: Edits) -> tuple[list[int], list[str]]:
    """List the new values of column k, and the place of each record's value.

    A place counts the values of the row group first, then the new ones.
    """
    cells, order = edits.by_record, list[int]()
    texts: list[str] = []

    def add(new: Sequence[str]) -> None:
        order.extend(range(count + len(texts), count + len(texts) + len(new)))
        texts.extend(new)

    def added(record: int) -> list[str]:
        return [cells[k] if k < len(cells) else "" for cells in edits.added.get(record, ())]

    if start == 0:
        add(added(-1))
    for i in range(count):
        record = start + i
        text = cells.get(record, {}).get(k)
        if record not in edits.dropped:
            order.append(i) if text is None else add([text])
        add(added(record))
    return order, texts


def _compression(table: Any) -> str | dict[str, str]:
    """Find how each column is compressed."""
    if not table.num_row_groups:
        return "snappy"
    group = table.metadata.row_group(0)
    parts = [group.column(i) for i in range(group.num_columns)]
    names = {"UNCOMPRESSED": "NONE"}
    return {part.path_in_schema: names.get(part.compression, part.compression) for part in parts}


def _texts(column: Any) -> list[str]:
    """Write the values of a column as text."""
    import pyarrow

    if pyarrow.types.is_temporal(column.type):  # not as Python has them, which would need pandas
        column = column.cast(pyarrow.int64() if column.type.bit_width == 64 else pyarrow.int32())
    return [text_of(value) for value in column.to_pylist()]


def import_parquet(file: Path) -> Any:
    """Import pyarrow, or say how to install it."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            f"{file}: a .parquet needs pyarrow; install it with: pip install 'balancemix[tables]'"
        ) from None
    return pyarrow.parquet
