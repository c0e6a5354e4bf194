"""Tables in files that have types: .xlsx, .parquet, .json and .jsonl, read as text and changed."""

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl.styles import Font

from balancemix.data.tables import Edits, open_sheet
from balancemix.errors import InputError

ENDINGS = [".xlsx", ".parquet", ".json", ".jsonl"]
TYPES = {"name": str, "cat": int, "dog": bool, "score": float, "note": str}
ROWS: list[list[Any]] = [
    ["a.png", 1, True, 0.5, "x"],
    ["b.png", 0, False, None, "ü <&> \" '"],
    ["c.png", None, None, 2.0, None],
    ["d.png", 1, False, 1e-7, "=1+1"],
]
TEXT = [
    ["a.png", "1", "true", "0.5", "x"],
    ["b.png", "0", "false", "", "ü <&> \" '"],
    ["c.png", "", "", "2", ""],
    ["d.png", "1", "false", "1e-07", "=1+1"],
]


def make(file: Path, rows: list[list[Any]], names: list[str] | None = None) -> Path:
    """Write a table with types."""
    names = names or list(TYPES)
    objects = [dict(zip(names, row, strict=True)) for row in rows]
    if file.suffix == ".xlsx":
        book = openpyxl.Workbook()
        sheet = book.active
        for row in [names, *rows]:
            sheet.append(row)
        for cell in sheet["E"]:
            if isinstance(cell.value, str):
                cell.data_type = "s"  # text, not a formula
        sheet["B2"].font = Font(bold=True)
        book.create_sheet("other")["A1"] = "kept"
        book.save(file)
    elif file.suffix == ".parquet":
        kinds = {int: pyarrow.int8(), bool: pyarrow.bool_(), float: pyarrow.float32()}
        types = [kinds.get(TYPES.get(name, str), pyarrow.string()) for name in names]
        fields = [
            pyarrow.field(name, kind, metadata={"unit": name})
            for name, kind in zip(names, types, strict=True)
        ]
        table = pyarrow.Table.from_pylist(
            objects, pyarrow.schema(fields, metadata={"made": "here"})
        )
        pyarrow.parquet.write_table(table, file, row_group_size=3, compression="gzip")
    elif file.suffix == ".json":
        file.write_text(json.dumps(objects, indent=1), encoding="utf-8")
    else:
        file.write_text("".join(json.dumps(each) + "\n" for each in objects), encoding="utf-8")
    return file


def text_of(file: Path) -> list[list[str]]:
    return [row for row in open_sheet(file).records() if any(row)]


@pytest.fixture(params=ENDINGS)
def file(request, tmp_path):
    return make(tmp_path / f"labels{request.param}", ROWS)


def test_cells_are_read_as_text(file):
    sheet = open_sheet(file)
    assert sheet.header == list(TYPES)
    expected = [list(row) for row in TEXT]
    if file.suffix == ".parquet":
        expected[3][3] = "1.0000000116860974e-07"  # as float32 has it
    assert list(sheet.records()) == expected


def test_what_is_read_is_written(file, tmp_path):
    out = tmp_path / f"same{file.suffix}"
    open_sheet(file).write(out, Edits())
    assert content(out) == content(file)


def content(file: Path) -> Any:
    """All that a file holds, after parsing; of an .xlsx every part of the archive."""
    if file.suffix == ".xlsx":
        with zipfile.ZipFile(file) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    if file.suffix == ".parquet":
        table = pyarrow.parquet.ParquetFile(file)
        groups = [table.metadata.row_group(i) for i in range(table.num_row_groups)]
        facts = [(group.num_rows, group.column(0).compression) for group in groups]
        return table.read().to_pylist(), table.schema_arrow.metadata, facts, str(table.schema_arrow)
    return file.read_bytes()


def values_of(file: Path) -> list[list[Any]]:
    """The values of a file, below its header."""
    if file.suffix == ".xlsx":
        rows = openpyxl.load_workbook(file).worksheets[0].iter_rows(values_only=True)
        return [list(row) for row in rows][1:]
    if file.suffix == ".parquet":
        objects = pyarrow.parquet.read_table(file).to_pylist()
    else:
        lines = file.read_text().splitlines()
        objects = json.loads(f"[{','.join(lines)}]" if file.suffix == ".jsonl" else "".join(lines))
    return [list(each.values()) for each in objects]


def test_a_changed_cell_keeps_its_type_and_is_the_only_change(file, tmp_path):
    out = tmp_path / f"new{file.suffix}"
    edits = Edits({(0, 1): "0", (0, 2): "false", (2, 1): "1", (3, 4): "=2 <b>", (1, 3): "3"})
    before = text_of(file)
    open_sheet(file).write(out, edits)
    assert text_of(out) == list(edits.applied(before))
    values = values_of(out)
    assert [type(value) for value in values[0]] == [str, int, bool, float, str]
    assert values[0][:3] == ["a.png", 0, False]
    assert values[2][1] == 1
    if file.suffix == ".xlsx":
        book = openpyxl.load_workbook(out)
        assert book["other"]["A1"].value == "kept"
        assert book.worksheets[0]["B2"].font.b


def test_records_are_dropped_and_added(file, tmp_path):
    out = tmp_path / f"new{file.suffix}"
    added = {1: [["n.png", "1", "", "", "x"]], 3: [["z.png", "", "true", "", ""]]}
    edits = Edits({(3, 0): "e.png"}, {0, 2}, added)
    open_sheet(file).write(out, edits)
    expected = list(edits.applied(text_of(file)))
    ordered = sorted if file.suffix == ".xlsx" else list  # new rows take the place of old ones
    assert ordered(text_of(out)) == ordered(expected)


def test_a_file_that_changed_meanwhile_is_refused(file, tmp_path):
    sheet = open_sheet(file)
    file.write_bytes(file.read_bytes() + b"\n")
    with pytest.raises(InputError, match="has changed since it was read"):
        sheet.write(tmp_path / "out", Edits({(0, 0): "x"}))


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_damaged_file_is_refused_in_one_line(tmp_path, ending):
    whole = make(tmp_path / f"whole{ending}", ROWS).read_bytes()
    for damaged in (b"", b"{", whole[: len(whole) // 2], whole[:-30]):
        (tmp_path / f"x{ending}").write_bytes(damaged)
        with pytest.raises(InputError) as caught:
            list(open_sheet(tmp_path / f"x{ending}").records())
        assert str(caught.value).startswith(str(tmp_path / f"x{ending}"))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("ending", "package"), [(".xlsx", "openpyxl"), (".parquet", "pyarrow")])
def test_a_missing_package_is_named(tmp_path, monkeypatch, ending, package):
    file = make(tmp_path / f"x{ending}", ROWS)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"needs {package}; install it with: pip install 'bal"):
        open_sheet(file)


def put(file: Path, old: bytes, new: bytes) -> None:
    """Replace a piece of the first worksheet's XML."""
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    assert old in parts[name]
    parts[name] = parts[name].replace(old, new)
    with zipfile.ZipFile(file, "w") as archive:
        for each, part in parts.items():
            archive.writestr(each, part)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        (b'<c r="B3" t="n"><v>0</v></c>', b"", None),  # a gap is in order
        (b'<row r="3">', b'<row r="9">', "row 4"),
        (b'<c r="B3" t="n">', b'<c r="D3" t="n">', "cell C3"),
        (b'<c r="B3" t="n">', b'<c r="A3" t="n">', "cell A3"),
    ],
)
def test_rows_and_cells_out_of_order_are_refused_as_openpyxl_leaves_them_out(
    tmp_path, old, new, place
):
    file = make(tmp_path / "x.xlsx", ROWS)
    put(file, old, new)
    if place is None:
        assert list(open_sheet(file).records())[1] == [TEXT[1][0], "", *TEXT[1][2:]]
        return
    with pytest.raises(InputError, match=rf"x\.xlsx sheet 'Sheet' {place}: is out of order; save"):
        open_sheet(file)


def test_a_formula_is_read_by_its_value_and_never_changed(tmp_path):
    file = tmp_path / "x.xlsx"
    make(file, ROWS)
    put(file, b'<c r="B3" t="n"><v>0</v></c>', b'<c r="B3"><f>1-1</f><v>0</v></c>')
    sheet = open_sheet(file)
    assert list(sheet.records()) == TEXT
    with pytest.raises(InputError, match=r"x\.xlsx sheet 'Sheet' cell B3: is a formula; put a va"):
        sheet.write(tmp_path / "out.xlsx", Edits({(1, 1): "1"}))
    assert not (tmp_path / "out.xlsx").exists()
    sheet.write(tmp_path / "out.xlsx", Edits({(0, 1): "0"}))
    assert list(open_sheet(tmp_path / "out.xlsx").records())[1] == TEXT[1]


def test_lists_are_read_and_written_as_json(tmp_path):
    rows = [{"image": "a", "labels": ["cat", "ö"]}, {"image": "b", "labels": []}]
    file = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    (tmp_path / "x.json").write_text(json.dumps(rows, indent=2))
    for each in (file, tmp_path / "x.json"):
        sheet = open_sheet(each)
        assert list(sheet.records()) == [["a", '["cat", "ö"]'], ["b", "[]"]]
        out = tmp_path / f"out{each.suffix}"
        sheet.write(out, Edits({(1, 1): '["cat"]'}))
        assert list(open_sheet(out).records())[1] == ["b", '["cat"]']
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").schema.equals(
        pyarrow.parquet.read_table(file).schema, check_metadata=True
    )


@pytest.mark.parametrize(
    "text",
    [
        '[{"image": "a", "n": 1.50},{"image": "b"}]',
        '[\n  {"image": "a", "n": [1,2]},\n  {"image": "b"}\n]\n',
        '\ufeff[\r\n\t{\r\n\t\t"image": "a",\r\n\t\t"n": "\\u00e9"\r\n\t}, {"image":"b"}\r\n]',
        ' [{"image": "a", "n": 7 } ]',
    ],
)
def test_json_keeps_the_text_of_other_records_and_the_style_of_changed_ones(tmp_path, text):
    file, out = tmp_path / "x.json", tmp_path / "out.json"
    file.write_bytes(text.encode())
    open_sheet(file).write(out, Edits({(0, 0): "z"}))
    expected = text.replace('"a"', '"z"')
    assert out.read_bytes().decode() == expected


@pytest.mark.parametrize(
    ("ending", "text", "message"),
    [
        (".json", '{"images": []}', "is not a list; begin it with"),
        (".json", "[1]", "object 0: is not an object"),
        (".json", '[{"a": 1, "a": 2}]', "the key 'a' is given twice"),
        (".json", '[{"a": 1} {"a": 2}]', "object 1: does not follow a comma"),
        (".json", '[{"a": 1},]', "object 1: is missing after a comma"),
        (".json", '[{"a": 1}', "does not follow a comma, or the list has no end"),
        (".json", '[{"a": 1}]]', "end it with a single ]"),
        (".json", "[" * 100_000, "object 0: not JSON"),
        (".jsonl", '{"a": 1} {"a": 2}', "object 1: begins on the line of the one before"),
        (".jsonl", '{"a": 1}\n{"a":\n 1}', "object 1: is written over several lines"),
        (".jsonl", '{"a": 1}\n[]', "object 1: is not an object"),
    ],
)
def test_what_is_not_a_table_of_json_is_named(tmp_path, ending, text, message):
    (tmp_path / f"x{ending}").write_text(text)
    with pytest.raises(InputError) as caught:
        open_sheet(tmp_path / f"x{ending}")
    assert message in str(caught.value)


def test_a_key_that_a_record_did_not_have_is_added_to_it(tmp_path):
    file, out = tmp_path / "x.json", tmp_path / "out.json"
    for text, new in (
        ('[{"image": "a", "n": 1}, {"image": "b"}]', ', "n": 7}]'),
        ('[{"image":"a","n":1},{"image":"b"}]', ',"n":7}]'),
        (
            '[\n {\n  "image": "a",\n  "n": 1\n },\n {\n  "image": "b"\n }\n]',
            ',\n  "n": 7\n }\n]',
        ),
        ('[{"n": 1}, {}]', '"n": 7}]'),
    ):
        file.write_text(text)
        sheet = open_sheet(file)
        sheet.write(out, Edits({(1, len(sheet.header) - 1): "7"}))
        assert out.read_text() == text[: text.rindex("}")].rstrip() + new


VALUES = {
    "name": st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=5),
    "cat": st.none() | st.integers(-1, 1),
    "dog": st.none() | st.booleans(),
    "score": st.none() | st.floats(-9, 9, width=16),
    "note": st.none() | st.text(st.sampled_from("ab é=,;|\"'<&"), min_size=1, max_size=5),
}


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(st.tuples(*VALUES.values()).map(list), min_size=1, max_size=8),
    data=st.data(),
)
@pytest.mark.parametrize("ending", ENDINGS)
def test_any_edits_change_what_they_say_and_nothing_else(tmp_path, ending, rows, data):
    for i, row in enumerate(rows):
        row[0] = f"{i}{row[0]}"  # no blank rows
    file = make(tmp_path / f"any{ending}", rows)
    sheet, out = open_sheet(file), tmp_path / f"out{ending}"
    sheet.write(out, Edits())
    assert content(out) == content(file)
    places = st.tuples(st.integers(0, len(rows) - 1), st.sampled_from([1, 2, 4]))
    words = {1: ["0", "1", "-1", ""], 2: ["true", "false", ""], 4: ["new", " é<&", "1"]}
    chosen = data.draw(st.sets(places, max_size=4))
    cells = {(i, k): data.draw(st.sampled_from(words[k])) for i, k in sorted(chosen)}
    edits = Edits(cells)
    sheet.write(out, edits)
    assert list(open_sheet(out).records()) == list(edits.applied(sheet.records()))
