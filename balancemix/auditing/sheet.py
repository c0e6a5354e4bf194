"""The CSV in which a person answers a sample: blind, and never written over an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from torch import Tensor

from balancemix.data.decisions.samples import Unit
from balancemix.data.decisions.table_file import records_of
from balancemix.data.tables.new import label_cells
from balancemix.errors import InputError
from balancemix.files import restore, write_sheet, write_text

IMAGES = ("image", "given_labels", "true_labels", "unsure")
LABELS = ("image", "class", "given", "verdict")
Key = tuple[str, ...]


def header_of(kind: str) -> tuple[str, ...]:
    """Return the columns of a sample of images or of labels."""
    return IMAGES if kind == "image" else LABELS


def read_answers(file: Path, kind: str) -> dict[Key, tuple[str, ...]]:
    """Read what a person has typed into a sheet, by image, or by image and class.

    Rows without an answer are left out. A file that is not such a sheet is refused.
    """
    if not file.is_file():
        return {}
    header = header_of(kind)
    columns, rows = records_of(file)
    if tuple(name.strip().casefold() for name in columns) != header:
        raise InputError(
            f"{file} row 1: has other columns than {','.join(header)}; choose another --out"
        )
    asked, typed = (slice(0, 1), slice(2, 4)) if kind == "image" else (slice(0, 2), slice(3, 4))
    answers: dict[Key, tuple[str, ...]] = {}
    for number, cells in enumerate(rows, start=2):
        if any(cell.strip() for cell in cells[len(header) :]):
            raise InputError(f"{file} row {number}: has more cells than columns; quote its commas")
        row = [restore(cell) for cell in (*cells, *[""] * len(header))][: len(header)]
        if any(cell.strip() for cell in row[typed]):
            key = tuple(row[asked])
            if key in answers:
                raise InputError(
                    f"{file} row {number}: {row[0]!r} is answered twice; keep one of the rows"
                )
            answers[key] = tuple(row[typed])
    return answers


def write_sheet_of(
    file: Path,
    kind: str,
    units: Sequence[Unit],
    answered: Sequence[Unit],
    given: Mapping[str, Tensor],
    classes: Sequence[str],
) -> int:
    """Write the units to answer; returns how many rows are blank.

    What somebody has typed into the file stays. Units that are `answered` in the store are asked
    again only if they are in the file already. Beside it, every class in alphabetical order.
    """
    kept = read_answers(file, kind)
    drawn = {_key(unit) for unit in units}
    foreign = [key for key in kept if key not in drawn]
    if foreign:
        raise InputError(
            f"{file}: has an answer about {foreign[0][0]!r}, which is not in this sample; choose "
            "another --out"
        )
    done = {_key(unit) for unit in answered}
    rows: list[tuple[object, ...]] = []
    for unit in units:
        key = _key(unit)
        if key in done and key not in kept:
            continue
        if kind == "image":
            typed = kept.get(key, ("", ""))
            rows.append((unit.image, *label_cells(given[unit.image][None], classes), *typed))
        else:
            rows.append((unit.image, unit.class_, 1, *kept.get(key, ("",))))
    write_sheet(file, header_of(kind), rows)
    write_text(classes_file(file), "".join(f"{name}\n" for name in sorted(classes)))
    return sum(_key(unit) not in kept and _key(unit) not in done for unit in units)


def classes_file(file: Path) -> Path:
    """Name the list of classes beside a sheet.

    >>> classes_file(Path("sample.csv")).name
    'sample.classes.txt'
    """
    return file.with_name(f"{file.stem}.classes.txt")


def _key(unit: Unit) -> Key:
    return (unit.image,) if unit.class_ is None else (unit.image, unit.class_)
