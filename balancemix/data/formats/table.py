"""A table of images and labels, in a folder or by itself; see docs/data.md for its layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from balancemix.data import images
from balancemix.data.source import RESTORE, ReadOptions, Source, is_object, leave_out, read_text
from balancemix.data.splits import check_classes
from balancemix.data.tables import SHEETS, Sheet, open_sheet
from balancemix.data.tables.frame import Frame, FrameSheet
from balancemix.data.tables.layout import Change, Labels, Layout
from balancemix.data.tables.new import WRITERS, write_new
from balancemix.data.tables.openimages import Looked
from balancemix.data.tables.reading import HEADER, read_labels
from balancemix.data.tables.rows import path_of
from balancemix.data.tables.verified import VerifiedColumn
from balancemix.data.tables.workbook import WorkbookSheet
from balancemix.errors import InputError, listing
from balancemix.progress import progress

ENDING = ".csv"  # of a new table
ENDINGS = tuple(WRITERS)  # of what `write` writes
SAVE = "save it as UTF-8"


@dataclass(frozen=True)
class Table:
    """Where labels were read from: the sheet, its layout, and the record of each row.

    `folder` is that of the images.
    """

    sheet: Sheet
    layout: Layout
    records: Sequence[int]
    folder: Path
    verified: Tensor | None = None  # as the file says
    verified_column: VerifiedColumn | None = None

    @property
    def ending(self) -> str:
        """The ending of the file's name."""
        return self.sheet.file.suffix.lower()


def recognise(path: Path) -> str | None:
    """Say whether a path is a table, or a folder that holds one.

    >>> recognise(Path("nowhere")), recognise(Path("labels.tsv"))
    (None, 'it ends in .tsv')
    """
    file = find_table(path)
    if file is not None:
        return f"it holds {file.name}"
    ending = path.suffix.lower()
    if ending not in SHEETS or path.is_dir() or (ending == ".json" and is_object(path)):
        return None
    return f"it ends in {ending}"


def find_table(folder: Path) -> Path | None:
    """Find the table of a folder: `labels` with the ending of one; labels.txt is often a list."""
    files = (folder / f"labels{ending}" for ending in SHEETS if ending != ".txt")
    return next((file for file in files if file.is_file()), None)


def read(path: Path, options: ReadOptions) -> Source:
    """Read images and labels, and what else a table says of them.

    Classes are the lines of `classes.txt`, or else all labels in sorted order, or the columns.
    Images that cannot be read are refused by name; `skip_bad` leaves them out.
    """
    file = find_table(path) if path.is_dir() else path
    if file is None:
        raise InputError(
            f"{path / 'labels.csv'}: not found; a folder of images needs one, {HEADER}"
        )
    list_file = file.with_name("classes.txt")
    listed = read_classes(list_file) if list_file.is_file() else None
    sheet = open_sheet(file, options.sheet)
    labels = read_labels(sheet, options, listed, list_file, progress)
    return _source(path, sheet, labels, options, _truth(file, labels, options))


def read_frame(frame: Frame, options: ReadOptions) -> Source:
    """Read a pandas frame as if it were a table in the folder of the images."""
    sheet = FrameSheet(frame)
    return _source(sheet.file, sheet, read_labels(sheet, options, None, None), options)


def _source(
    path: Path, sheet: Sheet, labels: Labels, options: ReadOptions, truth: Tensor | None = None
) -> Source:
    """Make a source of what a table says, and check its images."""
    source = Source(
        path=path,
        classes=labels.classes,
        names=labels.names,
        given=labels.given,
        split=labels.split,
        groups=labels.groups,
        verified=labels.verified,
        truth=truth,
        recognised=[
            f"{sheet.file} is a table of labels (--format)",
            *_chosen(sheet),
            *labels.notes,
        ],
    )
    folder = options.images or sheet.file.parent
    if options.images is not None and not folder.is_dir():
        raise InputError(f"--images {folder}: is not a folder; name that of the images")
    column = VerifiedColumn.of(labels)
    origin = Table(sheet, labels.layout, labels.records, folder, labels.verified, column)
    if options.labels_only:
        return replace(source, origin=origin)
    return _with_images(source, origin, options.skip_bad)


def _chosen(sheet: Sheet) -> list[str]:
    """Say which sheet of a workbook is read, if it has others."""
    if not isinstance(sheet, WorkbookSheet) or not sheet.others:
        return []
    others = listing([repr(title) for title in sheet.others])
    return [f"its sheet {sheet.title!r} is read, not {others} (--sheet)"]


def read_classes(file: Path) -> list[str]:
    """Read the names of classes.txt, one a line."""
    classes = [line.strip() for line in read_text(file, "", SAVE).split("\n") if line.strip()]
    check_classes(str(file), classes)
    return classes


def _truth(file: Path, labels: Labels, options: ReadOptions) -> Tensor | None:
    """Read the true labels beside a table, for scoring; unknown where they say nothing."""
    names = [f"{file.stem}.truth{file.suffix}"]
    names += [f"truth{ending}" for ending in SHEETS] if file.stem == "labels" else []
    found = next((file.with_name(n) for n in names if file.with_name(n).is_file()), None)
    if found is None:
        return None
    plain = replace(options, image_column=None, label_column=None)
    true = read_labels(open_sheet(found), plain, labels.classes, file)
    place = {path_of(name): i for i, name in enumerate(true.names)}
    index = torch.tensor([place.get(path_of(name), -1) for name in labels.names])
    truth = true.given[index.clamp(min=0)]
    truth[index < 0] = -1
    return truth


def _with_images(source: Source, origin: Table, skip_bad: bool) -> Source:
    """Check every image before training starts, so that one run shows all that is wrong."""
    paths = images.find_all(origin.folder, source.names, str(origin.sheet.file))
    _check_once(origin, source.names, paths)
    problems = images.problems(paths)
    bad = [
        f"{name!r} (row {record + 2}, {problem})"
        for name, record, problem in zip(source.names, origin.records, problems, strict=True)
        if problem is not None
    ]
    # A newcomer's first mistake: the images are in another folder.
    elsewhere = all(problem == "missing" for problem in problems)
    remedy = "name their folder with --images" if elsewhere else RESTORE
    leave_out(f"{origin.sheet.file}: %s cannot be read", bad, len(source), skip_bad, remedy)
    source = replace(source, images=paths)
    if bad:
        kept = [i for i, problem in enumerate(problems) if problem is None]
        source = source.subset(kept)
        verified = None if origin.verified is None else origin.verified[kept]
        origin = replace(origin, records=[origin.records[i] for i in kept], verified=verified)
    return replace(source, origin=origin)


def _check_once(origin: Table, names: Sequence[str], paths: Sequence[Path]) -> None:
    """Refuse an image that is named once with its ending and once without."""
    first: dict[Path, int] = {}
    for i, path in enumerate(paths):
        j = first.setdefault(path, i)
        if j != i:
            rows = " and ".join(f"{names[k]!r} (row {origin.records[k] + 2})" for k in (j, i))
            raise InputError(f"{origin.sheet.file}: {rows} are one image; leave one of them out")


def write(source: Source, given: Tensor, out: Path) -> list[str]:
    """Write the table with other labels, and change nothing else.

    Data of another format, or for a file with another ending, becomes a new table.
    """
    origin = source.origin
    if isinstance(origin, Table) and origin.ending in (out.suffix.lower(), ""):  # a frame has none
        change = Change(
            source.names, source.classes, source.given, given, origin.records, source.verified
        )
        edits = origin.layout.edits(origin.sheet, change)
        column, before, after = origin.verified_column, origin.verified, source.verified
        if column is not None and before is not None and after is not None:
            edits = column.added_to(edits, origin.sheet, change, before, after)
        origin.sheet.write(out, edits)
        return _unsaid(source, origin, out)
    write_new(source, given, out)
    return []


def _unsaid(source: Source, origin: Table, out: Path) -> list[str]:
    """Say if a table has no place for what is verified."""
    if source.verified is None or not bool(source.verified.any()) or origin.verified_column:
        return []
    if isinstance(origin.layout, Looked) and origin.layout.source is not None:
        return []
    return [f"{out}: does not say which labels are verified, as it has no column of that name"]
