"""Tables that people fill in: what each row says, and each answer exactly once."""

import os
import tempfile
from pathlib import Path

import openpyxl
import pytest
import torch
from hypothesis import given, settings

from balancemix.data.decisions.answers import Decision, Settled
from balancemix.data.decisions.filled import read_filled
from balancemix.data.decisions.reading import Taken
from balancemix.data.decisions.samples import Unit
from balancemix.data.decisions.store import Store
from balancemix.data.source import Source
from balancemix.errors import InputError
from tests.data.decisions.test_store import ACTIONS, CLASSES, act

IMAGES = ["a.jpg", "b.jpg", "=c.jpg", "caf\udce9.jpg", "x", "y", "z"]
SOURCE = Source(
    Path("photos"), CLASSES, IMAGES, torch.zeros(len(IMAGES), len(CLASSES), dtype=torch.int8)
)


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "photos.balancemix", create=True) as made:
        yield made


def take(store, file, name="Ana"):
    filled = read_filled(Path(file), Path("photos"), set(IMAGES), CLASSES)
    return store.take(filled, Path(file), CLASSES, name)


def put(tmp_path, text, name="filled.csv"):
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
    return file


def opinions(store):
    return {(i, c): s.verdict or s.state for i, c, s, _ in store.states()}


FINDINGS = (
    "image,class,problem,verdict\na.jpg,cat,wrong,absent\nb.jpg,dog,missing,{}\n"
    "=c.jpg,cat,missing,\n"
)


def test_findings_are_read_once(store, tmp_path):
    file = put(tmp_path, FINDINGS.format("Present"))
    assert take(store, file) == Taken(new=2, blank=1)
    assert take(store, file) == Taken(known=2, blank=1)
    assert opinions(store) == {("a.jpg", "cat"): "absent", ("b.jpg", "dog"): "present"}
    assert store.verified() == [("a.jpg", "cat", False), ("b.jpg", "dog", True)]
    assert take(store, file, "Ben") == Taken(new=2, blank=1)


def test_an_edited_row_counts_and_so_does_editing_it_back(store, tmp_path):
    for verdict in ("present", "absent", "present"):
        file, first = put(tmp_path, FINDINGS.format(verdict)), not opinions(store)
        assert take(store, file).new == (2 if first else 1)
        assert opinions(store)["b.jpg", "dog"] == verdict
        assert take(store, file).new == 0


def test_an_old_file_does_not_take_back_what_was_decided_since(store, tmp_path):
    file = put(tmp_path, FINDINGS.format("present"))
    take(store, file)
    store.record([Decision("b.jpg", "dog", "absent", "Ana", "focus", width=900)])
    assert take(store, file).new == 0
    moved = tmp_path / "moved.csv"
    os.rename(file, moved)
    assert take(store, moved).new == 0
    put(tmp_path, FINDINGS.format("present") + "x,dog,wrong,absent\n", "moved.csv")
    assert take(store, moved).new == 1
    assert opinions(store)["b.jpg", "dog"] == "absent"


def test_a_blank_cell_takes_nothing_back(store, tmp_path):
    take(store, put(tmp_path, FINDINGS.format("present")))
    assert take(store, put(tmp_path, FINDINGS.format(""))) == Taken(known=1, blank=2)
    assert opinions(store)["b.jpg", "dog"] == "present"


def test_of_two_rows_about_a_label_the_last_counts_and_once(store, tmp_path):
    file = put(tmp_path, "image,class,verdict\na.jpg,cat,present\na.jpg,cat,absent\n")
    assert take(store, file).new == 1
    assert take(store, file) == Taken(known=1)
    assert opinions(store) == {("a.jpg", "cat"): "absent"}


def test_a_sample_settles_whole_images(store, tmp_path):
    number = store.new_sample(0, "image", None, [Unit("b.jpg"), Unit("a.jpg"), Unit("x")])
    text = "image,given_labels,true_labels,unsure\na.jpg,cat,cat|'=owl, dog \nb.jpg,cat,{},\nx,,,\n"
    text = text.replace("'=owl, dog ", "=owl,dog")
    file = put(tmp_path, text.format("(none)"))
    assert take(store, file) == Taken(new=2, blank=1)
    assert take(store, file) == Taken(known=2, blank=1)
    first, second = store.answers(number, CLASSES)
    assert (first.unit.image, first.present) == ("b.jpg", set())
    assert (second.present, second.unsure) == ({"cat", "=owl"}, {"dog"})
    assert take(store, put(tmp_path, text.format("dog"))).new == 1
    assert store.answers(number, CLASSES)[0].present == {"dog"}
    assert ("b.jpg", "cat", False) in store.verified()
    assert take(store, put(tmp_path, text.format("(none)"))).new == 1
    assert store.answers(number, CLASSES)[0].present == set()


@pytest.mark.parametrize(
    "save",
    [
        lambda text: ("﻿" + text.replace(",", ";").replace("\n", "\r\n")).encode(),
        lambda text: text.replace(",", "\t").encode("utf-16"),
        lambda text: ("sep=;\n" + text.replace(",", ";")).encode(),
    ],
)
def test_what_spreadsheets_save_is_read(store, tmp_path, save):
    text = "image,class,verdict\n'=c.jpg,'=owl,absent\na.jpg,cat,\n"
    assert take(store, put(tmp_path, save(text))) == Taken(new=1, blank=1)
    assert opinions(store) == {("=c.jpg", "=owl"): "absent"}


def test_a_workbook_is_read(store, tmp_path):
    book = openpyxl.Workbook()
    for row in (["image", "class", "verdict"], ["a.jpg", "cat", "present"], ["b.jpg", "cat", None]):
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    assert take(store, tmp_path / "x.xlsx") == Taken(new=1, blank=1)


def test_names_that_are_not_utf_8_are_read(store, tmp_path):
    file = put(tmp_path, "image,class,verdict\ncaf\udce9.jpg,cat,present\n")
    assert take(store, file).new == 1
    assert store.verified() == [("caf\udce9.jpg", "cat", True)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "row 1: needs the column image, and either verdict"),
        ("image,verdict,true_labels\n", "and either verdict (a row is a label) or true_labels"),
        ("image,verdict\n", "needs the column 'class' beside 'verdict'"),
        ("image,class,verdict,Verdict\n", "row 1: has two columns 'verdict'"),
        ("image,class,verdict\nq.jpg,cat,\n", "row 2: 'q.jpg' is not an image of photos"),
        ("image,class,verdict\na.jpg,cta,absent\n", "row 2: 'cta' is not a class of photos; did"),
        ("image,class,verdict\n\na.jpg,cat,maybe\n", "row 3: verdict 'maybe'; use one of: present"),
        ("image,true_labels\na.jpg,cat|owl\n", "row 2: 'owl' is not a class of photos"),
        ("image,true_labels,unsure\na.jpg,cat,cat\n", "row 2: 'cat' is both in true_labels and"),
        ("image,true_labels,unsure\na.jpg,,cat\n", "row 2: has unsure classes but no true_labels"),
        ("image,class,verdict,time\na.jpg,cat,absent,1/2/26\n", "row 2: time '1/2/26' is not like"),
        ("image,class,verdict,mode\na.jpg,cat,absent,x\n", "row 2: mode 'x'; use one of: focus"),
        ("image,class,verdict,width\na.jpg,cat,absent,-1\n", "row 2: width '-1' is neither pixels"),
        ("image,class,verdict,reviewer\na.jpg,cat,absent," + "x" * 201 + "\n", "row 2: the review"),
        ('image,class,verdict\na.jpg,"cat,absent\n', "not CSV"),
        (b"image,class,verdict\ncaf\xe8.jpg,cat,absent\n", "save the file as UTF-8"),
    ],
)  # fmt: skip
def test_a_bad_row_is_named_and_nothing_is_saved(store, tmp_path, text, message):
    with pytest.raises(InputError) as caught:
        take(store, put(tmp_path, text))
    assert message in str(caught.value)
    assert "filled.csv" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert store.states() == []


def test_a_name_with_the_mark_in_it_is_read(tmp_path):
    classes = ["a", "a|b", "b", "c"]
    file = put(tmp_path, "image,true_labels\nx,a|b|c\ny,|c|\n")
    first, second = read_filled(file, Path("photos"), {"x", "y"}, classes).images
    assert sorted(first.present) == ["a|b", "c"]
    assert sorted(second.present) == ["c"]


def test_what_the_store_wrote_adds_nothing_to_it_and_an_edited_row_counts(store, tmp_path):
    store.record([Decision("a.jpg", "cat", "absent", "Ana", "sweep")])
    store.settle([Settled("b.jpg", "Ben", ["dog"], CLASSES)])
    out = tmp_path / "out.csv"
    assert store.write_answers(out, SOURCE) == 4
    assert take(store, out) == Taken(known=4)
    text = out.read_text()
    assert text.splitlines()[0] == "image,class,given,verdict,reviewer,time,mode,width"
    assert "b.jpg,'=owl,absent,absent,Ben," in text
    put(tmp_path, text.replace("absent,absent,Ben", "absent,present,Ben", 1), "out.csv")
    assert take(store, out) == Taken(new=1, known=3)
    assert take(store, out) == Taken(known=4)
    assert not any(i == "a.jpg" for i, _, _ in store.verified())  # a sweep removes nothing


def test_an_answer_with_a_time_counts_if_it_is_the_newest(store, tmp_path):
    store.record([Decision("a.jpg", "cat", "absent", "Ana", at="2026-03-02T10:00:00.500000Z")])
    text = "image,class,verdict,reviewer,time\na.jpg,cat,{},Ana,{}\n"
    for verdict, time, taken in [
        ("present", "2026-03-01T10:00:00Z", Taken(older=1)),
        ("absent", "2026-03-02 10:00:00", Taken(known=1)),  # without its fraction of a second
        ("present", "2026-03-03T12:00:00+01:00", Taken(new=1)),
        ("unsure", "2026-03-03T10:59:59Z", Taken(older=1)),
    ]:
        assert take(store, put(tmp_path, text.format(verdict, time)), "Ben") == taken
    assert opinions(store) == {("a.jpg", "cat"): "present"}


@settings(max_examples=40, deadline=None)
@given(ACTIONS)
def test_what_is_written_is_read_into_the_same_states(actions):
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with (
            Store.open(place / "a", create=True) as first,
            Store.open(place / "b", create=True) as second,
        ):
            for store in (first, second):
                store._connection.execute("PRAGMA synchronous=OFF")
            act(first, actions)
            first.write_answers(place / "out.csv", SOURCE)
            take(second, place / "out.csv")
            assert known(second) == known(first)
            assert take(second, place / "out.csv").new == 0
            assert take(first, place / "out.csv").new == 0
            second.write_answers(place / "again.csv", SOURCE)
            assert (place / "again.csv").read_text() == (place / "out.csv").read_text()


def known(store):
    """What a store says, without labels on which every answer was undone."""
    return {
        (i, c): (s.state, s.verdict, s.verified)
        for i, c, s, _ in store.states()
        if s.state != "open"
    }
