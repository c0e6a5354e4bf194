"""Text tables: every dialect is read, and written back byte for byte but for what is edited."""

import codecs
import csv
import io
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balancemix.data.tables import Edits, TextSheet, open_sheet
from balancemix.errors import InputError

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
ODD = st.text(st.sampled_from(list(' ,;\t"|a\r\nb')), max_size=4)
TABLES = st.lists(st.lists(WORDS | ODD, min_size=3, max_size=3), min_size=1, max_size=5)
ENCODINGS = {
    "utf-8": b"",
    "utf-8-sig": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}


def sheet_of(folder: Path, content: bytes, name: str = "labels.csv") -> TextSheet:
    (folder / name).write_bytes(content)
    return TextSheet(folder / name)


def written(sheet: TextSheet, folder: Path, edits: Edits) -> bytes:
    sheet.write(folder / "out.csv", edits)
    return (folder / "out.csv").read_bytes()


@st.composite
def files(draw) -> tuple[list[list[str]], bytes]:
    """Draw cells, and a file that holds them."""
    delimiter, end = draw(st.sampled_from(",;\t")), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    table = [["image", "labels", "note"], *draw(TABLES)]
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    lines = [io.StringIO(newline="") for _ in table]
    for record, line in zip(table, lines, strict=True):
        csv.writer(line, delimiter=delimiter, quoting=quoting).writerow(record)
    text = end.join(line.getvalue().removesuffix("\r\n") for line in lines)
    text = draw(st.sampled_from(["", f"sep={delimiter}{end}"])) + text
    text += draw(st.sampled_from(["", end, end + end]))
    encoding = draw(st.sampled_from(sorted(ENCODINGS)))
    return table, ENCODINGS[encoding] + text.encode(encoding.removesuffix("-sig"))


@given(files())
def test_any_dialect_is_read_and_written_back(drawn):
    table, content = drawn
    with tempfile.TemporaryDirectory() as place:
        sheet = sheet_of(Path(place), content)
        assert sheet.header == table[0]
        records = [record for record in sheet.records() if record]
        assert records == table[1:]
        assert written(sheet, Path(place), Edits()) == content


@given(files(), st.integers(0, 4), st.integers(0, 2), WORDS | ODD)
def test_an_edit_changes_one_cell(drawn, record, column, text):
    table, content = drawn
    record %= len(table) - 1
    with tempfile.TemporaryDirectory() as place:
        sheet = sheet_of(Path(place), content)
        after = written(sheet, Path(place), Edits(cells={(record, column): text}))
        expected = [list(cells) for cells in table[1:]]
        expected[record][column] = text
        again = TextSheet(Path(place) / "out.csv")
        assert [cells for cells in again.records() if cells] == expected
        before = list(sheet.texts())
        others = [each for i, each in enumerate(before) if i != record]
        assert [each for i, each in enumerate(again.texts()) if i != record] == others
        if text == table[record + 1][column]:
            assert len(after) <= len(content) + 4  # two quotes at most


@pytest.mark.parametrize(
    ("before", "edits", "after"),
    [
        ("a,b\n1,2\n", {"cells": {(0, 1): "x"}}, "a,b\n1,x\n"),
        ('a,b\n1,"2"\n', {"cells": {(0, 1): "x"}}, 'a,b\n1,"x"\n'),
        ('a,b\n1,\n2,"x"', {"cells": {(0, 1): "y"}}, 'a,b\n1,"y"\n2,"x"'),
        ("a,b\n1,\n2,x", {"cells": {(0, 1): "y,z"}}, 'a,b\n1,"y,z"\n2,x'),
        ("a;b\n1;\n2;x", {"cells": {(0, 1): "y,z"}}, "a;b\n1;y,z\n2;x"),
        ("a,b\n1,2\n3,4\n", {"dropped": {0}}, "a,b\n3,4\n"),
        ("a,b\n1,2\r\n3,4", {"added": {0: [["5", "6"]]}}, "a,b\n1,2\r\n5,6\r\n3,4"),
        ("a,b\n1,2\n3,4", {"added": {1: [["5", "6"], ["7", ""]]}}, "a,b\n1,2\n3,4\n5,6\n7,"),
        ('a,b\n"1",2\n', {"added": {0: [["5", "6"]]}}, 'a,b\n"1",2\n"5",6\n'),
        ('a,b\n1,"x\ny",3\n', {"cells": {(0, 2): "4"}}, 'a,b\n1,"x\ny",4\n'),
    ],
)
def test_what_an_edit_writes(tmp_path, before, edits, after):
    sheet = sheet_of(tmp_path, before.encode())
    assert written(sheet, tmp_path, Edits(**edits)) == after.encode()


@pytest.mark.parametrize(
    ("content", "delimiter", "header"),
    [
        ("image,labels\na,b;c\n", ",", ["image", "labels"]),
        ("image;labels\na;b,c\n", ";", ["image", "labels"]),
        ("image\tlabels; all\na\tb;c\nd\tb\n", "\t", ["image", "labels; all"]),
        ('"image";"labels, all"\n"a";"b"\n', ";", ["image", "labels, all"]),
        ("sep=;\r\nimage,x;labels\r\na;b\r\n", ";", ["image,x", "labels"]),
        ("image\na\n", ",", ["image"]),
    ],
)
def test_the_delimiter_is_that_of_the_header(tmp_path, content, delimiter, header):
    sheet = sheet_of(tmp_path, content.encode())
    assert (sheet.dialect.delimiter, sheet.header) == (delimiter, header)


def test_a_header_with_two_delimiters_is_refused_unless_the_records_decide(tmp_path):
    with pytest.raises(InputError, match=r"row 1: its cells may be separated by , or ;; put a lin"):
        sheet_of(tmp_path, b"image,x;labels\na,b;c\n")


def test_a_file_that_has_changed_is_not_written(tmp_path):
    sheet = sheet_of(tmp_path, b"image,labels\na,b\n")
    os.utime(sheet.file, (1, 1))
    with pytest.raises(InputError, match=r"labels\.csv: has changed since it was read"):
        sheet.write(tmp_path / "out.csv", Edits())
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"image,labels\na,\xe9\n", "labels.csv: not UTF-8 (byte 15); save it as UTF-8"),
        (codecs.BOM_UTF16_LE + b"a\0,\0b\0\n\0\0\xd8", "labels.csv: not UTF-16 (byte 10)"),
        (b'image,labels\na,"b\n', "labels.csv row 2: not CSV (unexpected end of data)"),
        (b'image,labels\na,"b"c\n', "labels.csv row 2: not CSV (',' expected after '\"')"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(tmp_path, content, message):
    with pytest.raises(InputError) as caught:
        list(sheet_of(tmp_path, content).records())
    assert message in str(caught.value)


def test_a_missing_file_and_an_unknown_ending(tmp_path):
    with pytest.raises(InputError, match=r"x\.csv: not found"):
        open_sheet(tmp_path / "x.csv")
    with pytest.raises(InputError, match=r"x\.doc: not a table"):
        open_sheet(tmp_path / "x.doc")


def test_progress_reaches_the_size_of_the_file(tmp_path):
    from contextlib import contextmanager

    from balancemix.progress import Silent

    done: list[int] = []

    class Count(Silent):
        def advance(self, steps: int = 1) -> None:
            done.append(steps)

    @contextmanager
    def show(what, total):
        assert what == "read labels.csv"
        yield Count()
        assert sum(done) == total

    sheet = sheet_of(tmp_path, b"image,labels\n" + b"a,b\n" * 5000)
    assert len(list(sheet.records(show))) == 5000
    assert len(done) > 1
