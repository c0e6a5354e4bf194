"""Valid tables in every layout, delimiter and encoding."""

import json

from tests.torture.draw import Draw
from tests.torture.seeds import IMAGES, Files, labels_of

CLASSES = ["cat", "dog", "cup", "tree house", "owl"]
WORDS = [("1", "0"), ("1.0", "0.0"), ("true", "false"), ("Yes", "No"), ("TRUE", "FALSE")]
Records = list[list[str]]


def table(draw: Draw) -> Files:
    """Lay out some labels; the first row of joined ones has all, the others some."""
    names, classes, labels = drawn(draw)
    layout = draw.pick([joined, as_list, columns, lines])
    return {"labels.csv": write(layout(draw, names, classes, labels), draw)}


def drawn(draw: Draw) -> tuple[list[str], list[str], list[list[str]]]:
    """Draw images, classes and the labels of each image."""
    names = draw.shuffled(IMAGES)[: 3 + draw.below(4)]
    classes = draw.shuffled(CLASSES)[: 2 + draw.below(3)]
    labels = labels_of(draw, len(names), classes)
    labels[0], labels[1] = list(classes), classes[:1]
    return names, classes, labels


def law(draw: Draw) -> tuple[Files, Files, dict[str, str]]:
    """Write the same labels in two layouts that say the same: joined, as a list, a label a row."""
    names, classes, labels = drawn(draw)
    one, two = draw.shuffled([joined, as_list, lines])[:2]
    files = [{"labels.csv": write(each(draw, names, classes, labels), draw)} for each in (one, two)]
    return files[0], files[1], {name: name for name in classes}


def joined(draw: Draw, names: list[str], classes: list[str], labels: list[list[str]]) -> Records:
    """Join labels by one of the marks."""
    mark = draw.pick(["|", ";", ",", " | ", ", "])
    rows = [[name, mark.join(row)] for name, row in zip(names, labels, strict=True)]
    return [[draw.pick(["image", "filename", "id"]), draw.pick(["labels", "tags"])], *rows]


def as_list(draw: Draw, names: list[str], classes: list[str], labels: list[list[str]]) -> Records:
    """Write labels as JSON lists."""
    rows = [[name, json.dumps(row)] for name, row in zip(names, labels, strict=True)]
    return [["path", "classes"], *rows]


def columns(draw: Draw, names: list[str], classes: list[str], labels: list[list[str]]) -> Records:
    """Write a column a class, some cells blank, and a column that is no class."""
    yes, no = draw.pick(WORDS)
    rows = []
    for name, row in zip(names, labels, strict=True):
        cells = [yes if each in row else "" if draw.chance(0.1) else no for each in classes]
        rows.append([name, *cells, "some text"])
    return [["image", *classes, "note"], *rows]


def lines(draw: Draw, names: list[str], classes: list[str], labels: list[list[str]]) -> Records:
    """Write a label a row."""
    rows = [[name, each] for name, row in zip(names, labels, strict=True) for each in row or [""]]
    return [["file", "class"], *rows]


def write(records: Records, draw: Draw) -> bytes:
    """Write records with one of the delimiters, line ends and encodings."""
    mark, end = draw.pick([",", ";", "\t"]), draw.pick(["\n", "\r\n", "\r"])
    text = end.join(mark.join(cell(each, mark) for each in record) for record in records) + end
    encoding = draw.pick(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16"])
    return text.encode(encoding)


def cell(text: str, mark: str) -> str:
    """Quote a cell where it needs it."""
    quoted = '"' + text.replace('"', '""') + '"'
    return quoted if set(text) & {mark, '"', "\r", "\n"} else text
