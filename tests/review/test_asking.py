"""State, queue and changes: what is asked, of whom, and what shows of the answers of others."""

import numpy as np
import pytest

from balancemix.data import read
from balancemix.data.decisions import store_folder
from balancemix.data.decisions.answers import Decision, Settled
from balancemix.data.decisions.snapshots import Suspicion
from balancemix.data.decisions.store import Store
from balancemix.review.leases import SECONDS, Leases
from tests.review.conftest import (
    AS_IN_FILES,
    CLASSES,
    FINDINGS,
    LABELS,
    add_snapshot,
    suspicions,
)


def test_the_state_describes_data_classes_and_progress(review):
    state = review.browser("Ana").json("/api/state")
    assert state["rows"] == len(LABELS)
    assert (state["data"], state["me"], state["pictures"], state["seq"]) == (
        "photos",
        "Ana",
        True,
        0,
    )
    assert state["findings"] == state["open"] == len(FINDINGS)
    assert state["expected"] == {"wrong": 2.5, "missing": 4.25}
    assert state["labels"] == 24
    assert state["file"] == "photos.balancemix/review.sqlite"
    assert state["changed"] is None
    assert state["sample"] is None
    assert state["question"] == "Is “{class}” in this picture?"
    dog = state["classes"][1]
    assert dog == {
        "id": 1, "name": "dog", "given": 3, "missing": 2, "wrong": 1, "unknown": 0,
        "judged": True, "rule": "",
    }  # fmt: skip
    assert not state["classes"][2]["judged"]


def test_pictures_come_surest_first_with_their_labels_and_findings(review):
    browser = review.browser("Ana")
    assert browser.rows() == [0, 1, 2, 3, 4, 5]
    item = browser.json("/api/item?row=0")
    assert (item["image"]["row"], item["image"]["name"]) == (0, "0.png")
    assert (item["image"]["w"], item["image"]["h"]) == (60, 40)
    assert item["image"]["v"]
    assert item["labels"] == [0]
    assert [(f["class"], f["problem"], f["given"], f["suggested"], f["p"], f["state"], f["mine"])
            for f in item["findings"]] == [
        (1, "missing", 0, 1, 0.95, "open", None),
        (0, "wrong", 1, 0, 0.6, "open", None),
    ]  # fmt: skip


def test_a_filter_chooses_a_class_and_a_problem(review):
    browser = review.browser("Ana")
    assert browser.rows("class=1") == [0, 1, 4]
    assert browser.rows("class=1&kind=missing") == [0, 4]
    assert browser.rows("kind=wrong") == [1, 3, 0]
    reply = browser.json("/api/queue?kind=wrong")
    assert [len(item["findings"]) for item in reply["items"]] == [1, 1, 1]
    assert (reply["open"], reply["answered"]) == (3, 0)


@pytest.mark.parametrize(
    "query", ["class=3", "class=-1", "class=x", "kind=both", "n=61", "n=x", "holding=x", "row=8",
              "unsure=2", "holding=" + ",".join("1" * 200)],
)  # fmt: skip
def test_odd_queries_are_refused(review, query):
    path = "/api/item" if query.startswith("row") else "/api/queue"
    reply = review.browser("Ana").get(f"{path}?{query}")
    assert reply.status_code in (400, 404)
    assert set(reply.json()) == {"error", "message"}


def test_what_is_answered_is_not_asked_again_and_unsure_only_of_others(review):
    ana, ben = review.browser("Ana"), review.browser("Ben")
    ana.answer("1.png", "dog", "absent")
    ana.answer("2.png", "cat", "unsure")
    assert ana.rows() == [0, 3, 4, 5]
    state = ana.json("/api/state")
    assert (state["open"], state["unsure"]) == (5, 1)
    assert ana.rows("unsure=1") == [2]
    ana.rows(count=0)  # gives back what it held
    assert 2 in ben.rows()
    assert 1 not in ben.rows()
    reply = ana.json("/api/queue?n=0")
    assert (reply["open"], reply["answered"]) == (4, 2)


def test_a_tab_is_not_given_what_it_or_another_one_holds(review):
    ana, ben = review.browser("Ana"), review.browser("Ben")
    assert ana.rows(count=2) == [0, 1]
    assert ana.rows("holding=0,1", 2) == [2, 3]
    reply = ben.json("/api/queue?n=6")
    assert [item["image"]["row"] for item in reply["items"]] == [4, 5]
    assert reply["others"] == {"Ana": 4}
    assert ben.rows("anyway=1", 2) == [0, 1]
    assert ana.rows("holding=2,3", 2) == [0, 1]  # still Ana's


def test_leases_end_and_are_taken_back():
    now = [0.0]
    leases = Leases(lambda: now[0])
    leases.hold("a", "Ana", [1, 2])
    leases.hold("b", "Ben", [2, 3])
    assert leases.others("b") == {1: "Ana", 2: "Ana"}
    assert leases.others("a") == {3: "Ben"}
    leases.hold("a", "Ana", [2])
    assert leases.others("b") == {2: "Ana"}
    now[0] = SECONDS + 1
    assert leases.others("b") == {}


def test_blind_shows_no_probability(make):
    browser = make(blind=True).browser("Ana")
    assert browser.json("/api/state")["blind"]
    text = browser.get("/api/queue?n=6").text
    assert '"p": null' in text
    assert not any(str(p) in text for _, _, _, p in FINDINGS)


def test_minutes_are_said_after_ten_answers(review):
    browser = review.browser("Ana")
    for image in range(8):
        for name in CLASSES[:2]:
            if (f"{image}.png", name) not in {("4.png", "dog"), ("0.png", "dog")}:
                browser.answer(f"{image}.png", name, "present", ms=30_000)
    reply = browser.json("/api/queue?n=1")
    assert reply["minutes"] == 2  # four questions, half a minute each


def test_others_are_told_of_changes_and_one_is_not_told_of_ones_own(review):
    ana, ben, second = review.browser("Ana"), review.browser("Ben"), review.browser("Ana")
    reply = ana.answer("1.png", "dog", "absent")
    told = {"row": 1, "class": 1, "state": "decided", "who": "Ana"}
    for browser, labels in ((ben, [told]), (second, [told]), (ana, [])):
        assert browser.json("/api/changes?since=0") == {"seq": reply["seq"], "labels": labels}
        assert browser.json(f"/api/changes?since={reply['seq']}")["labels"] == []
    ben.answer("1.png", "dog", "present")
    assert ana.json("/api/changes?since=1")["labels"] == [
        {"row": 1, "class": 1, "state": "disputed", "who": "Ben"}
    ]
    assert ana.json("/api/state")["disputed"] == 1


def test_two_people_are_asked_a_share_of_the_questions_blind_to_each_other(make):
    review = make(overlap=1.0)
    ana, ben = review.browser("Ana"), review.browser("Ben")
    ana.answer("1.png", "dog", "absent")
    ana.answer("2.png", "cat", "present")
    assert ben.rows() == [0, 3, 4, 5]  # nobody knows Ben before he answers
    assert ben.answer("0.png", "dog", "present")["told"] == []
    assert {1, 2} <= set(ben.rows())
    finding = ben.json("/api/item?row=1")["findings"][0]
    assert (finding["state"], finding["mine"]) == ("open", None)
    changes = ben.json("/api/changes?since=0")["labels"]
    assert (1, 1) not in {(each["row"], each["class"]) for each in changes}
    reply = ben.answer("1.png", "dog", "present")
    assert reply["told"] == []
    assert reply["saved"][0]["state"] == "disputed"
    assert 1 not in ben.rows()
    assert 1 not in ana.rows()


def test_the_overlap_is_about_its_share(make):
    review = make(overlap=0.3)
    drawn = review.thread.run(review.desk._drawn)
    assert drawn.dtype == np.bool_
    assert 0 <= drawn.sum() <= len(FINDINGS)
    again = make(overlap=0.3)
    assert again.thread.run(again.desk._drawn).tolist() == drawn.tolist()


def test_a_settled_picture_answers_its_findings(review):
    ana = review.browser("Ana")
    whole = Settled("0.png", "Ana", present=["dog"], shown=["cat", "dog"])
    review.thread.run(review.desk.settle, whole)
    assert ana.rows() == [1, 2, 3, 4, 5]
    findings = ana.json("/api/item?row=0")["findings"]
    assert [(f["state"], f["mine"]) for f in findings] == [
        ("decided", "present"), ("decided", "absent"),
    ]  # fmt: skip
    assert ana.json("/api/state")["seq"] == 2  # the label that was named, and the picture
    ana.undo(whole.client)
    assert sorted(ana.rows()) == [0, 1, 2, 3, 4, 5]


def test_what_was_not_shown_in_a_settled_picture_is_still_asked(review):
    ana = review.browser("Ana")
    review.thread.run(review.desk.settle, Settled("0.png", "Ana", present=["dog"], shown=["dog"]))
    assert sorted(ana.rows()) == [0, 1, 2, 3, 4, 5]
    assert [f["state"] for f in ana.json("/api/item?row=0")["findings"]] == ["decided", "open"]


def test_a_newer_audit_is_taken_in(review):
    ana = review.browser("Ana")
    ana.answer("1.png", "dog", "absent")
    add_snapshot(review.desk.source, suspicions()[2:4])
    state = ana.json("/api/state")
    assert (state["findings"], state["open"]) == (2, 1)
    assert ana.rows() == [2]


def test_answers_of_another_process_are_taken_in(review):
    ana = review.browser("Ana")
    assert ana.rows(count=1) == [0]
    with Store.open(store_folder(review.folder)) as store:
        store.record([Decision("0.png", "dog", "present", "Zoë"),
                      Decision("0.png", "cat", "present", "Zoë")])  # fmt: skip
    state = ana.json("/api/state")
    assert state["people"] == ["Zoë"]
    assert state["open"] == len(FINDINGS) - 2
    assert 0 not in ana.rows()
    assert len(ana.json("/api/changes?since=0")["labels"]) == 2


def test_one_question_in_ten_is_drawn_at_random(make, photos):
    many = [
        Suspicion(f"{i}.png", name, "missing", 0, 1, 0.9 - 0.05 * i)
        for i, labels in enumerate(LABELS)
        for name in CLASSES
        if name not in labels
    ]
    add_snapshot(read(photos, AS_IN_FILES), many)
    browser = make().browser("Ana")
    items = browser.json("/api/queue?n=8")["items"]
    flags = [finding["probe"] for item in items for finding in item["findings"]]
    assert (len(items), len(flags), sum(flags)) == (8, 14, 1)
    probed = [item for item in items if any(f["probe"] for f in item["findings"])]
    again = browser.json(f"/api/item?row={probed[0]['image']['row']}")["findings"]
    assert sum(finding["probe"] for finding in again) == 1
    other = make().browser("Ana").json("/api/queue?n=8")["items"]
    assert [item["image"]["row"] for item in other] == [item["image"]["row"] for item in items]


def test_a_label_that_is_no_longer_what_it_was_is_not_asked_about(make, photos):
    table = photos / "labels.csv"
    make()
    table.write_text(table.read_text().replace("0.png,cat\n", "0.png,cat|dog\n"))
    state = make().browser("Ana").json("/api/state")
    assert state["findings"] == len(FINDINGS) - 1
    assert state["changed"] == (
        "The data has changed since this audit: its labels are not what they were. Your answers "
        "are kept. Run the audit again to continue."
    )


def test_capital_letters_do_not_make_another_person(review):
    review.browser("Ana").answer("0.png", "dog", "present")
    again = review.browser("ANA")
    assert again.json("/api/state")["me"] == "Ana"
    assert again.json("/api/item?row=0")["findings"][0]["mine"] == "present"
