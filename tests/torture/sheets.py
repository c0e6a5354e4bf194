"""Tables in files that have types, each with a second, literal reader.

A table that is read is also written with one cell changed, and what was written is read by the
literal reader: that cell alone may differ.
"""

import io
import json
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import pyarrow
import pyarrow.parquet

from balancemix.data.tables import Edits, open_sheet
from balancemix.errors import InputError
from tests.torture import seeds
from tests.torture.draw import Draw
from tests.torture.mutate import mutate_bytes, mutate_text, mutate_tree, write_json
from tests.torture.outcome import RefusedError, UnsureError
from tests.torture.seeds import Files

TABLES = "balancemix.data.tables"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
LINK = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
SHEET = "xl/worksheets/sheet1.xml"
Rows = list[dict[str, Any]]


def rows(draw: Draw) -> Rows:
    """Draw the rows of a table; the first has all keys."""
    names = draw.shuffled(seeds.IMAGES)[: 2 + draw.below(4)]
    texts = ["", "a, b", "é <&>", '"', "=1+1", "1", " x "]
    return [
        {"image": name, "cat": draw.below(2), "dog": draw.chance(0.5), "note": draw.pick(texts)}
        | ({"labels": draw.some(["cat", "dog", "ö"])} if draw.chance(0.5) or not i else {})
        for i, name in enumerate(names)
    ]


def damage_json(made: Rows, draw: Draw) -> Files:
    """Damage a list of objects as a tree or as bytes, or not at all."""
    tree = made if draw.chance(0.3) else mutate_tree(made, draw)
    if draw.chance(0.5):
        return {"labels.json": write_json(tree, draw)}
    indent = draw.pick([None, 1, 2, "\t"])
    return {"labels.json": json.dumps(tree, indent=indent).encode("utf-8", "surrogatepass")}


def damage_lines(made: Rows, draw: Draw) -> Files:
    """Damage objects on lines."""
    content = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in made).encode()
    return {"labels.jsonl": mutate_text(content, draw, ",:{}") if draw.chance(0.8) else content}


def damage_parquet(made: Rows, draw: Draw) -> Files:
    """Damage the pages of a Parquet file, which have checksums, or cut it; its footer has none."""
    out = io.BytesIO()
    table = pyarrow.Table.from_pylist(made)
    pyarrow.parquet.write_table(table, out, write_page_checksum=True, compression="none")
    content = out.getvalue()
    if draw.chance(0.2):
        return {"labels.parquet": content[: draw.below(len(content))]}
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    pages = mutate_bytes(content[:footer], draw) if draw.chance(0.8) else content[:footer]
    return {"labels.parquet": pages + content[footer:]}


def damage_xlsx(made: Rows, draw: Draw) -> Files:
    """Damage the XML of a worksheet, or the archive."""
    members = workbook(made, draw)
    if draw.chance(0.6):
        members[SHEET] = mutate_text(members[SHEET], draw, '<>" ')
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    content = out.getvalue()
    return {"labels.xlsx": mutate_bytes(content, draw) if draw.chance(0.3) else content}


def workbook(made: Rows, draw: Draw) -> Files:
    """Write the parts of a workbook, as small as Excel allows."""
    keys = ["image", "cat", "dog", "note"]
    lines = [{key: key for key in keys}, *made]
    written = []
    for i, line in enumerate(lines, start=1):
        cells = (_cell(line[key], f"{'ABCD'[k]}{i}") for k, key in enumerate(keys))
        written.append(f'<row r="{i}">{"".join(cells)}</row>')
    inner = draw.pick(["", "\n"]).join(written)
    sheet = f'<worksheet xmlns="{MAIN}"><sheetData>{inner}</sheetData></worksheet>'
    kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/>'
        f'<Override PartName="/{SHEET}" ContentType="{kinds}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="a" '
        f'Type="{LINK}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{LINK}"><sheets><sheet name="x" '
        'sheetId="1" r:id="b"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="b" Type="{LINK}/worksheet" Target="worksheets/sheet1.xml"/>'
        "</Relationships>",
        SHEET: sheet,
    }
    return {name: text.encode() for name, text in parts.items()}


def _cell(value: Any, name: str) -> str:
    if isinstance(value, bool):
        return f'<c r="{name}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int):
        return f'<c r="{name}"><v>{value}</v></c>'
    inner = f'<is><t xml:space="preserve">{escape(value)}</t></is>'
    return f'<c r="{name}" t="inlineStr">{inner}</c>' if value else f'<c r="{name}"/>'


def read(ending: str) -> Any:
    """Make a reader that reads a table, writes it with one cell changed, and reads that."""

    def reading(folder: Path) -> dict[str, Any]:
        file, out = folder / f"labels{ending}", folder / "again" / f"out{ending}"
        sheet = open_sheet(file)
        records = [row for row in sheet.records() if any(row)]
        answer = {"header": sheet.header, "records": records}
        first = next(iter(sheet.records()), [])
        place = next(((0, k) for k, text in enumerate(first) if text in ("0", "1")), None)
        out.parent.mkdir(exist_ok=True)
        try:
            expected = literal(ending, file)
        except (RefusedError, UnsureError):
            return answer
        try:
            edits = Edits({} if place is None else {place: str(1 - int(first[place[1]]))})
            sheet.write(out, edits)
        except InputError:
            return answer
        expected["records"] = [row for row in edits.applied(expected["records"]) if any(row)]
        assert literal(ending, out) == expected, "another cell differs, or the wrong way"
        return answer

    return reading


def literal(ending: str, file: Path) -> dict[str, Any]:
    """Read a table literally."""
    found = {".xlsx": _xlsx, ".parquet": _parquet}.get(ending, _objects)(file)
    records = [row for row in found[1] if any(row)]
    return {"header": found[0], "records": records}


def literal_in(ending: str, folder: Path) -> dict[str, Any]:
    """Read the table of a folder literally."""
    return literal(ending, folder / f"labels{ending}")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        raise UnsureError("a number with a fraction")
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _objects(file: Path) -> tuple[list[str], list[list[str]]]:
    try:
        text = file.read_bytes().decode()
        if "\ufeff" in text or "\r" in text:
            raise UnsureError("a mark at the beginning, or other line ends")
        lines = [line for line in text.split("\n") if line.strip(" \t\r")]
        found = json.loads(text) if file.suffix == ".json" else [json.loads(x) for x in lines]
    except (ValueError, RecursionError):
        raise RefusedError("not JSON") from None
    if not isinstance(found, list) or not found or any(not isinstance(x, dict) for x in found):
        raise RefusedError("not a list of objects")
    _check_keys(text, found)
    header = list(dict.fromkeys(key for each in found for key in each))
    return header, [[_text(each.get(key)) for key in header] for each in found]


def _check_keys(text: str, found: Any) -> None:
    """Refuse a key that is given twice: then fewer keys are read than are written."""

    def count(tree: Any) -> int:
        if isinstance(tree, dict):
            return len(tree) + sum(map(count, tree.values()))
        return sum(map(count, tree)) if isinstance(tree, list) else 0

    total = 0

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal total
        total += len(items)
        return dict(items)

    decoder = json.JSONDecoder(object_pairs_hook=pairs)
    lines = ",".join(line for line in text.split("\n") if line.strip())
    decoder.decode(text if text.lstrip().startswith("[") else f"[{lines}]")
    if total != count(found):
        raise RefusedError("a key twice")


def _parquet(file: Path) -> tuple[list[str], list[list[str]]]:
    try:
        table = pyarrow.parquet.read_table(file, page_checksum_verification=True)
        lines = table.to_pylist()
    except Exception:
        raise RefusedError("not Parquet") from None
    if len(set(table.column_names)) < len(table.column_names):
        raise UnsureError("columns of one name")
    return table.column_names, [[_text(line[key]) for key in table.column_names] for line in lines]


def _xlsx(file: Path) -> tuple[list[str], list[list[str]]]:
    """Read cells of a worksheet that is as simple as `workbook` writes it."""
    try:
        with zipfile.ZipFile(file) as archive:
            tree = ElementTree.fromstring(archive.read(SHEET))
    except Exception:
        raise UnsureError("damaged") from None
    found: dict[int, dict[int, str]] = {}
    for row in tree.findall(f"{{{MAIN}}}sheetData/{{{MAIN}}}row"):
        number = row.get("r", "")
        if not number.isdigit() or not number.isascii() or int(number) != max(found, default=0) + 1:
            raise UnsureError("rows out of order")
        cells = [_simple(cell, number) for cell in row]
        if any(a >= b for (a, _), (b, _) in pairwise(cells)):
            raise RefusedError("cells out of order")
        found[int(number)] = dict(cells)
    lines = [found[i] for i in sorted(found)]
    if not lines or sorted(lines[0]) != [0, 1, 2, 3] or any(max(x, default=0) > 3 for x in lines):
        raise UnsureError("another header, or wider rows")
    if any(not lines[0][k] for k in range(4)):
        raise UnsureError("a blank name of a column")
    records = [[line.get(k, "") for k in range(4)] for line in lines]
    return records[0], records[1:]


def _simple(cell: ElementTree.Element, row: str) -> tuple[int, str]:
    name, kind = cell.get("r", ""), cell.get("t", "n")
    tags = [child.tag for child in cell.iter()]
    usual = {"b": ["c", "v"], "n": ["c", "v"], "inlineStr": ["c", "is", "t"]}
    wanted = ["c"] if kind == "n" and len(tags) == 1 else usual.get(kind)
    if wanted is None or tags != [f"{{{MAIN}}}{tag}" for tag in wanted]:
        raise UnsureError("another kind of cell")
    if name[:1] not in tuple("ABCD") or name[1:] != row or cell.get("s") not in (None, "0"):
        raise UnsureError("another place, or a format")
    text = list(cell.iter())[-1].text or ""
    if "".join(cell.itertext()) != text or (cell.tail or "").strip():
        raise UnsureError("text between elements")
    if kind == "b" and text not in ("0", "1"):
        raise UnsureError("another truth")
    if kind == "n" and text and not (text.isascii() and text.isdigit() and str(int(text)) == text):
        raise UnsureError("another number")
    if any(c in text for c in "\r\n_"):
        raise UnsureError("line ends, or escapes")
    return "ABCD".index(name[0]), {"0": "false", "1": "true"}[text] if kind == "b" else text
