"""Every layout: what is written is read back; one changed label changes its cell or line alone."""

import csv
import io
import json
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from balancemix.data import ReadOptions, read
from balancemix.data.formats import table
from balancemix.errors import InputError
from tests.data.formats.contract import labels_of

PLAIN = ReadOptions(labels_only=True)
WORDS = st.sampled_from(["cat", "dog", "tree house", "é", "'x'", 'say "x"', "=1+1", "no", "T"])
FLAGS = [("1", "0"), ("1.0", "0.0"), ("true", "false"), ("True", "False"), ("YES", "NO")]


@st.composite
def label_sets(draw) -> tuple[list[str], list[set[str]]]:
    """Draw classes, and the labels of some images; every class occurs, alone in one."""
    classes = draw(st.lists(WORDS, min_size=2, max_size=4, unique=True))
    rows = draw(st.lists(st.sets(st.sampled_from(classes)), max_size=4))
    return classes, [*rows, *({name} for name in classes), set(classes)]


def joined(mark: str):
    def lay_out(classes, rows):
        cells = [mark.join(name for name in classes if name in row) for row in rows]
        return [["image", "labels"], *([f"{i}.jpg", c] for i, c in enumerate(cells))]

    return lay_out


def as_json(classes, rows):
    cells = [json.dumps([name for name in classes if name in row]) for row in rows]
    return [["id", "tags", "note"], *([f"{i}.jpg", c, "x"] for i, c in enumerate(cells))]


def as_python(classes, rows):
    cells = [str([name for name in classes if name in row]) for row in rows]
    return [["path", "classes"], *([f"{i}.jpg", c] for i, c in enumerate(cells))]


def columns(yes: str, no: str):
    def lay_out(classes, rows):
        lines = [[yes if name in row else no for name in classes] for row in rows]
        return [["file_name", *classes], *([f"{i}.jpg", *line] for i, line in enumerate(lines))]

    return lay_out


def lines(classes, rows):
    found = [["filename", "class", "box"]]
    for i, row in enumerate(rows):
        found += [[f"{i}.jpg", name, "1 2"] for name in classes if name in row] or [
            [f"{i}.jpg", "", ""]
        ]
    return found


LAYOUTS = {
    "bars": joined("|"),
    "bars with blanks": joined(" | "),
    "semicolons": joined(";"),
    "commas": joined(", "),
    "JSON": as_json,
    "Python": as_python,
    **{f"{yes}/{no}": columns(yes, no) for yes, no in FLAGS},
    "lines": lines,
}


def encoded(records, delimiter: str, encoding: str) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter).writerows(records)
    return out.getvalue().encode(encoding)


def changed_lines(before: bytes, after: bytes, encoding: str) -> tuple[list[str], list[str]]:
    """The lines that only one of two files has."""
    one, two = (text.decode(encoding).split("\r\n") for text in (before, after))
    return [line for line in one if line not in two], [line for line in two if line not in one]


@given(
    label_sets(),
    st.sampled_from(sorted(LAYOUTS)),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    st.integers(0, 99),
)
def test_every_layout_is_read_and_one_label_changed(drawn, name, delimiter, encoding, seed):
    classes, rows = drawn
    records = LAYOUTS[name](classes, rows)
    content = encoded(records, delimiter, encoding)
    with tempfile.TemporaryDirectory() as place:
        file, out = Path(place, "labels.csv"), Path(place, "out.csv")
        file.write_bytes(content)
        source = read(file, PLAIN)
        assert labels_of(source) == rows
        assert sorted(source.classes) == sorted(classes)
        table.write(source, source.given, out)
        assert out.read_bytes() == content
        i, k = seed % len(rows), seed % len(classes)
        labels = source.given.clone()
        labels[i, k] = 1 - labels[i, k]
        table.write(source, labels, out)
        gone, new = changed_lines(content, out.read_bytes(), encoding)
        assert len(gone) <= 1
        assert len(new) <= 1
        assert all(line.startswith(f"{i}.jpg") for line in gone + new)
        Path(place, "classes.txt").write_text("\n".join(source.classes), encoding="utf-8")
        again = read(out, PLAIN)
        assert again.names == source.names
        assert torch.equal(again.given, labels)


def read_text(folder: Path, text: str, **options):
    (folder / "x.csv").write_text(text, encoding="utf-8")
    return read(folder / "x.csv", ReadOptions(labels_only=True, **options))


def refusal(folder: Path, text: str, **options) -> str:
    with pytest.raises(InputError) as caught:
        read_text(folder, text, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_comma_joins_if_the_file_shows_it(tmp_path):
    text = 'image,labels\na,"dog,cat"\nb,{}\n'
    source = read_text(tmp_path, text.format("cat"))
    assert source.classes == ["cat", "dog"]
    assert "joined by ',': 'cat' is in 'dog,cat' and in other cells (--separator)" in str(
        source.recognised
    )
    message = refusal(tmp_path, text.format("owl"))
    assert "row 2: is 'dog,cat' one label or several? Pass --separator \",\" if it is" in message
    assert read_text(tmp_path, text.format("owl"), separator=",").classes == ["cat", "dog", "owl"]
    assert read_text(tmp_path, text.format("owl"), separator="whole").classes == ["dog,cat", "owl"]
    (tmp_path / "classes.txt").write_text("dog,cat\nowl\n")
    assert read_text(tmp_path, text.format("owl")).classes == ["dog,cat", "owl"]
    (tmp_path / "classes.txt").write_text("dog\ncat\nowl\n")
    assert labels_of(read_text(tmp_path, text.format("owl"))) == [{"dog", "cat"}, {"owl"}]
    (tmp_path / "classes.txt").write_text("dog,cat\ndog\ncat\nowl\n")
    assert "one label or several" in refusal(tmp_path, text.format("owl"))


def test_a_bar_and_a_comma_that_could_both_join_are_refused(tmp_path):
    text = 'image,labels\na,"dog,cat"\nb,cat|dog\n'
    message = refusal(tmp_path, text)
    assert "is 'dog,cat' one label or several?" in message
    assert message.endswith('--separator "|" if it is one')
    odd = read_text(tmp_path, 'image,labels\na,"oak, old"\nb,cat|dog\n')
    assert odd.classes == ["cat", "dog", "oak, old"]


@pytest.mark.parametrize("mark", ["|", ";", ","])
def test_numbers_are_those_of_classes_txt(tmp_path, mark):
    text = f'image,labels\na,"2{mark}0"\nb,1\nc,"[]"\n'.replace('c,"[]"\n', "c,\n")
    (tmp_path / "classes.txt").write_text("cat\ndog\nowl\n")
    source = read_text(tmp_path, text)
    assert labels_of(source) == [{"owl", "cat"}, {"dog"}, set()]
    labels = source.given.clone()
    labels[0, 1] = 1
    table.write(source, labels, tmp_path / "out.csv")
    assert f"2{mark}0{mark}1" in (tmp_path / "out.csv").read_text()
    assert "label '3' is neither in classes.txt nor" in refusal(
        tmp_path, text.replace("1\n", "3\n")
    )
    (tmp_path / "classes.txt").unlink()
    assert read_text(tmp_path, text).classes == ["0", "1", "2"]


COLUMNS = "image,cat,dog,age,note\na,1,0,33,x\nb,0,,12,\nc,1,1,5,y\n"


def test_a_blank_cell_is_unknown_and_other_columns_are_kept(tmp_path):
    source = read_text(tmp_path, COLUMNS)
    assert source.classes == ["cat", "dog"]
    assert source.given.tolist() == [[1, 0], [0, -1], [1, 1]]
    assert "other columns are kept and not read: 'age', 'note'" in source.recognised
    assert any("a blank cell is unknown" in line for line in source.recognised)
    labels = torch.tensor([[1, 0], [0, 1], [-1, 1]], dtype=torch.int8)
    table.write(source, labels, tmp_path / "out.csv")
    expected = COLUMNS.replace("b,0,,", "b,0,1,").replace("c,1,1", "c,,1")
    assert (tmp_path / "out.csv").read_text() == expected
    assert read_text(tmp_path, COLUMNS, unlabelled="absent").given.tolist()[1] == [0, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (COLUMNS.replace("c,1,1", "c,1,2"), "x.csv row 4, column 'dog': '2' is not a label; write"),
        (COLUMNS.replace("c,1,1", "c,1,0.3"), "column 'dog': '0.3' is not a label; a share is no"),
        ("image,cat,dog\na,0.2,0.7\nb,0.9,0\n", "column 'cat' has shares between 0 and 1"),
        (COLUMNS.replace("c,1,1", "c,1,-1"), "column 'dog' has -1, which is absent in some files"),
        ("image,cat,cat\na,1,0\n", "class names repeated: 'cat'"),
        ("image,cat\na,1\n", "no column has labels, and fewer than two hold 0 and 1"),
        ("a,b\n1,2\n", "no column names the images in 'a', 'b'; name one of them image, or pass"),
        ("image,class,split\na,x,train\na,y,test\n", "row 3: split 'test', but row 2 of the same"),
        ("image,class\na,x\na,x\n", "row 3: image 'a' has 'x' here and 'x' in row 2; leave one"),
        ("image,class,confidence\na,x,1\na,y,0\n", "row 3: column 'confidence' has '0', and a row"),
        ("image,labels\na,x\na,y\n", "row 3: image 'a' is also in row 2; put all its labels into"),
        ("image,labels,verified\na,x|y,z\n", "row 2: verified 'z' is not a class; write names of"),
        ("image,labels,tags\na,x|y,z\n", ""),
    ],
)
def test_what_is_refused(tmp_path, text, message):
    if message:
        assert message in refusal(tmp_path, text)
    else:
        said = read_text(tmp_path, text).recognised
        assert "column 'labels' has the labels, not 'tags', by its name" in said[1]


def test_minus_one(tmp_path):
    text = "image,cat,dog\na,1,-1\nb,-1,1\nc,1,\n"
    absent = read_text(tmp_path, text, minus_one="absent")
    assert absent.given.tolist() == [[1, 0], [0, 1], [1, -1]]
    table.write(absent, torch.tensor([[0, 0], [0, 1], [1, 0]]).to(torch.int8), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "image,cat,dog\na,-1,-1\nb,-1,1\nc,1,-1\n"
    unknown = read_text(tmp_path, text, minus_one="unknown")
    assert unknown.given.tolist() == [[1, -1], [-1, 1], [1, -1]]


def test_unlabelled_names_can_be_unknown(tmp_path):
    text = "image,labels\na,cat|dog\nb,cat\nc,\n"
    assert read_text(tmp_path, text).given.tolist() == [[1, 1], [1, 0], [0, 0]]
    source = read_text(tmp_path, text, unlabelled="unknown")
    assert source.given.tolist() == [[1, 1], [1, -1], [-1, -1]]
    with pytest.raises(InputError, match="cannot say that a label is absent"):
        table.write(source, source.given.clamp(min=0), tmp_path / "out.csv")


def test_verified_classes_are_named_or_all(tmp_path):
    text = "image,labels,verified\na,cat|dog,*\nb,cat,dog|cat\nc,,\n"
    source = read_text(tmp_path, text)
    assert source.verified.tolist() == [[True, True], [True, True], [False, False]]
    source = read_text(tmp_path, "image,cat,dog,verified\na,1,0,dog\nb,0,1,*\n")
    assert source.verified.tolist() == [[False, True], [True, True]]
    source = read_text(tmp_path, "image,class,verified\na,cat,cat\na,dog,\nb,dog,*\n")
    assert source.verified.tolist() == [[True, False], [True, True]]


def test_the_truth_beside_a_table_is_for_scoring(tmp_path):
    (tmp_path / "x.truth.csv").write_text("file,tags\n./a,dog\nz,cat\n")
    source = read_text(tmp_path, "image,labels\na,cat|dog\nb,cat\n")
    assert source.truth.tolist() == [[0, 1], [-1, -1]]
    assert source.given.tolist() == [[1, 1], [1, 0]]
    (tmp_path / "x.truth.csv").write_text("image,labels\na,owl\n")
    assert "label 'owl' is not in x.csv" in refusal(tmp_path, "image,labels\na,cat|dog\n")


def test_nih_and_chexpert_are_known_by_their_columns(tmp_path):
    text = "Image Index,Finding Labels,Follow-up #,Patient Age\n1.png,No Finding,0,58\n"
    text += "2.png,Mass|Nodule,1,58\n3.png,Mass,0,3\n"
    source = read_text(tmp_path, text)
    assert (source.classes, source.given.tolist()) == (["Mass", "Nodule"], [[0, 0], [1, 1], [1, 0]])
    table.write(source, 1 - source.given, tmp_path / "out.csv")
    expected = text.replace("No Finding", "Mass|Nodule", 1).replace(
        "2.png,Mass|Nodule", "2.png,No Finding"
    )
    assert (tmp_path / "out.csv").read_text() == expected.replace("3.png,Mass", "3.png,Nodule")
    names = "No Finding,Cardiomegaly,Lung Opacity,Edema,Fracture"
    text = f"Path,Sex,Age,Frontal/Lateral,AP/PA,{names}\np/1.jpg,F,68,Frontal,AP,1.0,,-1.0,0.0,\n"
    text += "p/2.jpg,M,70,Frontal,AP,,1.0,0.0,-1.0,\n"
    source = read_text(tmp_path, text)
    assert source.classes == names.split(",")
    assert source.given.tolist() == [[1, -1, -1, 0, -1], [-1, 1, 0, -1, -1]]
    assert any("it is CheXpert's" in line for line in source.recognised)


def test_plain_lines_of_digits_read_as_any_other(tmp_path):
    """NumPy reads plain lines; a quote, a blank or a word in a line must not change its labels."""
    rows = [f"{i}.jpg,{i % 2},{i // 2 % 2},{i // 4 % 2},train" for i in range(5000)]
    rows[7] = '"7.jpg",1,1,1,train'
    rows[2048], rows[4999] = "2048.jpg,1,,true,train", "4999.jpg, 1,0,no,test"
    rows[100:100] = ["", ",,,,"]
    source = read_text(tmp_path, "image,a,b,c,split\n" + "\n".join(rows))
    assert len(source) == 5000
    expected = [[i % 2, i // 2 % 2, i // 4 % 2] for i in range(5000)]
    expected[7], expected[2048], expected[4999] = [1, 1, 1], [1, -1, 1], [1, 0, 0]
    assert source.given.tolist() == expected
    assert source.split[-1] == "test"
    assert source.origin.records[100] == 102


def test_columns_and_flags_by_hand(tmp_path):
    text = "photo_of,what\na.jpg,cat;dog\nb.jpg,cat\n"
    source = read_text(tmp_path, text, image_column="photo_of", label_column="what")
    assert source.classes == ["cat", "dog"]
    assert "--image-column 'x' is not one of its columns" in refusal(
        tmp_path, text, image_column="x"
    )
    both = "image,label,cat,dog\na,x,1,0\nb,y,0,1\n"
    assert read_text(tmp_path, both).classes == ["x", "y"]
    assert read_text(tmp_path, both, label_column="*").classes == ["cat", "dog"]
    assert "--format nobody: unknown" in refusal(tmp_path, both, format="nobody")
    assert read_text(tmp_path, both, format="table").classes == ["x", "y"]
