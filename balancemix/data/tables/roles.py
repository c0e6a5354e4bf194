"""Which column of a table is what, by the names in its header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from balancemix.data.splits import NAMES as SPLITS
from balancemix.data.tables.sheet import Sheet
from balancemix.errors import InputError, listing, suggest
from balancemix.options import ReadOptions

EACH = "*"  # for --label-column: each column of 0 and 1 is a class
# Names as `plain` writes them, the surest first.
IMAGE = (
    "image", "filename", "file", "imagefile", "imagefilename", "imagepath", "filepath", "path",
    "imagename", "imageindex", "images", "img", "imgpath", "imgname", "photo", "picture",
    "imageid", "imgid", "id", "name", "key",
)  # fmt: skip
LABEL = (
    "labels", "label", "tags", "classes", "categories", "tag", "class", "category", "findinglabels",
    "labelnames", "labelname", "classnames", "classname", "categoryname", "attributes", "targets",
    "target", "annotations",
)  # fmt: skip
SPLIT = ("split", "subset", "fold", "set", "partition")
SPLIT_WORDS = {name: name for name in SPLITS} | {
    "training": "train", "validation": "val", "testing": "test",
}  # fmt: skip


@dataclass(frozen=True)
class Roles:
    """The columns of a table by number, and what to say about them.

    `others` are the columns that have no role: classes, or further columns that are kept.
    """

    image: int
    label: int | None
    split: int | None
    group: int | None
    verified: int | None
    others: tuple[int, ...]
    notes: list[str] = field(default_factory=list)

    @property
    def of_image(self) -> tuple[int, ...]:
        """The columns that say the same in all rows of an image."""
        return tuple(k for k in (self.image, self.split, self.group) if k is not None)


def plain(name: str) -> str:
    """Write the name of a column without capitals, blanks and punctuation.

    >>> plain("File_Name"), plain("Image Index")
    ('filename', 'imageindex')
    """
    return re.sub(r"[\W_]+", "", name).lower()


def find_roles(sheet: Sheet, options: ReadOptions) -> Roles:
    """Find the columns that have a role; refuses a table without a column of images."""
    header, notes = sheet.header, []
    image = _named(sheet, options.image_column, "--image-column")
    if image is None:
        image, others = _guess(sheet, IMAGE, set())
        if image is None:
            raise InputError(
                f"{sheet.file} row 1: no column names the images in {_shown(header)}; name one of "
                "them image, or pass --image-column"
            )
        notes += _choice("image", header, image, others)
    taken = {image}
    split = _split(sheet, taken)
    taken |= set() if split is None else {split}
    group = _guess(sheet, ("group", "groupid"), taken)[0]
    verified = _guess(sheet, ("verified",), taken)[0]
    taken |= {each for each in (group, verified) if each is not None}
    label, others = _label(sheet, options, taken)
    notes += _choice("label", header, label, others)
    taken |= set() if label is None else {label}
    rest = tuple(k for k in range(len(header)) if k not in taken)
    return Roles(image, label, split, group, verified, rest, notes)


def _label(sheet: Sheet, options: ReadOptions, taken: set[int]) -> tuple[int | None, list[int]]:
    if options.label_column == EACH:
        return None, []
    found = _named(sheet, options.label_column, "--label-column")
    if found is not None and found in taken:
        raise InputError(
            f"{sheet.file}: --label-column {options.label_column} has another use; name another"
        )
    return (found, []) if found is not None else _guess(sheet, LABEL, taken)


def _named(sheet: Sheet, name: str | None, flag: str) -> int | None:
    """Find the column that a flag names."""
    if name is None:
        return None
    if sheet.header.count(name) != 1:
        raise InputError(
            f"{sheet.file} row 1: {flag} {name!r} is not one of its columns; "
            f"{suggest(name, sheet.header)}"
        )
    return sheet.header.index(name)


def _guess(sheet: Sheet, names: Sequence[str], taken: set[int]) -> tuple[int | None, list[int]]:
    """Find the column with the surest of some names, and the others with one of them."""
    known = [(names.index(word), k) for k, word in _words(sheet, taken) if word in names]
    if not known:
        return None, []
    (best, column), *others = sorted(known)
    if any(rank == best for rank, _ in others):
        name = sheet.header[column]
        shown = _shown(sheet.header)
        raise InputError(
            f"{sheet.file} row 1: one column {name!r} expected in {shown}; rename the others"
        )
    return column, [k for _, k in others]


def _words(sheet: Sheet, taken: set[int]) -> list[tuple[int, str]]:
    return [(k, plain(name)) for k, name in enumerate(sheet.header) if k not in taken]


def _split(sheet: Sheet, taken: set[int]) -> int | None:
    """Find the column of splits: `split`, or one of a similar name that holds names of splits."""
    column, _ = _guess(sheet, SPLIT, taken)
    if column is None or plain(sheet.header[column]) == "split":
        return column
    cells = {cells[column].strip() for cells in sheet.records() if len(cells) > column}
    return column if {word.lower() for word in cells - {""}} <= set(SPLIT_WORDS) else None


def _choice(what: str, header: list[str], column: int | None, others: list[int]) -> list[str]:
    if column is None or (not others and plain(header[column]) in (what, f"{what}s")):
        return []
    rest = f", not {listing([repr(header[k]) for k in others])}" if others else ""
    flag = f"--{what}-column names another"
    return [f"column {header[column]!r} has the {what}s{rest}, by its name ({flag})"]


def _shown(header: list[str]) -> str:
    return listing([repr(name) for name in header]) or "nothing"
