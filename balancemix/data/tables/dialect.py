"""How a text table is written: its encoding, what separates its cells, where its header is."""

import codecs
import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TextIO

from balancemix.errors import InputError

DELIMITERS = (",", ";", "\t")
MARKS = {  # by which Excel and others say how the text is encoded
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
SAMPLE = 1000  # records by which two possible delimiters are told apart


@dataclass(frozen=True)
class Dialect:
    """How the file is encoded after its mark, and what separates cells.

    `preamble` is Excel's line `sep=;`, with its end, or "".
    """

    encoding: str
    mark: bytes
    delimiter: str = ","
    preamble: str = ""


def encoding_of(file: Path) -> Dialect:
    """Tell the encoding by the mark at the beginning; without one it is UTF-8."""
    with file.open("rb") as raw:
        head = raw.read(4)
    for mark, encoding in MARKS.items():
        if head.startswith(mark):
            return Dialect(encoding, mark)
    return Dialect("utf-8", b"")


@contextmanager
def opened(file: Path, dialect: Dialect) -> Iterator[tuple[TextIO, BinaryIO]]:
    """Open a file as text behind its mark, with line ends as they are, and as bytes."""
    with file.open("rb") as raw:
        raw.seek(len(dialect.mark))
        text = io.TextIOWrapper(raw, encoding=dialect.encoding, newline="")
        try:
            yield text, raw
        except UnicodeDecodeError as error:
            place = _bad_byte(file, dialect)
            name = dialect.encoding[:6].upper().rstrip("-")
            raise InputError(f"{file}: not {name} (byte {place}); save it as UTF-8") from error
        finally:
            text.detach()


def _bad_byte(file: Path, dialect: Dialect) -> int:
    """Find the first byte that cannot be decoded."""
    content = file.read_bytes()
    try:
        content[len(dialect.mark) :].decode(dialect.encoding)
    except UnicodeDecodeError as error:
        return len(dialect.mark) + error.start
    return 0


def sniff(file: Path) -> Dialect:
    """Find out the encoding, the preamble and the delimiter of a file."""
    plain = encoding_of(file)
    with opened(file, plain) as (text, _):
        head = list(islice(text, SAMPLE))
    declared = re.fullmatch(r"sep=([,;\t|:])(\r\n|\r|\n)", head[0]) if head else None
    if declared:
        return Dialect(plain.encoding, plain.mark, declared[1], head[0])
    return Dialect(plain.encoding, plain.mark, _delimiter(file, head))


def _delimiter(file: Path, head: list[str]) -> str:
    """Choose what separates the cells of the header; if two could, the records decide."""
    order = DELIMITERS if file.suffix.lower() != ".tsv" else ("\t", ",", ";")
    tables = {each: _records(head, each) for each in order}
    several = [each for each in order if len(next(iter(tables[each]), [])) > 1]
    if len(several) < 2:
        return several[0] if several else order[0]
    even = [each for each in several if _is_even(tables[each])]
    if len(even) != 1:
        names = " or ".join({"\t": "tabs"}.get(each, each) for each in several)
        raise InputError(
            f"{file} row 1: its cells may be separated by {names}; put a line such as "
            f"sep={several[0]} before it to say which"
        )
    return even[0]


def _records(lines: list[str], delimiter: str) -> list[list[str]]:
    """Take lines apart, up to the first that is wrong, or cut off."""
    records = []
    try:
        for cells in csv.reader(lines, delimiter=delimiter, strict=True):
            records.append(cells)
    except csv.Error:
        pass
    return records


def _is_even(records: list[list[str]]) -> bool:
    return len({len(cells) for cells in records if any(map(str.strip, cells))}) == 1
