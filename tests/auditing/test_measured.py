"""What answers to random samples measure, and what never counts."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from balancemix.auditing.data import judge_data
from balancemix.auditing.findings import find
from balancemix.auditing.measured import Measured
from balancemix.auditing.passport import passport
from balancemix.auditing.sample import Population, draw_images, draw_labels
from balancemix.auditing.wording import sentences
from balancemix.data import ReadOptions, read
from balancemix.data.decisions.answers import Decision
from balancemix.data.decisions.store import Store
from balancemix.errors import InputError
from balancemix.estimates.agreement import kappa
from tests.auditing.people import CLASSES, answer, settle, write_npz

UNDECIDED = ReadOptions(verified=False)
TRAIN = slice(0, 600)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """Judge data with planted errors once; tests copy its store."""
    path = tmp_path_factory.mktemp("measured") / "x.npz"
    truth, given = write_npz(path)
    return path, truth, given, judge_data(str(path), UNDECIDED)


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "x.balancemix", create=True) as store:
        yield store


def population(known) -> Population:
    return Population.of(read(known[0], UNDECIDED))


def settled(known, store, count: int, seed: int = 0, **how) -> Measured:
    drawn = draw_images(store, population(known), count, seed)
    settle(store, [unit.image for unit in drawn.units], known[1], sample=drawn.sample.id, **how)
    return Measured.of(known[3], store)


def errors(known, side: int) -> int:
    _, truth, given, _ = known
    return int(((given == side) & (truth != given))[TRAIN].sum())


def test_nothing_is_measured_without_a_sample(known, store):
    measured = Measured.of(known[3], store)
    assert (measured.figures, measured.calibration) == ({}, {})
    assert list(sentences(measured)) == []


def test_fifty_images_measure_both_sides(known, store):
    measured = settled(known, store, 50)
    assert measured.population == 600
    for problem, side in (("wrong", 1), ("missing", 0)):
        figures = measured.figures[problem]
        assert figures.total.low <= errors(known, side) <= figures.total.high
        assert figures.rate.low <= figures.rate.value <= figures.rate.high
    wrong = measured.figures["wrong"]
    given = int((known[2][TRAIN] == 1).sum())
    assert wrong.labels == given
    assert wrong.rate.value == pytest.approx(wrong.total.value / given)
    assert "unknown" not in measured.figures


def test_intervals_hold_the_truth_for_most_seeds(known, tmp_path):
    held = {"wrong": 0, "missing": 0}
    for seed in range(20):
        with Store.open(tmp_path / f"{seed}", create=True) as store:
            figures = settled(known, store, 50, seed).figures
        for problem, side in (("wrong", 1), ("missing", 0)):
            held[problem] += (
                figures[problem].total.low <= errors(known, side) <= figures[problem].total.high
            )
    assert min(held.values()) >= 17


def test_counts_only_until_the_planned_number_is_answered(known, store):
    drawn = draw_images(store, population(known), 50, 0)
    names = [unit.image for unit in drawn.units]
    settle(store, names[:49], known[1], sample=drawn.sample.id)
    measured = Measured.of(known[3], store)
    assert measured.figures == {}
    assert (measured.pictures.answered, measured.pictures.drawn) == (49, 50)
    (line,) = sentences(measured)
    assert line == "49 of 50 images of the sample are answered; figures come when all are"
    settle(store, names[49:], known[1], sample=drawn.sample.id)
    assert Measured.of(known[3], store).figures


def test_fewer_than_fifty_measure_nothing(known, store):
    measured = settled(known, store, 20)
    assert measured.figures == {}
    (line,) = sentences(measured)
    assert line == "20 images are too few to measure anything; --sample 50 draws more"


def test_an_extended_sample_keeps_its_figures_until_the_rest_is_answered(known, store):
    before = settled(known, store, 50).figures
    drawn = draw_images(store, population(known), 100, 0)
    names = [unit.image for unit in drawn.units]
    settle(store, names[50:70], known[1], sample=drawn.sample.id)
    measured = Measured.of(known[3], store)
    assert (measured.pictures.used, measured.pictures.answered) == (50, 70)
    assert measured.figures["wrong"].total == before["wrong"].total
    settle(store, names[70:], known[1], sample=drawn.sample.id)
    assert Measured.of(known[3], store).pictures.used == 100


def test_every_image_settled_is_known_exactly(known, store):
    figures = settled(known, store, 600).figures
    for problem, side in (("wrong", 1), ("missing", 0)):
        total = figures[problem].total
        assert (round(total.low), round(total.value), round(total.high)) == (
            errors(known, side),
        ) * 3


def test_decisions_on_the_list_measure_nothing(known, store):
    measured = settled(known, store, 50)
    findings = find(known[3], 0.5)
    drawn = {int(unit.image[:4]) for unit in store.units(1)}
    store.record(
        Decision(findings.names[f.row], CLASSES[f.column], "absent", "Ana", "focus", whole=True)
        for f in findings.of("wrong")
        if f.row not in drawn
    )
    after = Measured.of(known[3], store)
    assert after.figures["wrong"].total == measured.figures["wrong"].total
    assert after.as_json() == measured.as_json()


def test_unsure_answers_widen_both_ends(known, store):
    drawn = draw_images(store, population(known), 50, 0)
    names = [unit.image for unit in drawn.units]
    settle(store, names[:45], known[1], sample=drawn.sample.id)
    settle(store, names[45:], known[1], unsure=["ant"], sample=drawn.sample.id)
    figures = Measured.of(known[3], store).figures
    assert sum(each.unsure for each in figures.values()) == 5
    for each in figures.values():
        if each.unsure:
            assert each.total.error.high > each.total.right.high
            assert each.total.high == each.total.error.high
    assert any("are unsure" in line for line in sentences(Measured.of(known[3], store)))


def test_two_people_who_differ_are_unsure(known, store):
    measured = settled(known, store, 50)
    image = store.units(1)[0].image
    truth = known[1].copy()
    truth[int(image[:4])] = 1 - truth[int(image[:4])]
    settle(store, [image], truth, reviewer="Ben", sample=1)
    after = Measured.of(known[3], store)
    assert sum(each.unsure for each in after.figures.values()) == 6
    assert after.pictures.reviewers == ("Ana", "Ben")
    assert after.figures["missing"].total.high > measured.figures["missing"].total.high


def test_labels_by_rank_measure_the_wrong_ones(known, store):
    judged = known[3]
    drawn = draw_labels(store, population(known), judged, 200, 0)
    answer(store, drawn.units, known[1])
    assert Measured.of(judged, store).figures == {}  # a part of 200
    drawn = draw_labels(store, population(known), judged, 200, 0)
    answer(store, drawn.units[60:], known[1])
    measured = Measured.of(judged, store)
    assert list(measured.figures) == ["wrong"]
    figures = measured.figures["wrong"]
    assert figures.total.low <= errors(known, 1) <= figures.total.high
    assert figures.seen == 200
    most, ends = figures.top
    order = judged.doubt[TRAIN].masked_fill(judged.given[TRAIN] != 1, -torch.inf).flatten()
    top = order.argsort(descending=True)[:most]
    actual = int((torch.from_numpy(known[1][TRAIN]).flatten()[top] == 0).sum())
    assert ends.low <= actual <= ends.high
    assert any("200 given labels drawn by rank" in line for line in sentences(measured))
    both = settled(known, store, 50)
    assert both.figures["wrong"].total == figures.total
    assert "missing" in both.figures


def test_probabilities_are_measured_and_keep_the_order(known, store):
    judged = known[3]
    measured = settled(known, store, 50)
    findings = find(judged, 0, measured.calibration)
    assert findings.measured == {"wrong", "missing"}
    modelled = find(judged, 0)
    for problem, side in (("wrong", 1), ("missing", 0)):
        after, before = findings.of(problem), modelled.of(problem)
        assert torch.equal(after.row, before.row)
        assert bool((after.probability.diff() <= 0).all())
        inside = after.row < 600
        total = float(after.probability[inside].double().sum())
        assert total == pytest.approx(measured.figures[problem].total.value, rel=0.02)
        assert 0.5 < total / max(errors(known, side), 1) < 2


def test_the_judge_may_know_nothing_of_the_answers(known, store, tmp_path):
    """The reason for judging twice: images that people settled have no errors left."""
    path = known[0]
    with Store.open(path.with_name("x.npz.balancemix"), create=True) as beside:
        plain = settled(known, beside, 50)
        informed = judge_data(str(path))
        assert bool(informed.verified.any())
        biased = Measured.of(informed, beside)
    assert biased.figures == {}
    assert "learned from the answers" in next(sentences(biased))
    assert plain.figures["wrong"].errors > 0
    path.with_name("x.npz.balancemix").joinpath("review.sqlite").unlink()


def test_images_that_are_gone_are_left_out(known, store):
    drawn = draw_images(store, population(known), 60, 0)
    names = [unit.image for unit in drawn.units]
    settle(store, names[:50] + names[51:], known[1], sample=drawn.sample.id)
    assert Measured.of(known[3], store).pictures.used == 50
    judged = known[3]
    place = {name: name for name in judged.names}
    renamed = [("gone.jpg" if name == names[50] else place[name]) for name in judged.names]
    after = Measured.of(replace(judged, names=renamed), store)
    assert (after.pictures.drawn, after.pictures.used) == (59, 59)


def test_classes_are_stated_where_enough_was_seen(known, store):
    figures = settled(known, store, 200).figures["wrong"]
    assert figures.classes
    _, truth, given, _ = known
    for name, estimate in figures.classes.items():
        k = CLASSES.index(name)
        actual = int(((given[TRAIN, k] == 1) & (truth[TRAIN, k] == 0)).sum())
        assert estimate.low - 2 <= actual <= estimate.high + 2


def test_the_passport_states_who_when_how_and_intervals(known, store):
    measured = settled(known, store, 50, reviewer="A|na *x*")
    text = passport(measured, "photos/", "1.0")
    assert text.startswith("## Label noise, measured\n")
    assert "50 images, all classes of each" in text
    assert "`balancemix audit photos/ --sample 50`" in text
    assert "answered by A\\|na \\*x\\*, 20" in text
    for figures in measured.figures.values():
        assert f"{figures.total.low:,.0f} to {figures.total.high:,.0f}" in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in table} == {5}


def twice(known, store, count):
    """Let Ben answer labels of Ana's images too; he is wrong about every tenth."""
    truth, measured = known[1], settled(known, store, 50)
    labels = sorted((i, c) for i, c, state, named in store.states() if named)[:count]
    is_there = [truth[int(image[:4]), CLASSES.index(name)] == 1 for image, name in labels]
    says = [there ^ (i % 10 == 0) for i, there in enumerate(is_there)]
    words = {True: "present", False: "absent"}
    store.record(
        Decision(image, name, words[bool(said)], "B|en", "focus")
        for (image, name), said in zip(labels, says, strict=True)
    )
    return Measured.of(known[3], store), kappa(is_there, says), measured


def test_the_passport_says_how_far_two_people_agree(known, store):
    measured, expected, before = twice(known, store, 60)
    assert "κ" not in passport(before, "photos/", "1.0")
    ends = f"{expected.value:.2f} ({expected.low:.2f} to {expected.high:.2f})"
    text = passport(measured, "photos/", "1.0")
    assert (
        "- 60 labels, of samples and findings, were answered by two people (Ana, B\\|en), neither "
        f"seeing the other's answer: 54 alike, Cohen's κ {ends}.\n"
    ) in text
    facts = measured.as_json()["agreement"]
    assert (facts["labels"], facts["same"], facts["people"]) == (60, 54, ["Ana", "B|en"])
    assert facts["kappa"]["value"] == pytest.approx(expected.value)


def test_of_few_labels_of_two_people_there_is_no_kappa(known, store):
    measured = twice(known, store, 20)[0]
    assert "20 labels, of samples" in passport(measured, "photos/", "1.0")
    assert "18 alike (no κ: under 50 labels)." in passport(measured, "photos/", "1.0")
    assert measured.as_json()["agreement"]["kappa"] is None


def test_there_is_no_passport_before_anything_is_measured(known, store):
    with pytest.raises(InputError, match="nothing is measured yet"):
        passport(Measured.of(known[3], store), "photos", "1.0")
    with pytest.raises(InputError, match="20 images are too few"):
        passport(settled(known, store, 20), "photos", "1.0")


def test_unknown_labels_are_measured_as_present_or_not(tmp_path, store):
    path = tmp_path / "u.npz"
    truth, given = write_npz(path)
    arrays = dict(np.load(path))
    hidden = np.random.default_rng(1).random(given.shape) < 0.3
    arrays["labels"] = np.where(hidden, np.nan, given).astype(np.float32)
    np.savez(path, **arrays)
    judged = judge_data(str(path), UNDECIDED)
    drawn = draw_images(store, Population.of(read(path, UNDECIDED)), 50, 0)
    settle(store, [unit.image for unit in drawn.units], truth, sample=drawn.sample.id)
    figures = Measured.of(judged, store).figures["unknown"]
    actual = int((truth[TRAIN] == 1)[hidden[TRAIN]].sum())
    assert figures.total.low <= actual <= figures.total.high
    assert figures.labels == int(hidden[TRAIN].sum())
    assert figures.calibration is not None
