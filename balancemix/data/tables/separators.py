"""What joins the labels of a cell: a mark, a list, or nothing, as all cells of a file show."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

LIST = "list"  # ["cat", "dog"] as in JSON, or ['cat', 'dog'] as in Python
WHOLE = "whole"  # a cell is one label
MARKS = ("|", ";", ",")
SPACE = " "  # joins labels only if classes.txt or --separator says so: names may have two words
DEFAULT = "|"  # where no cell has several labels
_ITEM = r"'(?:[^'\\]|\\['\\])*'|\"(?:[^\"\\]|\\[\"\\])*\"|\d+"
_LIST = re.compile(rf"\[\s*(?:(?:{_ITEM})\s*(?:,\s*(?:{_ITEM})\s*)*)?\]")


class UndecidedError(Exception):
    """A text that could be one label or several, and what --separator is if several, and if one."""


class Separator(NamedTuple):
    """What joins labels, and why it is thought so."""

    mark: str
    why: str


def labels_of(cell: str, mark: str) -> list[str]:
    """Take a cell apart; blanks around a label are not part of it.

    >>> labels_of("cat | dog|", "|"), labels_of("['cat', 'dog']", "list"), labels_of("a|b", "whole")
    (['cat', 'dog'], ['cat', 'dog'], ['a|b'])
    """
    if mark == LIST:
        return items_of(cell) or []
    parts = [cell] if mark == WHOLE else cell.split(mark)
    return [part.strip() for part in parts if part.strip()]


def items_of(cell: str) -> list[str] | None:
    """Read a list of names or whole numbers, or return None if a cell is none.

    >>> items_of('["cat", "dog"]'), items_of("[3, 5]"), items_of("[cat]")
    (['cat', 'dog'], ['3', '5'], None)
    """
    cell = cell.strip()
    if not (cell.startswith("[") and cell.endswith("]")):
        return None
    try:
        items = json.loads(cell)
    except (ValueError, RecursionError):
        items = None
    if items is not None:
        fitting = all(isinstance(i, str) or (type(i) is int and i >= 0) for i in items)
        return [str(item).strip() for item in items if str(item).strip()] if fitting else None
    if not _LIST.fullmatch(cell):
        return None
    found = re.findall(_ITEM, cell)
    texts = (re.sub(r"\\(.)", r"\1", item[1:-1]) if item[0] in "'\"" else item for item in found)
    return [text.strip() for text in texts if text.strip()]


def decide(cells: Collection[str], listed: Collection[str] | None) -> Separator:
    """Decide by all different cells what joins labels; `listed` are the classes, if they are known.

    A list of classes decides. Otherwise `|` joins wherever it is. Another mark joins if a part of a
    cell with it is also in another cell, alone or in another combination. Raises UndecidedError
    with a cell that could be one label or several.

    >>> decide({"dog,cat", "cat"}, None).mark, decide({"a;b", "b;c, d"}, None).mark
    (',', ';')
    """
    filled = [cell.strip() for cell in cells if cell.strip()]
    if listed is not None:
        fitting = _by_classes(filled, set(listed))
        if fitting is not None:
            return fitting
    if filled and all(items_of(cell) is not None for cell in filled):
        return Separator(LIST, "each cell is a list")
    there = [mark for mark in MARKS if any(mark in cell for cell in filled)]
    if not there:
        return Separator(DEFAULT, "no cell has several labels")
    if len(there) == 1 and all(_are_numbers(cell, there[0]) for cell in filled):
        return Separator(there[0], "each cell has numbers")
    if there[0] == "|":
        chosen, why = "|", "it is the usual mark"
    else:
        witnesses = ((mark, _witness(filled, mark)) for mark in there)
        chosen, why = next(((mark, text) for mark, text in witnesses if text), ("", ""))
    if not chosen:
        text = next(cell for cell in sorted(filled) if there[0] in cell)
        raise UndecidedError(text, there[0], WHOLE)
    _check_inner(filled, chosen, [mark for mark in there if mark != chosen])
    return Separator(chosen, why)


def several_words(cells: Collection[str]) -> str:
    """Find a cell of several words that looks like several labels, or return "".

    That is so if most cells of several words consist of words that other cells have, too.

    >>> several_words({"dry road", "dry", "road"}), several_words({"tree house", "tree"})
    ('dry road', '')
    """
    words = {cell: set(cell.split()) for cell in map(str.strip, cells) if cell}
    times = Counter(word for each in words.values() for word in each)
    several = sorted(cell for cell, each in words.items() if len(each) > 1)
    likely = [cell for cell in several if all(times[word] > 1 for word in words[cell])]
    return likely[0] if 2 * len(likely) > len(several) else ""


def _by_classes(cells: list[str], listed: set[str]) -> Separator | None:
    """Find the reading by which each label is one of the classes."""

    def fits(mark: str) -> bool:
        return all((found := labels_of(cell, mark)) and listed.issuperset(found) for cell in cells)

    marks = [mark for mark in MARKS if any(mark in cell for cell in cells)]
    fitting = [mark for mark in (*marks, LIST, WHOLE) if fits(mark)]
    if not fitting and fits(SPACE):
        fitting = [SPACE]
    for mark in fitting[1:]:
        for cell in cells:
            if set(labels_of(cell, fitting[0])) != set(labels_of(cell, mark)):
                raise UndecidedError(cell, fitting[0], mark)
    if not fitting:
        return None
    mark = DEFAULT if fitting[0] == WHOLE else fitting[0]
    return Separator(mark, "so each label is in classes.txt")


def _are_numbers(cell: str, mark: str) -> bool:
    return all(part.isascii() and part.isdigit() for part in labels_of(cell, mark))


def _witness(cells: list[str], mark: str) -> str:
    """Say which part of a cell with a mark is also in another cell, or return ""."""
    times: Counter[str] = Counter()
    for cell in cells:
        times.update(set(labels_of(cell, mark)))
    for cell in sorted(cell for cell in cells if mark in cell):
        parts = set(labels_of(cell, mark))
        again = sorted(part for part in parts if times[part] > 1)
        if len(parts) > 1 and again:
            return f"{again[0]!r} is in {cell!r} and in other cells"
    return ""


def _check_inner(cells: list[str], chosen: str, others: list[str]) -> None:
    """Refuse a label with another mark if each of its parts is a label, too."""
    labels = {label for cell in cells for label in labels_of(cell, chosen)}
    for mark in others:
        for label in sorted(labels):
            parts = labels_of(label, mark)
            if len(parts) > 1 and labels.issuperset(parts):
                raise UndecidedError(label, mark, chosen)
