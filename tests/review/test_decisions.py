"""Answers over HTTP: each saved once, all of a request or nothing, undone only by its giver."""

import sqlite3

import pytest

from balancemix.data.decisions import store_folder
from balancemix.data.decisions.store import Store
from tests.review.conftest import Review, decision


def rows(review, columns="image.name, class.name, verdict, mode"):
    """Read the decisions of the database."""
    with sqlite3.connect(store_folder(review.folder) / "review.sqlite") as connection:
        query = f"""SELECT {columns} FROM decision JOIN image ON image.id=image
            JOIN class ON class.id=class JOIN reviewer ON reviewer.id=reviewer ORDER BY seq"""
        found = connection.execute(query).fetchall()
    connection.close()
    return found


def test_an_answer_is_in_the_database_when_the_reply_comes(review):
    ana = review.browser("Ana")
    sent = decision("0.png", "dog", "present", suggested=1, p=0.95, probe=True, batch=None)
    reply = ana.send(sent)
    assert reply == {
        "saved": [{"client": sent["client"], "seq": 1, "state": "decided", "verified": True}],
        "seq": 1,
        "told": [],
    }
    columns = "reviewer.name, client, suggested, p, probe, width, whole, ms, snapshot"
    assert rows(review, columns) == [("Ana", sent["client"], 1, 0.95, 1, 1280, 0, 1840, 1)]


def test_a_request_that_comes_twice_is_saved_once(review):
    ana = review.browser("Ana")
    sent = [decision("0.png", "dog", "present"), decision("1.png", "dog", "absent")]
    first = ana.send(*sent)
    assert ana.send(*sent)["saved"] == first["saved"]
    assert len(rows(review)) == 2
    undo = {"client": "u" * 36, "verdict": "undone", "undoes": sent[0]["client"]}
    assert ana.send(undo)["saved"][0]["undone"] == 1
    again = ana.send(undo)
    assert again["saved"][0]["undone"] == 0
    assert (again["saved"][0]["seq"], again["seq"]) == (3, 3)
    assert ana.send(*sent)["saved"][0]["state"] == "open"  # a late retry does not bring it back
    assert len(rows(review)) == 3


def test_an_undo_may_not_take_the_name_of_an_answer(review):
    ana = review.browser("Ana")
    first, second = decision("0.png", "dog", "present"), decision("1.png", "dog", "absent")
    ana.send(first, second)
    ana.send({"client": first["client"], "verdict": "undone", "undoes": second["client"]})
    assert len(rows(review)) == 2


def test_a_page_of_a_sweep_is_one_step(review):
    ana = review.browser("Ana")
    page = [
        decision("0.png", "dog", "present", mode="sweep", batch="page-0001", width=160),
        decision("4.png", "dog", "absent", mode="sweep", batch="page-0001", width=160),
    ]
    reply = ana.send(*page, passed=[{"image": "1.png", "class": "dog"}])
    assert [each["verified"] for each in reply["saved"]] == [True, False]
    with review.store() as store:
        assert store.passed() == {("Ana", "1.png", "dog")}
    assert ana.undo("page-0001")["saved"][0]["undone"] == 2
    assert {row[2] for row in rows(review)} == {"present", "absent", "undone"}
    assert 0 in ana.rows()
    ana.send(passed=[{"image": "1.png", "class": "dog"}])  # once is enough


def test_a_sweep_never_removes_a_label(review):
    ana = review.browser("Ana")
    sent = [
        decision("0.png", "dog", "present", mode="sweep", batch="page-0001"),
        decision("1.png", "dog", "absent", mode="sweep", batch="page-0001"),
    ]
    reply = ana.post("/api/decisions", {"decisions": sent})
    assert reply.status_code == 400
    assert "never removes" in reply.json()["message"]
    assert rows(review) == []


def test_only_ones_own_answers_are_undone(review):
    ana, ben = review.browser("Ana"), review.browser("Ben")
    sent = decision("0.png", "dog", "present")
    ana.send(sent)
    assert ben.undo(sent["client"])["saved"][0] | {"client": ""} == {
        "client": "", "seq": None, "state": None, "verified": False, "undone": 0,
    }  # fmt: skip
    assert ana.undo(sent["client"])["saved"][0]["undone"] == 1
    assert ana.undo("nobody-knows-it")["saved"][0]["undone"] == 0


def test_two_answers_are_a_dispute_until_one_resolves_it(review):
    ana, ben = review.browser("Ana"), review.browser("Ben")
    ana.answer("1.png", "dog", "absent")
    reply = ben.answer("1.png", "dog", "present")
    assert reply["saved"][0]["state"] == "disputed"
    assert reply["told"] == [{"image": "1.png", "class": "dog", "who": "Ana", "verdict": "absent"}]
    sent = decision("1.png", "dog", "absent", mode="resolve")
    saved = ana.send(sent)["saved"][0]
    assert (saved["state"], saved["verified"]) == ("resolved", True)
    assert ana.undo(sent["client"])["saved"][0]["state"] == "disputed"


def test_one_is_told_of_ones_answer_in_another_tab_but_not_in_this_one(review):
    here, there = review.browser("Ana"), review.browser("Ana")
    here.answer("1.png", "dog", "absent")
    assert here.answer("1.png", "dog", "present")["told"] == []
    told = there.answer("1.png", "dog", "absent")["told"]
    assert told == [{"image": "1.png", "class": "dog", "who": "Ana", "verdict": "present"}]


def test_an_answer_about_a_picture_that_is_gone_is_kept(review, photos):
    lines = (photos / "labels.csv").read_text().replace("7.png,cat\n", "")
    ana = review.browser("Ana")
    ana.answer("7.png", "cat", "present")
    (photos / "labels.csv").write_text(lines)
    later = Review(photos, overlap=0.0)
    try:
        browser = later.browser("Ana")
        assert browser.answer("7.png", "cat", "absent")["saved"][0]["seq"] == 2
        assert "1 picture is new or gone" in browser.json("/api/state")["changed"]
    finally:
        later.close()


def test_whoever_has_no_name_cannot_answer(review):
    browser = review.browser(None)
    assert browser.post("/api/key", {"key": "k" * 43}).status_code == 204
    reply = browser.post("/api/decisions", {"decisions": [decision("0.png", "dog", "present")]})
    assert (reply.status_code, reply.json()["error"]) == (403, "name")


GOOD = decision("0.png", "dog", "present")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"client": "short"}, 400),
        ({"client": "x" * 65}, 400),
        ({"client": "with:colon:0"}, 400),
        ({"client": 7}, 400),
        ({"client": None}, 400),
        ({"image": "9.png"}, 404),
        ({"image": ""}, 400),
        ({"image": "0.png\0"}, 400),
        ({"image": ["0.png"]}, 400),
        ({"class": "ant"}, 404),
        ({"class": 1}, 400),
        ({"verdict": "maybe"}, 400),
        ({"verdict": ["present"]}, 400),
        ({"mode": "file"}, 400),
        ({"mode": "settle"}, 400),
        ({"batch": ""}, 400),
        ({"suggested": 2}, 400),
        ({"suggested": True}, 400),
        ({"p": 1.5}, 400),
        ({"p": "0.5"}, 400),
        ({"probe": 1}, 400),
        ({"width": -1}, 400),
        ({"width": 1.5}, 400),
        ({"whole": "yes"}, 400),
        ({"ms": -1}, 400),
        ({"ms": 2**40}, 400),
        ({"reviewer": "Ben"}, 400),
        ({"undoes": "x" * 36}, 400),
    ],
)
def test_every_field_is_checked_and_then_nothing_is_saved(review, change, status):
    browser = review.browser("Ana")
    body = {"decisions": [decision("1.png", "dog", "absent"), {**GOOD, **change}]}
    reply = browser.post("/api/decisions", body)
    assert reply.status_code == status, reply.text
    assert set(reply.json()) == {"error", "message"}
    assert rows(review) == []


@pytest.mark.parametrize(
    "body",
    [b"", b"x", b"[]", b"null", b'{"decisions": 1}', b'{"decisions": [1]}', b'{"other": []}',
     b'{"decisions": [], "decisions": []}', b'{"decisions": [{}]}', b"\xff", b"[" * 100_000,
     b'{"passed": [{"image": "0.png"}]}', b'{"passed": [{"image": "0.png", "class": "ant"}]}',
     b'{"decisions": [{"verdict": "undone", "client": "aaaaaaaa"}]}'],
)  # fmt: skip
def test_odd_bodies_are_refused(review, body):
    browser = review.browser("Ana")
    headers = {**browser.headers, "Content-Type": "application/json"}
    reply = browser.client.post("/api/decisions", content=body, headers=headers)
    assert reply.status_code in (400, 404), reply.text
    assert rows(review) == []


def test_a_full_disk_saves_nothing_and_says_so(review):
    ana = review.browser("Ana")

    def fill() -> None:
        connection = review.desk.store._connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages}")

    review.thread.run(fill)
    sent = [decision("0.png", "dog", "present", batch=f"batch-{'x' * 50}") for _ in range(200)]
    reply = ana.post("/api/decisions", {"decisions": sent})
    assert reply.status_code == 507
    assert reply.json() == {
        "error": "disk",
        "message": "The disk is full: this answer is not saved. It waits in this browser.",
    }
    assert rows(review) == []
    assert ana.json("/api/state")["seq"] == 0
    review.thread.run(review.desk.store._connection.execute, "PRAGMA max_page_count=1000000")
    assert ana.send(*sent)["seq"] == 200


def test_a_store_that_cannot_be_written_says_so(review):
    ana = review.browser("Ana")
    review.thread.run(review.desk.store._connection.execute, "PRAGMA query_only=1")
    reply = ana.post("/api/decisions", {"decisions": [GOOD]})
    assert reply.status_code == 507
    assert "It waits in this browser." in reply.json()["message"]
    review.thread.run(review.desk.store._connection.execute, "PRAGMA query_only=0")
    assert ana.send(GOOD)["seq"] == 1


def test_while_another_process_writes_the_answer_waits(review, monkeypatch):
    ana = review.browser("Ana")
    review.thread.run(review.desk.store._connection.execute, "PRAGMA busy_timeout=50")
    with Store.open(store_folder(review.folder)) as other:
        with other._writing():
            reply = ana.post("/api/decisions", {"decisions": [GOOD]})
        assert (reply.status_code, reply.json()["error"]) == (503, "busy")
    assert ana.send(GOOD)["seq"] == 1


def test_the_cache_of_states_is_what_the_answers_say(review):
    ana, ben = review.browser("Ana"), review.browser("Ben")
    ana.answer("0.png", "dog", "present")
    ben.answer("0.png", "dog", "absent")
    ben.answer("1.png", "dog", "unsure")
    sent = decision("2.png", "cat", "present")
    ana.send(sent)
    ana.undo(sent["client"])
    kept = review.thread.run(lambda: dict(review.desk.states))
    again = review.thread.run(lambda: (review.desk._load(), dict(review.desk.states))[1])
    assert {key: state for key, state in kept.items() if state.state != "open"} == {
        key: state for key, state in again.items() if state.state != "open"
    }
