"""What people decided replaces what a file gives; the file's labels stay known."""

import pytest
import torch
from PIL import Image

from balancemix.data import ReadOptions, load, read, rows_of
from balancemix.errors import InputError

TABLE = (
    "image,labels,split\na.png,cat|dog,train\nb.png,dog,train\nc.png,=owl,train\nd.png,cat,test\n"
)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "photos"
    place.mkdir()
    for name in "abcd":
        Image.new("RGB", (6, 4)).save(place / f"{name}.png")
    (place / "labels.csv").write_text(TABLE)
    return place


def put(folder, text):
    beside = folder.with_name(f"{folder.name}.balancemix")
    beside.mkdir(exist_ok=True)
    (beside / "decisions.csv").write_bytes(text.encode("utf-8", "surrogateescape"))


def test_a_verdict_replaces_the_given_label(folder):
    before = read(folder)
    put(
        folder,
        "\ufeffwho,image,class,verdict\r\n"
        "x,a.png,dog,absent\r\nx,b.png,cat,present\r\nx,c.png,'=owl,unsure\r\n,,,\r\n",
    )
    source = read(folder)
    assert source.classes == ["=owl", "cat", "dog"]
    assert source.given.tolist() == [[0, 1, 0], [0, 1, 1], [1, 0, 0], [0, 1, 0]]
    assert source.verified.nonzero().tolist() == [[0, 2], [1, 1]]
    assert torch.equal(source.as_in_file.given, before.given)
    assert before.verified is None


def test_rows_know_the_labels_before_people_decided(folder):
    before = read(folder)
    (folder / "labels.csv").write_text(
        "image,labels,split,verified\na.png,cat|dog,train,\nb.png,dog,train,dog\n"
        "c.png,=owl,train,\nd.png,cat,test,\n"
    )
    put(folder, "image,class,verdict\na.png,dog,absent\n")
    rows = rows_of(read(folder))
    by_file = torch.zeros(4, 3, dtype=torch.bool)
    by_file[1, 2] = True  # as the file has it: nobody knows what was given before
    assert rows.before is not None
    assert torch.equal(rows.before, before.given.masked_fill(by_file, -1))
    part = rows.subset(torch.tensor([1, 0]))
    assert part.before is not None
    assert torch.equal(part.before, rows.before[[1, 0]])
    assert rows.for_workers().before is None
    assert rows_of(before).before is None


def test_of_two_lines_the_last_counts(folder):
    put(folder, "image,class,verdict\na.png,cat,absent\na.png,cat,present\n")
    source = read(folder)
    assert torch.equal(source.given, source.as_in_file.given)
    assert source.verified.sum() == 1


def test_an_unsure_verdict_changes_nothing_and_takes_an_earlier_one_back(folder):
    put(folder, "image,class,verdict\na.png,cat,absent\na.png,cat,unsure\n")
    source = read(folder)
    assert torch.equal(source.given, source.as_in_file.given)
    assert not source.verified.any()


def test_images_that_are_gone_are_told_in_one_line(folder):
    put(folder, "image,class,verdict\nx.png,cat,absent\nx.png,dog,absent\na.png,cat,absent\n")
    with pytest.warns(UserWarning, match=r"decisions\.csv: images .* \(1\): 'x\.png'; their dec"):
        source = read(folder)
    assert source.given[0].tolist() == [0, 0, 1]


def test_rows_that_are_left_out_keep_their_file_s_labels_apart(folder):
    (folder / "b.png").unlink()
    put(folder, "image,class,verdict\nc.png,cat,present\na.png,cat,absent\n")
    with pytest.warns(UserWarning, match="cannot be read"):
        source = read(folder, ReadOptions(skip_bad=True))
    assert source.given.tolist() == [[0, 0, 1], [1, 1, 0], [0, 1, 0]]
    part = source.subset([1])
    assert part.as_in_file.given.tolist() == [[1, 0, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "decisions.csv row 1: needs one column 'image'; begin it with image,class,verdict"),
        ("image,class\n", "needs one column 'verdict'"),
        ("image,class,verdict,class\n", "needs one column 'class'"),
        ("image,class,verdict\na.png,dgo,absent\n", "row 2: 'dgo' is not a class of"),
        ("image,class,verdict\n\na.png,dog,maybe\n", "row 3: verdict 'maybe'; use one of: pres"),
        ("image,class,verdict\na.png,dog\n", "row 2: has 2 cells where the header has 3"),
        ('image,class,verdict\na.png,"dog,absent\n', "not CSV"),
    ],
)
def test_a_bad_line_is_named(folder, text, message):
    put(folder, text)
    with pytest.raises(InputError) as caught:
        load(folder)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
