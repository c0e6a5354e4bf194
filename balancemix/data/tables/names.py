"""Classes by the text of their labels: as they are, or by their number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from balancemix.data.tables.layout import Asked, classes_of
from balancemix.errors import InputError


@dataclass(frozen=True)
class Names:
    """The classes; `column` finds one by the text of a label, `texts` is the text of each."""

    classes: list[str]
    column: dict[str, int]
    texts: list[str]
    notes: list[str]


def name_classes(asked: Asked, labels: Iterable[str]) -> Names:
    """Name the classes of all labels of a file; whole numbers count the lines of classes.txt."""
    found = set(labels)
    listed = asked.listed
    if not found or not all(label.isascii() and label.isdigit() for label in found):
        return _named(classes_of(asked, found))
    if listed is not None and found <= set(listed):
        return _named(listed)
    if listed is None:
        note = "labels are numbers; a classes.txt, a line for each class from 0 on, names them"
        return replace(_named(classes_of(asked, found)), notes=[note])
    numbers = sorted(found, key=int)
    last = numbers[-1]
    if int(last) >= len(listed):
        raise InputError(
            f"{asked.sheet.file}: label {last!r} is neither in classes.txt nor the number of one "
            f"of its {len(listed)} classes, which are counted from 0"
        )
    column = {text: int(text) for text in numbers}
    texts = [str(k) for k in range(len(listed))]
    note = "labels are numbers of the classes in classes.txt, from 0 on"
    return Names(listed, column, texts, [note])


def _named(classes: list[str]) -> Names:
    return Names(classes, {name: k for k, name in enumerate(classes)}, classes, [])
