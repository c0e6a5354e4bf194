"""A folder of images with `labels.csv`: image,labels[,split][,group], labels separated by `|`."""

from __future__ import annotations

import codecs
import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from balancemix.data import images
from balancemix.data.source import ReadOptions, Source, check_text, leave_out, read_text
from balancemix.data.splits import check_classes, check_split
from balancemix.errors import InputError, suggest
from balancemix.files import write_csv, write_whole

ENDING = ".csv"  # of what `write` writes
HEADER = "begin it with image,labels or image,labels,split"
SAVE = "save it as UTF-8"
SEPARATOR = "|"  # of labels


@dataclass(frozen=True)
class Entry:
    """One row of labels.csv; `row` counts like a spreadsheet, from the header as row 1."""

    row: int
    image: str
    labels: tuple[str, ...]
    split: str | None
    group: str | None


def recognise(path: Path) -> str | None:
    """Say whether a folder holds labels.csv.

    >>> recognise(Path("nowhere"))
    """
    return "it holds labels.csv" if (path / "labels.csv").is_file() else None


def read(path: Path, options: ReadOptions) -> Source:
    """Read images and labels, and the split of each row if there are any.

    Classes are the lines of `classes.txt`, or else all labels in sorted order. Images that cannot
    be read are refused by name; `skip_bad` leaves them out.
    """
    file = path / "labels.csv"
    entries = read_entries(file)
    classes = read_classes(path / "classes.txt", file, entries)
    entries, paths = _usable(file, entries, options.skip_bad)
    column = {name: k for k, name in enumerate(classes)}
    given = torch.zeros(len(entries), len(classes), dtype=torch.int8)
    for i, entry in enumerate(entries):
        given[i, [column[label] for label in entry.labels]] = 1
    return Source(
        path=path,
        classes=classes,
        names=[entry.image for entry in entries],
        given=given,
        split=[entry.split for entry in entries if entry.split is not None] or None,
        groups=[entry.group for entry in entries if entry.group is not None] or None,
        images=paths,
        origin=file.read_bytes(),
    )


def write(source: Source, given: Tensor, out: Path) -> None:
    """Write labels.csv with other labels; rows with the same labels keep every byte.

    Data of another format becomes image,labels[,split][,group]. Rows that were left out stay out.
    """
    remedy = "rename it" if source.features is None else "rename it, or write an .npz"
    _check_names(out, source.names, source.classes, remedy)
    _check_groups(out, source.groups or (), remedy)
    if not isinstance(source.origin, bytes):
        columns = (("split", source.split), ("group", source.groups))
        known = {name: cells for name, cells in columns if cells is not None}
        write_table(out, source.names, given, source.classes, known)
        return
    changed = (given != source.given).any(1).tolist()
    labels = label_cells(given, source.classes)
    place = {name: i for i, name in enumerate(source.names)}
    records = _records(source.origin.decode("utf-8-sig"))
    first, text = next(records)
    header = [name.strip() for name in first]
    split = None if "split" in header else source.split  # drawn at random: written, to keep it
    written = [text if split is None else _record([*first, "split"], text)]
    for cells, text in records:
        name = cells[header.index("image")].strip() if any(map(str.strip, cells)) else ""
        i = place.get(name)
        if i is None:  # a row of empty cells, or of an image that cannot be read
            written += [text] if not name and split is None else []
        elif changed[i] or split is not None:
            cells[header.index("labels")] = labels[i]
            written.append(_record(cells if split is None else [*cells, split[i]], text))
        else:
            written.append(text)
    mark = codecs.BOM_UTF8 if source.origin.startswith(codecs.BOM_UTF8) else b""
    content = mark + "".join(written).encode("utf-8")
    write_whole(out, lambda draft: draft.write_bytes(content))


def write_table(
    out: Path,
    names: Sequence[str],
    labels: Tensor,
    classes: Sequence[str],
    columns: Mapping[str, Sequence[str]],
) -> None:
    """Write image, labels and other columns as a labels.csv."""
    _check_names(out, names, classes)
    lines = zip(names, label_cells(labels, classes), *columns.values(), strict=True)
    write_csv(out, ("image", "labels", *columns), lines)


def _check_names(
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


def label_cells(labels: Tensor, classes: Sequence[str]) -> list[str]:
    """Join the labels of each row as in labels.csv.

    >>> label_cells(torch.tensor([[1, 0, 1]]), ["cat", "dog", "cup"])
    ['cat|cup']
    """
    if bool((labels < 0).any()):
        raise InputError("labels.csv cannot say that a label is unknown; write an .npz instead")
    return [
        SEPARATOR.join(name for name, present in zip(classes, row, strict=True) if present)
        for row in labels.tolist()
    ]


def _records(text: str) -> Iterator[tuple[list[str], str]]:
    """Split a CSV file into records: the cells of each, and its text."""
    taken: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            taken.append(line)
            yield line

    for cells in csv.reader(lines()):
        yield cells, "".join(taken)
        taken.clear()


def _record(cells: list[str], text: str) -> str:
    """Write a record again, with the line end that it had."""
    out = io.StringIO(newline="")
    csv.writer(out).writerow(cells)  # ends in CR LF: cells that hold either are quoted
    return out.getvalue()[:-2] + text[len(text.rstrip("\r\n")) :]


def read_entries(file: Path) -> list[Entry]:
    """Read labels.csv without checking the images."""
    entries = list(_entries(file))
    if not entries:
        raise InputError(f"{file}: has no rows below its header; add one for each image")
    seen: dict[str, int] = {}
    for entry in entries:
        first = seen.setdefault(os.path.normpath(entry.image), entry.row)
        if first != entry.row:
            raise InputError(
                f"{file} row {entry.row}: image {entry.image!r} is also in row {first}; "
                "put all its labels into one row"
            )
    return entries


def _entries(file: Path) -> Iterator[Entry]:
    text = read_text(file, f"a folder of images needs one, {HEADER}", SAVE)
    if not text.strip():
        raise InputError(f"{file}: is empty; {HEADER}")
    # Strict, since an unbalanced quote would otherwise make one cell of the rest of the file.
    lines, row = csv.reader(io.StringIO(text), strict=True), 0
    try:
        header, row = [name.strip() for name in next(lines, [])], 1
        for name in ("image", "labels"):
            if header.count(name) != 1:
                names = ", ".join(map(repr, header)) or "nothing"
                raise InputError(f"{file} row 1: one column {name!r} expected in {names}; {HEADER}")
        for row, cells in enumerate(lines, start=2):
            if any(cell.strip() for cell in cells):  # spreadsheets leave rows of empty cells
                yield _entry(f"{file} row {row}", row, header, cells)
    except csv.Error as error:
        raise InputError(f"{file} row {row + 1}: not CSV ({error}); check its quotes") from error


def _entry(where: str, row: int, header: list[str], cells: list[str]) -> Entry:
    if len(cells) != len(header):
        raise InputError(
            f"{where}: has {len(cells)} cells where the header has {len(header)}; "
            "separate labels by | and quote cells that hold a comma"
        )
    values = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
    if not values["image"]:
        raise InputError(f"{where}: the image cell is empty; name a file")
    for name in ("image", "labels"):
        if "\n" in values[name] or "\r" in values[name]:
            raise InputError(f"{where}: the {name} cell has a line break; check its quotes")
    split = values.get("split")
    if split is not None:
        check_split(where, split)
    labels = (label.strip() for label in values["labels"].split(SEPARATOR))
    known = tuple(label for label in labels if label)
    return Entry(row, values["image"], known, split, values.get("group"))


def read_classes(file: Path, labels_file: Path, entries: list[Entry]) -> list[str]:
    """Read the class list and check that it has each label; without a list, collect the labels."""
    if not file.is_file():
        classes = sorted({label for entry in entries for label in entry.labels})
        check_classes(str(labels_file), classes)
        return classes
    classes = [line.strip() for line in read_text(file, "", SAVE).split("\n") if line.strip()]
    check_classes(str(file), classes)
    for name in classes:
        if SEPARATOR in name:
            raise InputError(
                f"{file}: class {name!r} holds a {SEPARATOR}, which separates labels; rename it"
            )
    known = set(classes)
    for entry in entries:
        for label in entry.labels:
            if label not in known:
                raise InputError(
                    f"{labels_file} row {entry.row}: label {label!r} is not in {file.name}; "
                    f"{suggest(label, classes)}"
                )
    return classes


def _usable(file: Path, entries: list[Entry], skip_bad: bool) -> tuple[list[Entry], list[Path]]:
    """Check every image before training starts, so that one run shows all that is wrong."""
    paths = [images.find(file.parent, entry.image) for entry in entries]
    checked = list(zip(entries, paths, images.problems(paths), strict=True))
    bad = [f"{entry.image!r} (row {entry.row}, {why})" for entry, _, why in checked if why]
    leave_out(f"{file}: %s cannot be read", bad, len(entries), skip_bad)
    usable = [(entry, path) for entry, path, why in checked if why is None]
    return [entry for entry, _ in usable], [path for _, path in usable]
