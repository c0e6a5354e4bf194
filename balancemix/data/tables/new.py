"""New tables, of data that comes from elsewhere: image, labels, and what else is known of rows.

Labels are joined by |, or lists where files have lists. Where some are unknown, which no list of
names can say, each class has a column instead: 1, 0, or blank for unknown.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from balancemix.data.source import Source, check_text
from balancemix.data.tables.roles import IMAGE, LABEL, SPLIT, plain
from balancemix.data.tables.rows import WHOLE_ROW
from balancemix.data.tables.separators import DEFAULT as SEPARATOR
from balancemix.errors import InputError
from balancemix.files import write_csv, write_whole

ROLES = {*IMAGE, *LABEL, *SPLIT, "group", "verified"}
Columns = Mapping[str, Sequence[Any]]  # lists of names are lists, what is unknown is None


def write_new(source: Source, given: Tensor, out: Path) -> None:
    """Write a table of a source with other labels, in the kind of file that the ending names."""
    remedy = "rename it" if source.features is None else "rename it, or write an .npz"
    check_names(out, source.names, source.classes, remedy)
    _check_groups(out, source.groups or (), remedy)
    columns: dict[str, Sequence[Any]] = {"image": source.names}
    if bool((given < 0).any()):
        columns |= _class_columns(out, given, source.classes, remedy)
    else:
        columns["labels"] = _present(given, source.classes)
    for name, cells in (("split", source.split), ("group", source.groups)):
        if cells is not None:
            columns[name] = cells
    if source.verified is not None:
        columns["verified"] = _verified(source.verified, source.classes)
    WRITERS[out.suffix.lower()](out, columns)


def write_table(
    out: Path,
    names: Sequence[str],
    labels: Tensor,
    classes: Sequence[str],
    columns: Mapping[str, Sequence[str]],
) -> None:
    """Write image, labels and other columns as a labels.csv."""
    check_names(out, names, classes)
    _write_csv(out, {"image": names, "labels": _present(labels, classes), **columns})


def check_names(
    out: Path, names: Sequence[str], classes: Sequence[str], remedy: str = "rename it"
) -> None:
    """Refuse names that would be other ones when they are read again."""
    for what, given, mark in (("image", names, None), ("class", classes, SEPARATOR)):
        for name in given:
            where = f"{out}: {what}"
            check_text(where, name)
            lost = _lost(name, mark)
            if lost is not None:
                raise InputError(f"{where} {name!r} {lost}, which labels.csv cannot keep; {remedy}")


def label_cells(labels: Tensor, classes: Sequence[str]) -> list[str]:
    """Join the labels of each row as in labels.csv.

    >>> import torch
    >>> label_cells(torch.tensor([[1, 0, 1]]), ["cat", "dog", "cup"])
    ['cat|cup']
    """
    return [SEPARATOR.join(names) for names in _present(labels, classes)]


def _present(labels: Tensor, classes: Sequence[str]) -> list[list[str]]:
    """Name the classes that each row has."""
    return [
        [name for name, value in zip(classes, row, strict=True) if value == 1]
        for row in labels.tolist()
    ]


def _class_columns(
    out: Path, given: Tensor, classes: Sequence[str], remedy: str
) -> dict[str, list[int | None]]:
    for name in classes:
        if plain(name) in ROLES:
            raise InputError(
                f"{out}: class {name!r} cannot be the name of a column, which unknown labels need; "
                f"{remedy}"
            )
    values = {1: 1, 0: 0, -1: None}
    return {
        name: [values[value] for value in column]
        for name, column in zip(classes, given.T.tolist(), strict=True)
    }


def _verified(verified: Tensor, classes: Sequence[str]) -> list[Any]:
    whole = verified.all(1).tolist()
    names = _present(verified, classes)
    return [WHOLE_ROW if all_ else SEPARATOR.join(n) for all_, n in zip(whole, names, strict=True)]


def _check_groups(out: Path, groups: Sequence[str], remedy: str) -> None:
    """Refuse names of groups that would be other ones when they are read again; "" is none."""
    for name in set(groups) - {""}:
        check_text(f"{out}: group", name)
        lost = _lost(name, None)
        if lost is not None:
            raise InputError(
                f"{out}: group {name!r} {lost}, which labels.csv cannot keep; {remedy}"
            )


def _lost(name: str, mark: str | None) -> str | None:
    """Say what of a name a table does not keep, or None."""
    if not name:
        return "is empty"
    if name != name.strip():
        return "begins or ends with a blank"
    if "\n" in name or "\r" in name:
        return "holds a line break"
    return f"holds a {mark}" if mark is not None and mark in name else None


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    return SEPARATOR.join(cell) if isinstance(cell, list) else str(cell)


def _texts(columns: Columns) -> zip[tuple[str, ...]]:
    return zip(*(map(_text, cells) for cells in columns.values()), strict=True)


def _write_csv(out: Path, columns: Columns) -> None:
    write_csv(out, list(columns), _texts(columns))


def _write_tsv(out: Path, columns: Columns) -> None:
    def save(draft: Path) -> None:
        with draft.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter="\t").writerows([list(columns), *_texts(columns)])

    write_whole(out, save)


def _write_json(out: Path, columns: Columns) -> None:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    is_lines = out.suffix.lower() == ".jsonl"
    text = "\n".join(lines) if is_lines else "[\n" + ",\n".join(lines) + "\n]"
    write_whole(out, lambda draft: draft.write_bytes(f"{text}\n".encode()))


def _write_xlsx(out: Path, columns: Columns) -> None:
    from balancemix.data.tables.workbook import import_openpyxl

    book = import_openpyxl(out).Workbook(write_only=True)
    sheet = book.create_sheet("labels")
    for row in (list(columns), *zip(*columns.values(), strict=True)):
        sheet.append([_cell(sheet, value) for value in row])
    write_whole(out, book.save)


def _cell(sheet: Any, value: Any) -> Any:
    """Make a cell; text that begins like a formula stays text."""
    from openpyxl.cell import WriteOnlyCell

    if value is None or isinstance(value, int):
        return value
    cell = WriteOnlyCell(sheet)
    cell.value = _text(value) or None
    if cell.value is not None:
        cell.data_type = "s"
    return cell


def _write_parquet(out: Path, columns: Columns) -> None:
    from balancemix.data.tables.parquet import import_parquet

    parquet = import_parquet(out)
    import pyarrow

    table = pyarrow.table({name: pyarrow.array(list(cells)) for name, cells in columns.items()})
    write_whole(out, lambda draft: parquet.write_table(table, draft, write_page_checksum=True))


WRITERS: dict[str, Callable[[Path, Columns], None]] = {
    ".csv": _write_csv,
    ".txt": _write_csv,
    ".tsv": _write_tsv,
    ".xlsx": _write_xlsx,
    ".parquet": _write_parquet,
    ".json": _write_json,
    ".jsonl": _write_json,
}
