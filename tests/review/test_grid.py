"""Pages of a sweep: one class and kind, surest first, nobody's picture twice."""

import pytest

from balancemix.data import read
from balancemix.data.decisions.snapshots import Suspicion
from tests.review.conftest import AS_IN_FILES, Review, add_snapshot, decision, draw

DOG = 1


def grid(browser, query="class=1&kind=missing"):
    return browser.json(f"/api/grid?{query}")


def rows(reply) -> list[int]:
    return [item["image"]["row"] for item in reply["items"]]


def test_the_surest_come_first_with_their_one_finding(review):
    reply = grid(review.browser())
    assert rows(reply) == [0, 4]
    assert (reply["open"], reply["over"], reply["others"]) == (2, False, {})
    first = reply["items"][0]
    assert [(f["class"], f["problem"]) for f in first["findings"]] == [(DOG, "missing")]
    assert first["labels"] == [0]  # what the picture is given


def test_what_is_held_answered_or_held_by_others_is_left_out(review):
    ana, ben = review.browser("Ana"), review.browser("Ben")
    assert rows(grid(ana, "class=1&kind=missing&n=1")) == [0]
    assert rows(grid(ana, "class=1&kind=missing&n=1&holding=0")) == [4]
    taken = grid(ben)
    assert (rows(taken), taken["open"], taken["others"]) == ([], 2, {"Ana": 2})
    assert rows(grid(ben, "class=1&kind=missing&anyway=1")) == [0, 4]
    ana.answer("0.png", "dog", "absent", mode="sweep", batch="b" * 36)
    assert rows(grid(ana)) == [4]
    assert grid(ana)["open"] == 1


def test_undoing_a_page_brings_all_of_it_back(review):
    ana, batch = review.browser(), "b" * 36
    before = grid(ana)
    page = [
        decision(f"{row}.png", "dog", verdict, mode="sweep", batch=batch)
        for row, verdict in zip(rows(before), ("present", "unsure"), strict=True)
    ]
    ana.send(*page)
    assert rows(grid(ana)) == []
    ana.undo(batch)
    assert grid(ana) == before


def test_what_was_not_clicked_in_a_sweep_of_wrong_labels_is_asked_in_focus_alone(review):
    ana, ben = review.browser("Ana"), review.browser("Ben")
    wrong = "class=1&kind=wrong"
    assert rows(grid(ana, wrong)) == [1]
    ana.send(passed=[{"image": "1.png", "class": "dog"}])
    assert rows(grid(ana, wrong)) == []
    assert 1 in ana.rows()
    assert rows(grid(ben, f"{wrong}&anyway=1")) == [1]  # Ben has not swept it
    with review.store() as store:
        assert store.states() == []  # nothing was decided


def test_a_sweep_ends_where_fewer_than_half_would_be_right(tmp_path):
    folder = draw(tmp_path / "photos")
    given = {0: "cat", 3: "owl", 4: "cat", 5: "", 7: "cat"}
    findings = [Suspicion(f"{row}.png", "dog", "missing", 0, 1, 0.9 - row / 10) for row in given]
    add_snapshot(read(folder, AS_IN_FILES), findings)
    review = Review(folder)
    try:
        ana = review.browser()
        assert not grid(ana, "class=1&kind=missing&n=2")["over"]
        assert grid(ana, "class=1&kind=missing&n=2&holding=0,3,4")["over"]
        for image in ("0.png", "3.png"):  # the answers say that it is worse than modelled
            ana.answer(image, "dog", "absent", mode="sweep")
        assert grid(ana)["over"]
        assert not grid(ana, "class=0&kind=wrong")["over"]  # nothing there; wrong ones never end
    finally:
        review.close()


@pytest.mark.parametrize(
    "query", ["", "class=1", "kind=missing", "class=9&kind=missing", "class=1&kind=odd",
              "class=1&kind=missing&n=61", "class=1&kind=missing&holding=x"],
)  # fmt: skip
def test_what_is_not_a_page_is_refused(review, query):
    reply = review.browser().get(f"/api/grid?{query}")
    assert reply.status_code == 400
    assert reply.json()["message"].endswith(".")
