"""Progress, disputes, rules, history and examples, as the page asks for them."""

import pytest

from tests.review.people import CLASSES, Review


@pytest.fixture
def review(tmp_path):
    made = Review(tmp_path)
    yield made
    made.close()


@pytest.fixture
def ana(review):
    return review.person("Ana")


@pytest.fixture
def ben(review):
    return review.person("Ben")


def fix(review, row, column):
    """The answer that changes a label."""
    return "absent" if review.given[row, column] else "present"


def test_progress_counts_what_is_answered_and_fixed(review, ana):
    before = ana.get("/api/progress")
    assert (before["answered"], before["open"]) == (0, len(review.found))
    for n, (row, column) in enumerate(review.found[:10]):
        right = fix(review, row, column)
        other = "present" if right == "absent" else "absent"
        ana.say(row, column, right if n < 7 else other)
    ana.say(*review.found[10], "unsure")
    found = ana.get("/api/progress")
    assert (found["answered"], found["fixed"], found["unsure"]) == (11, 7, 1)
    assert found["open"] == len(review.found) - 11
    assert found["precision"]["all"]["right"] == 7
    assert found["precision"]["all"]["of"] == 10
    assert found["advice"]["kind"] == "early"


def test_progress_is_the_same_after_an_undo(review, ana):
    ana.say(*review.found[1], "present")
    before = ana.get("/api/progress")
    ana.undo(ana.say(*review.found[0], "present"))
    assert ana.get("/api/progress") == before


def test_progress_survives_every_finding_being_decided(review, ana):
    for row, column in review.found:
        ana.say(row, column, fix(review, row, column), probe=True, p=0.9, suggested=1)
    found = ana.get("/api/progress")
    assert found["advice"]["kind"] == "over"
    assert found["left"] == {"value": 0, "low": 0, "high": 0}


def test_two_answers_make_a_dispute_which_a_third_resolves_and_its_undo_reopens(review, ana, ben):
    row, column = review.found[0]
    ana.say(row, column, "present")
    ben.say(row, column, "absent")
    found = ana.get("/api/disputes")
    assert found["disputed"] == 1
    (dispute,) = found["items"]
    assert (dispute["image"]["name"], dispute["class"]) == (review.names[row], column)
    assert dispute["given"] == review.given[row, column]
    said = [(each["who"], each["verdict"]) for each in dispute["opinions"]]
    assert said == [("Ana", "present"), ("Ben", "absent")]
    agreed = ana.get("/api/progress")["agreement"]
    assert (agreed["both"], agreed["same"], agreed["disputed"]) == (1, 0, 1)
    resolving = ben.say(row, column, "present", mode="resolve")
    assert ana.get("/api/disputes")["items"] == []
    assert review.desk.states[row, column].verified
    ben.undo(resolving)
    assert ana.get("/api/disputes")["disputed"] == 1


def test_a_changed_mind_is_one_opinion(review, ana, ben):
    row, column = review.found[0]
    ana.say(row, column, "absent")
    ben.say(row, column, "absent")
    ana.say(row, column, "present")
    (dispute,) = ana.get("/api/disputes")["items"]
    said = [(each["who"], each["verdict"]) for each in dispute["opinions"]]
    assert said == [("Ben", "absent"), ("Ana", "present")]


def test_a_rule_is_shown_with_its_class_and_earlier_ones_stay_on_record(review, ana, ben):
    assert ana.post("/api/rules", {"class": "dog", "text": " Real \n dogs only. "}) == {
        "class": 1,
        "rule": "Real dogs only.",
    }
    ben.post("/api/rules", {"class": "dog", "text": "Any part visible."})
    ben.post("/api/rules", {"class": "dog", "text": "Any part visible."})
    assert [each["rule"] for each in ana.get("/api/state")["classes"]] == [
        "",
        "Any part visible.",
        "",
    ]
    rules = review.thread.run(review.desk.store.rules)
    assert [(each.text, each.reviewer) for each in rules] == [
        ("Real dogs only.", "Ana"),
        ("Any part visible.", "Ben"),
    ]
    ana.post("/api/rules", {"class": "dog", "text": ""})
    assert ana.get("/api/state")["classes"][1]["rule"] == ""


def test_rules_are_refused_for_unknown_classes_and_long_texts(ana):
    assert "class" in ana.post("/api/rules", {"class": "emu", "text": "x"}, 404)["message"]
    ana.post("/api/rules", {"class": "dog", "text": "x" * 201}, 400)
    ana.post("/api/rules", {"class": "dog", "text": "x", "more": 1}, 400)


def test_history_has_every_answer_newest_first_page_by_page(review, ana):
    for row, column in review.found[:30]:
        ana.say(row, column, "present")
    seen, before = [], None
    while True:
        page = ana.get(f"/api/history?n=7&before={before or ''}")
        seen += page["entries"]
        before = page["before"]
        if before is None:
            break
    labels = [(each["row"], CLASSES.index(each["class"])) for each in seen]
    assert labels == review.found[:30][::-1]


def test_history_of_oneself_leaves_out_others_and_what_is_undone(review, ana, ben):
    first = ana.say(*review.found[0], "present")
    ben.say(*review.found[1], "present")
    second = ana.say(*review.found[2], "absent")
    ana.undo(second)
    mine = ana.get("/api/history?mine=1")["entries"]
    assert [each["client"] for each in mine] == [first]
    every = ana.get("/api/history")["entries"]
    assert [each["undone"] for each in every if each["who"] == "Ana"] == [True, False]


def test_history_hides_what_others_say_of_a_label_that_both_are_asked_about(review, ana, ben):
    ana.say(*review.found[0], "present")
    ben.say(*review.found[1], "present")  # from the second name on, all are shared here
    assert [each["who"] for each in ben.get("/api/history")["entries"]] == ["Ben"]
    ben.say(*review.found[0], "present")
    assert "Ana" in [each["who"] for each in ben.get("/api/history")["entries"]]


def test_examples_are_the_newest_verified_pictures_of_a_class(review, ana):
    of_dog = [row for row, column in review.found if column == 1]
    for row in of_dog[:8]:
        ana.say(row, 1, "present")
    ana.say(of_dog[8], 1, "absent")
    ana.say(of_dog[9], 1, "unsure")
    found = ana.get("/api/examples?class=1")
    assert [each["row"] for each in found["images"]] == of_dog[:8][::-1][:6]
    assert ana.get("/api/examples?class=0")["images"] == []
    assert ana.client.get("/api/examples").status_code == 400
    assert ana.client.get("/api/examples?class=3").status_code == 400


@pytest.mark.parametrize("path", ["progress", "disputes", "history", "examples?class=0"])
def test_nothing_is_told_without_the_key(review, path):
    from starlette.testclient import TestClient

    client = TestClient(review.app, base_url="http://127.0.0.1:8742")
    assert client.get(f"/api/{path}").status_code == 401
