"""The layouts that docs/data.md shows, and what it says of words joined by blanks."""

import re

import pytest

from balancemix.data.formats import table
from tests.conftest import ROOT
from tests.data.formats.contract import labels_of
from tests.data.tables.test_layouts import read_text


def examples() -> list[tuple[str, str]]:
    """The layouts of the document, with their three lines."""
    section = (ROOT / "docs" / "data.md").read_text(encoding="utf-8").partition("## Tables")[2]
    rows = [line for line in section.split("\n") if line.startswith("| ") and "<br>" in line]
    cells = [re.split(r"(?<!\\)\|", row)[1:3] for row in rows]
    return [
        (name.strip(), "\n".join(re.findall(r"`([^`]*)`", text)).replace("\\|", "|"))
        for name, text in cells
    ]


@pytest.mark.parametrize(("name", "text"), examples())
def test_the_examples_of_the_document_are_read(tmp_path, name, text):
    if name in ("numbers", "joined by blanks"):
        (tmp_path / "classes.txt").write_text("cat\ndog\n")
    labels = labels_of(read_text(tmp_path, text + "\n"))
    if name == "CheXpert":
        assert labels == [{"No Finding"}, {"Cardiomegaly"}]
    elif name == "OpenImages":
        assert labels == [{"/m/01yrx"}]
    elif name.startswith("NIH"):
        assert labels == [{"Mass", "Nodule"}, set()]
    else:
        assert labels[0] == {"cat", "dog"}
        assert labels[1:] in ([], [{"cat"}])


def test_every_layout_is_in_the_document():
    assert len(examples()) == 10


def test_words_that_recur_may_be_labels_joined_by_blanks(tmp_path):
    """As in the tables of two contests: weather and ground of a place, parts of a cell."""
    text = "image_name,tags\na,haze primary\nb,clear primary road\nc,clear road\nd,haze\n"
    source = read_text(tmp_path, text)
    assert len(source.classes) == 4
    said = "'clear primary road' is one label here; as other cells have 'clear' and 'primary', it"
    assert any(line.startswith(said) for line in source.recognised)
    assert any(line.endswith('then pass --separator " "') for line in source.recognised)
    source = read_text(tmp_path, text, separator=" ")
    assert labels_of(source)[1] == {"clear", "primary", "road"}
    assert "may be several" not in str(source.recognised)
    labels = source.given.clone()
    labels[0, source.classes.index("primary")] = 0
    labels[3, source.classes.index("road")] = 1
    table.write(source, labels, tmp_path / "out.csv")
    expected = text.replace("haze primary", "haze").replace("d,haze", "d,haze road")
    assert (tmp_path / "out.csv").read_text() == expected
    for other in ("a,tree house\nb,tree\nc,cat\n", "a,cat dog|cat\nb,dog\nc,cat\n"):
        said = read_text(tmp_path, f"image,labels\n{other}").recognised
        assert "may be several" not in str(said)
    numbers = read_text(tmp_path, "Id,Target\na,16 0\nb,0 16\nc,0\nd,16 5\ne,5\n").recognised
    assert any(line.startswith("'0 16' is one label here") for line in numbers)
    (tmp_path / "classes.txt").write_text("haze\nclear\nroad\nprimary\n")
    assert labels_of(read_text(tmp_path, text)) == labels_of(source)
