"""Whole pictures: which come next, what is saved, and the sample that `audit` measures."""

import time
import uuid

import numpy as np
import pytest

from balancemix.auditing.data import judge_data
from balancemix.auditing.findings import find
from balancemix.auditing.measured import Measured
from balancemix.auditing.sample import Population, draw_images
from balancemix.auditing.snapshot import save_snapshot
from balancemix.auditing.wording import percent
from balancemix.data import ReadOptions, read
from balancemix.data.decisions import store_folder
from balancemix.data.decisions.answers import Settled
from balancemix.data.decisions.store import Store
from balancemix.review.measuring import result
from balancemix.review.palette import likeliest, shares
from tests.auditing.people import CLASSES as SIX
from tests.auditing.people import present, write_npz
from tests.review.conftest import CLASSES, Review

UNDECIDED = ReadOptions(verified=False)


def body(image, there, not_there=(), unsure=(), shown=CLASSES, **more):
    return {"client": str(uuid.uuid4()), "image": image, "there": list(there),
            "not_there": list(not_there), "unsure": list(unsure), "shown": list(shown),
            "sample": None, "ms": 9100, **more}  # fmt: skip


def settle(browser, *arguments, **more):
    sent = body(*arguments, **more)
    reply = browser.post("/api/settle", sent)
    assert reply.status_code == 200, reply.text
    return sent["client"], reply.json()


def names(reply) -> list[str]:
    return [item["image"]["name"] for item in reply["items"]]


def test_a_picture_is_saved_once_with_what_is_there_and_what_is_not(review):
    ana = review.browser()
    sent = body("1.png", ["cat", "owl"], ["dog"])
    for _ in range(2):
        assert ana.post("/api/settle", sent).status_code == 200
    with review.store() as store:
        states = {
            (each.image, each.class_): (each.state.verdict, each.state.verified)
            for each in store.states()
        }
    assert states == {
        ("1.png", "cat"): ("present", True),
        ("1.png", "dog"): ("absent", True),
        ("1.png", "owl"): ("present", True),
    }
    assert len(review.desk.log.entries) == 4


def test_only_what_was_shown_is_verified(review):
    ana = review.browser()
    settle(ana, "5.png", [], shown=["cat"])
    with review.store() as store:
        assert [(each.class_, each.state.verdict) for each in store.states()] == [("cat", "absent")]


def test_an_undone_picture_is_open_again(review):
    ana = review.browser()
    everything = "/api/settle?order=errors&n=20"
    before = names(ana.json(everything))
    client, _ = settle(ana, "0.png", ["dog"], ["cat"])
    assert "0.png" not in names(ana.json(everything))
    ana.undo(client)
    assert names(ana.json(everything)) == before
    with review.store() as store:
        assert not any(label.state.verified for label in store.states())


def test_most_expected_errors_come_first_and_random_is_another_order(review):
    ana = review.browser()
    errors = names(ana.json("/api/settle?order=errors&n=20"))
    assert errors[:2] == ["0.png", "1.png"]  # 1.55 errors, then 0.9
    mixed = names(ana.json("/api/settle?order=random&n=20"))
    assert sorted(mixed) == sorted(errors) == [f"{i}.png" for i in range(8)]
    assert mixed != errors


def test_nothing_of_the_audit_is_told(review):
    ana = review.browser()
    for order in ("random", "errors"):
        text = ana.get(f"/api/settle?order={order}&n=20").text
        for word in ('"p"', "0.95", "findings", "suggested", "problem"):
            assert word not in text


def test_outside_a_sample_labels_are_as_decided_and_the_palette_has_all_others(review):
    ana = review.browser()
    ana.answer("0.png", "dog", "present")
    ana.answer("0.png", "cat", "absent")
    items = ana.json("/api/settle?order=errors&n=20")["items"]
    first = next(item for item in items if item["image"]["name"] == "0.png")
    assert first["labels"] == [1]
    assert sorted(first["palette"]) == [0, 2]


def test_two_people_are_given_different_pictures(review):
    ana, ben = review.browser("Ana"), review.browser("Ben")
    mine = names(ana.json("/api/settle?order=random&n=5"))
    his = ben.json("/api/settle?order=random&n=20")
    assert set(names(his)).isdisjoint(mine)
    assert his["others"] == {"Ana": 5}
    assert len(names(ben.json("/api/settle?order=random&n=20&anyway=1"))) == 8


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"image": "9.png"}, 404),
        ({"there": ["cow"]}, 404),
        ({"there": ["cat"], "unsure": ["cat"]}, 400),
        ({"there": ["cat", "cat"]}, 400),
        ({"sample": 7}, 404),
        ({"shown": "cat"}, 400),
        ({"width": 5}, 400),
        ({"client": "short"}, 400),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_saved(review, change, status):
    ana = review.browser()
    reply = ana.post("/api/settle", {**body("0.png", []), **change})
    assert reply.status_code == status
    assert reply.json()["message"].endswith(".")
    assert len(review.desk.log) == 0


def test_whoever_has_no_name_settles_nothing(review):
    nobody = review.browser(None)
    nobody.post("/api/key", {"key": "k" * 43, "name": None})
    assert nobody.post("/api/settle", body("0.png", [])).status_code == 403
    assert nobody.post("/api/sample", {"size": 5}).status_code == 403


# The sample


def test_the_page_draws_the_sample_that_audit_draws(review):
    ana = review.browser()
    drawn = ana.post("/api/sample", {"size": 5}).json()["sample"]
    assert drawn == {"id": 1, "drawn": 5, "answered": 0}
    shown = names(ana.json("/api/settle?order=sample&n=20"))
    with Store.open(store_folder(review.folder)) as store:
        population = Population.of(read(review.folder, UNDECIDED))
        same = draw_images(store, population, 5, seed=0)
        assert [unit.image for unit in same.units] == shown
        more = draw_images(store, population, 7, seed=0)  # in a terminal, meanwhile
    assert ana.json("/api/state")["sample"] == {"id": 1, "drawn": 7, "answered": 0}
    assert names(ana.json("/api/settle?order=sample&n=20")) == [u.image for u in more.units]
    for _ in range(2):  # a request that comes twice
        extended = ana.post("/api/sample", {"size": 8}).json()["sample"]
    assert extended == {"id": 1, "drawn": 8, "answered": 0}
    assert names(ana.json("/api/settle?order=sample&n=20"))[:7] == [u.image for u in more.units]


def test_the_page_goes_on_with_the_newest_sample_whatever_its_seed(review):
    with Store.open(store_folder(review.folder)) as store:
        drawn = draw_images(store, Population.of(read(review.folder, UNDECIDED)), 3, seed=5)
    ana = review.browser()
    assert names(ana.json("/api/settle?order=sample&n=20")) == [u.image for u in drawn.units]
    ana.post("/api/sample", {"size": 4})
    with review.store() as store:
        assert [(each.id, each.seed) for each in store.samples()] == [(1, 5)]


def test_in_a_sample_every_class_must_be_shown(review):
    ana = review.browser()
    ana.post("/api/sample", {"size": 2})
    image = names(ana.json("/api/settle?order=sample&n=1"))[0]
    sent = body(image, [], shown=["cat", "dog"], sample=1)
    reply = ana.post("/api/settle", sent)
    assert (reply.status_code, reply.json()["error"]) == (400, "sample")
    # Outside of the sample it may be settled, but does not count for it.
    settle(ana, image, [], shown=CLASSES)
    assert ana.json("/api/sample")["sample"]["answered"] == 0
    client, reply = settle(ana, image, [], sample=1)
    assert reply["sample"] == {"id": 1, "drawn": 2, "answered": 1}
    ana.undo(client)
    assert ana.json("/api/sample")["sample"]["answered"] == 0


def test_a_picture_that_was_settled_before_a_class_was_added_is_asked_again(review):
    ana = review.browser()
    ana.post("/api/sample", {"size": 2})
    image = names(ana.json("/api/settle?order=sample&n=1"))[0]
    with Store.open(store_folder(review.folder)) as store:
        store.settle([Settled(image, "Ben", [], ["cat", "dog"], sample=1)])
    assert ana.json("/api/sample")["sample"]["answered"] == 0
    with Store.open(store_folder(review.folder)) as store:
        store.settle([Settled(image, "Ben", [], ["owl"], sample=1)])
        assert len(store.answers(1, CLASSES)) == 1
    assert ana.json("/api/sample")["sample"]["answered"] == 1


def test_the_palette_has_suspects_first_then_what_is_often_beside():
    given = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, -1]])
    table = shares(given)
    assert likeliest([0], {}, table) == [1, 2, 3]
    assert likeliest([0], {3: 0.2}, table) == [3, 1, 2]
    assert likeliest([], {}, table)[-1] == 3


# What it measured


@pytest.fixture
def features(tmp_path):
    """Serve features with planted errors, of which the truth is known."""
    path = tmp_path / "x.npz"
    truth, _ = write_npz(path)
    served = Review(path)
    served.desk.sampling.judge = lambda verified: judge_data(
        str(path), ReadOptions(verified=verified)
    )
    yield served, truth
    served.close()


def measured(browser):
    end = time.monotonic() + 60
    while (reply := browser.json("/api/sample"))["working"]:
        assert time.monotonic() < end
        time.sleep(0.01)
    return reply


def test_the_result_comes_when_all_are_answered_and_is_that_of_audit(features):
    review, truth = features
    ana = review.browser()
    ana.post("/api/sample", {"size": 50})
    images = names(ana.json("/api/settle?order=sample&n=20"))
    while images:
        for image in images:
            reply = ana.json("/api/sample")
            assert (reply["result"], reply["working"]) == (None, False)
            settle(ana, image, present(truth, image), shown=SIX, sample=1)
        images = names(ana.json("/api/settle?order=sample&n=20"))
    reply = measured(ana)
    assert reply["sample"] == {"id": 1, "drawn": 50, "answered": 50}
    with review.store() as store:
        same = Measured.of(judge_data(str(review.folder), UNDECIDED), store)
    assert reply["result"] == result(same)
    wrong, missing = same.figures["wrong"].rate, same.figures["missing"].rate
    assert reply["result"][0].startswith(f"{percent(wrong.value)} of the given labels are wrong (")
    assert f"{percent(missing.value)} of what is there is not labelled" in reply["result"][0]
    assert reply["result"][0].endswith(": 50 pictures, measured.")
    # From now on the findings are measured, and none is about a picture that was settled.
    state = ana.json("/api/state")
    assert state["measured"]
    assert state["findings"] > 0
    asked = {item["image"]["name"] for item in ana.json("/api/queue?n=60")["items"]}
    with review.store() as store:
        assert asked.isdisjoint(unit.image for unit in store.units(1))
    # Fifty more hide it again.
    ana.post("/api/sample", {"size": 100})
    reply = ana.json("/api/sample")
    assert (reply["result"], reply["sample"]["drawn"]) == (None, 100)


def test_what_was_asked_is_asked_on_though_it_is_measured_to_be_improbable(features):
    review, _ = features
    ana = review.browser()
    with review.store() as store:
        save_snapshot(store, find(judge_data(str(review.folder), UNDECIDED)))
    before = ana.json("/api/state")["findings"]
    assert before > 50
    ana.post("/api/sample", {"size": 50})
    given = review.desk.source.given
    while items := ana.json("/api/settle?order=sample&n=20")["items"]:
        for image in names({"items": items}):  # as if nothing was wrong: the audit errs throughout
            row = review.desk.place[image]
            there = [name for name, label in zip(SIX, given[row].tolist(), strict=True) if label]
            settle(ana, image, there, shown=SIX, sample=1)
    measured(ana)
    state = ana.json("/api/state")
    with review.store() as store:
        settled = {unit.image for unit in store.units(1)}
        low = [each for each in store.newest_snapshot().findings if each.probability < 0.5]
    assert state["measured"]
    assert 0 < before - state["findings"] <= 6 * 50  # those of settled pictures are decided
    assert low
    assert settled.isdisjoint(each.image for each in low)
    assert ana.json("/api/queue?n=6")["items"]
