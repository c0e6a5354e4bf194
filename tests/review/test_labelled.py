"""All labelled pictures of a class that is too rare to judge."""

OWL = 2


def labelled(browser, query="class=2"):
    return browser.json(f"/api/labelled?{query}")


def rows(reply) -> list[int]:
    return [item["image"]["row"] for item in reply["items"]]


def test_every_labelled_picture_is_asked_about_without_a_suggestion(review):
    reply = labelled(review.browser())
    assert rows(reply) == [3, 4, 6]
    assert (reply["open"], reply["answered"], reply["others"]) == (3, 0, {})
    for item in reply["items"]:
        assert OWL in item["labels"]
        (question,) = item["findings"]
        assert (question["class"], question["given"], question["state"]) == (OWL, 1, "open")
        assert (question["suggested"], question["p"], question["probe"]) == (None, None, False)


def test_what_is_answered_or_held_is_left_out(review):
    ana, ben = review.browser("Ana"), review.browser("Ben")
    assert rows(labelled(ana, "class=2&n=1")) == [3]
    assert rows(labelled(ana, "class=2&n=1&holding=3")) == [4]
    taken = labelled(ben)
    assert (rows(taken), taken["others"]) == ([6], {"Ana": 2})
    assert rows(labelled(ben, "class=2&anyway=1")) == [3, 4, 6]
    ana.answer("3.png", "owl", "present")
    ana.answer("4.png", "owl", "unsure")
    after = labelled(ana, "class=2&anyway=1")
    assert (rows(after), after["open"], after["answered"]) == ([6], 1, 2)
    assert rows(labelled(ben, "class=2&anyway=1")) == [4, 6]  # of what Ana was unsure about


def test_a_class_must_be_named(review):
    assert review.browser().get("/api/labelled").status_code == 400
    assert review.browser().get("/api/labelled?class=3").status_code == 400
