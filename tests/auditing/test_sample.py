"""Drawing samples, and the sheet in which people answer them."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch

from balancemix.auditing.data import judge_data
from balancemix.auditing.sample import Population, Request, draw_images, draw_labels, drawing_order
from balancemix.auditing.sheet import classes_file, read_answers, write_sheet_of
from balancemix.data import ReadOptions, read
from balancemix.data.decisions.store import Store
from balancemix.errors import InputError
from tests.auditing.people import CLASSES, answer, present, settle, write_npz

UNDECIDED = ReadOptions(verified=False)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "x.npz"
    truth, given = write_npz(path)
    return path, truth, given


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "x.npz.balancemix", create=True) as store:
        yield store


def images(drawn) -> list[str]:
    return [unit.image for unit in drawn.units]


@pytest.mark.parametrize("text", ["0", "-5", "fifty", "wrong:", "missing:200", "5.5", "٣", ""])
def test_what_is_no_number_of_images_is_refused(text):
    with pytest.raises(InputError, match="such as wrong:200"):
        Request.parse(text)


def test_too_few_labels_are_refused():
    with pytest.raises(InputError, match="draw wrong:200"):
        Request.parse("wrong:199")


def test_images_of_the_split_are_drawn_by_the_seed_and_a_larger_number_extends(data, store):
    source = read(data[0], UNDECIDED)
    population = Population.of(source)
    fifty = images(draw_images(store, population, 50, seed=0))
    assert len(set(fifty)) == 50
    assert set(fifty) <= set(population.names)
    assert len(population.names) == 600  # training rows only
    assert images(draw_images(store, population, 50, seed=0)) == fifty
    hundred = images(draw_images(store, population, 100, seed=0))
    assert hundred[:50] == fifty
    assert len(set(hundred)) == 100
    assert images(draw_images(store, population, 50, seed=0)) == hundred  # what is drawn stays
    other = images(draw_images(store, population, 50, seed=1))
    assert other != fifty
    assert set(images(draw_images(store, Population.of(source, "test"), 10, 0))).isdisjoint(hundred)


def test_all_rows_are_drawn_where_there_are_no_more_than_asked_for(data, store):
    population = Population.of(read(data[0], UNDECIDED), "test")
    assert sorted(images(draw_images(store, population, 5000, 0))) == sorted(population.names)


def test_the_order_is_fair():
    names = [f"{i}.jpg" for i in range(40)]
    firsts = np.bincount([drawing_order(names, seed)[0] for seed in range(2000)], minlength=40)
    assert firsts.min() > 20  # 50 expected
    assert firsts.max() < 90


def test_splits_that_are_not_there_and_names_that_are_shared_are_refused(data, tmp_path):
    source = read(data[0], UNDECIDED)
    with pytest.raises(InputError, match="--split dev"):
        Population.of(source, "dev")
    with pytest.raises(InputError, match="share a name"):
        Population.of(replace(source, names=["0000.jpg", *source.names[:-1]]))
    arrays = dict(np.load(data[0]))
    del arrays["split"]
    np.savez(tmp_path / "whole.npz", **arrays)
    whole = read(tmp_path / "whole.npz", UNDECIDED)
    assert Population.of(whole).split is None
    assert len(Population.of(whole).names) == 800
    with pytest.raises(InputError, match="names no splits"):
        Population.of(whole, "train")


def test_labels_are_drawn_in_two_phases_by_rank(data, store):
    path, truth, given = data
    judged = judge_data(str(path), UNDECIDED)
    population = Population.of(read(path, UNDECIDED))
    first = draw_labels(store, population, judged, 200, 0)
    assert len(first.units) == 60
    assert first.planned == 200
    assert np.bincount([unit.stratum for unit in first.units]).tolist() == [6] * 10
    for unit in first.units:
        assert given[int(unit.image[:4]), CLASSES.index(unit.class_)] == 1
    again = draw_labels(store, population, judged, 200, 0)
    assert again.units == first.units  # not before all are answered
    answer(store, first.units, truth)
    second = draw_labels(store, population, judged, 200, 0)
    assert second.units[:60] == first.units
    assert len(second.units) == 200
    assert len({(unit.image, unit.class_) for unit in second.units}) == 200
    by_stratum = np.bincount([unit.stratum for unit in second.units[60:]], minlength=10)
    assert by_stratum.max() > by_stratum.min()  # not evenly: most where errors may be
    answer(store, second.units[60:], truth)
    assert len(draw_labels(store, population, judged, 200, 0).units) == 200
    assert len(draw_labels(store, population, judged, 300, 0).units) == 300


def test_images_that_are_gone_do_not_hold_up_the_second_phase(data, store):
    path, truth, _ = data
    judged = judge_data(str(path), UNDECIDED)
    population = Population.of(read(path, UNDECIDED))
    first = draw_labels(store, population, judged, 200, 0)
    answer(store, first.units[1:], truth)
    gone = replace(population, names=[n for n in population.names if n != first.units[0].image])
    assert not replace(first, answers=store.answers(1), names=frozenset(gone.names)).open


def test_decisions_do_not_move_labels_between_strata(data, store):
    path, truth, _ = data
    population = Population.of(read(path, UNDECIDED))
    first = draw_labels(store, population, judge_data(str(path), UNDECIDED), 200, 0)
    answer(store, first.units, truth)
    assert bool(read(path).verified.any())
    again = draw_labels(store, population, judge_data(str(path), UNDECIDED), 200, 0)
    assert len(again.units) == 200


def test_a_sample_of_other_labels_is_not_continued(data, store, tmp_path):
    path, truth, _ = data
    population = Population.of(read(path, UNDECIDED))
    first = draw_labels(store, population, judge_data(str(path), UNDECIDED), 200, 0)
    answer(store, first.units, truth)
    arrays = dict(np.load(path))
    arrays["labels"][0] = 1 - arrays["labels"][0]
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="no longer those that the sample of seed 0"):
        draw_labels(store, population, judge_data(str(path), UNDECIDED), 200, 0)


def rows(file) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def write(file, drawn, source, answered=()) -> int:
    given = dict(zip(source.names, source.given, strict=True))
    return write_sheet_of(file, drawn.sample.unit, drawn.units, answered, given, source.classes)


def fill(file, image, **cells) -> None:
    lines = rows(file)
    for line in lines:
        if line["image"] == image:
            line.update(cells)
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


def test_the_sheet_is_blind(data, store, tmp_path):
    source = read(data[0], UNDECIDED)
    drawn = draw_images(store, Population.of(source), 50, 0)
    file = tmp_path / "sample.csv"
    assert write(file, drawn, source) == 50
    lines = rows(file)
    assert list(lines[0]) == ["image", "given_labels", "true_labels", "unsure"]
    assert [line["image"] for line in lines] == images(drawn)
    assert {line["true_labels"] for line in lines} == {""}
    for line in lines:
        given = source.given[source.names.index(line["image"])]
        assert line["given_labels"] == "|".join(c for c, v in zip(CLASSES, given, strict=True) if v)
    assert classes_file(file).read_text().splitlines() == sorted(CLASSES)


def test_what_somebody_typed_is_never_lost(data, store, tmp_path):
    source = read(data[0], UNDECIDED)
    population = Population.of(source)
    drawn = draw_images(store, population, 50, 0)
    file = tmp_path / "sample.csv"
    write(file, drawn, source)
    first, second, third = images(drawn)[:3]
    fill(file, first, true_labels="ant|bee")
    fill(file, second, unsure="cat")
    more = draw_images(store, population, 60, 0)
    assert write(file, more, source) == 58
    lines = {line["image"]: line for line in rows(file)}
    assert len(lines) == 60
    assert lines[first]["true_labels"] == "ant|bee"
    assert lines[second]["unsure"] == "cat"
    assert lines[third]["true_labels"] == ""
    other = draw_images(store, population, 50, seed=1)
    before = file.read_bytes()
    with pytest.raises(InputError, match="is not in this sample"):
        write(file, other, source)
    assert file.read_bytes() == before


def test_another_file_is_not_written_over(data, store, tmp_path):
    source = read(data[0], UNDECIDED)
    drawn = draw_images(store, Population.of(source), 50, 0)
    file = tmp_path / "notes.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="other columns than image,given_labels"):
        write(file, drawn, source)
    assert file.read_text() == "a,b\n1,2\n"
    noted = tmp_path / "noted.csv"
    noted.write_text("image,given_labels,true_labels,unsure,note\n0001.jpg,,ant,,hm\n")
    with pytest.raises(InputError, match="other columns"):
        write(noted, drawn, source)
    labels = tmp_path / "labels.csv"
    labels.write_text("image,class,given,verdict\n0001.jpg,ant,1,absent\n")
    with pytest.raises(InputError, match="given_labels"):
        read_answers(labels, "image")
    labels.write_text("image,class,given,verdict\na,b,1,absent\na,b,1,present\n")
    with pytest.raises(InputError, match="answered twice"):
        read_answers(labels, "label")


def test_what_is_in_the_store_is_not_asked_again(data, store, tmp_path):
    path, truth, _ = data
    source = read(path, UNDECIDED)
    population = Population.of(source)
    drawn = draw_images(store, population, 50, 0)
    settle(store, images(drawn), truth, sample=drawn.sample.id)
    more = draw_images(store, population, 60, 0)
    assert len(more.open) == 10
    still = {unit.image for unit in more.open}
    answered = [unit for unit in more.units if unit.image not in still]
    file = tmp_path / "sample.csv"
    assert write(file, more, source, answered) == 10
    assert {line["image"] for line in rows(file)} == still


def test_no_name_is_a_formula_in_the_sheet(store, tmp_path):
    path = tmp_path / "x.npz"
    write_npz(path)
    arrays = dict(np.load(path))
    arrays["images"] = np.array([f"=cmd{i}.jpg" for i in range(800)])
    np.savez(path, **arrays)
    source = read(path, UNDECIDED)
    drawn = draw_images(store, Population.of(source), 5, 0)
    file = tmp_path / "sample.csv"
    write(file, drawn, source)
    assert all(line["image"].startswith("'=cmd") for line in rows(file))
    name = images(drawn)[2]
    fill(file, f"'{name}", true_labels="ant")
    assert read_answers(file, "image") == {(name,): ("ant", "")}
    write(file, drawn, source)
    assert read_answers(file, "image") == {(name,): ("ant", "")}


def test_labels_are_asked_for_without_their_rank(data, store, tmp_path):
    path, truth, _ = data
    source = read(path, UNDECIDED)
    judged = judge_data(str(path), UNDECIDED)
    drawn = draw_labels(store, Population.of(source), judged, 200, 0)
    file = tmp_path / "sample-wrong.csv"
    assert write(file, drawn, source) == 60
    assert list(rows(file)[0]) == ["image", "class", "given", "verdict"]
    doubt = torch.tensor(
        [judged.doubt[int(u.image[:4]), CLASSES.index(u.class_)] for u in drawn.units]
    )
    ranks = doubt.argsort().argsort().double()
    order = torch.arange(60).double()
    assert abs(float(torch.corrcoef(torch.stack([ranks, order]))[0, 1])) < 0.35
    assert present(truth, "0000.jpg") == [c for k, c in enumerate(CLASSES) if truth[0, k]]
