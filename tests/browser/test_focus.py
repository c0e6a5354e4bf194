"""Focus: one picture at a time, every answer a row as soon as it is made."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.asking import answer_truly, asked
from tests.browser.conftest import PHONE, enter
from tests.browser.serving import Served, wait_decisions, wait_until

LARGE = re.compile(r"/image/\d+/(512|1280|2048)")
SUGGESTED = {1: "present", 0: "absent"}
NAMES = {"y": "present", "n": "absent", "u": "unsure"}


def press(page: Page, review: Served, key: str) -> tuple[tuple[str, str], dict[str, Any]]:
    """Press a key that answers; returns what was asked, and the new row."""
    question, before = asked(page), len(review.decisions())
    page.keyboard.press(key)
    return question, wait_decisions(page, review, before + 1)[-1]


@pytest.mark.point(1)
def test_every_answering_key_writes_its_row(review, reviewer):
    page = reviewer("Ana", "#focus")
    for key, verdict in NAMES.items():
        question, row = press(page, review, key)
        assert (row["image"], row["class"], row["verdict"]) == (*question, verdict)
        assert (row["reviewer"], row["mode"], row["undoes"]) == ("Ana", "focus", None)
    question, row = press(page, review, "a")
    assert (row["image"], row["class"]) == question
    assert row["verdict"] == SUGGESTED[row["suggested"]]
    question, row = press(page, review, "x")
    assert (row["image"], row["class"]) == question
    assert row["verdict"] == SUGGESTED[1 - row["suggested"]]


@pytest.mark.point(1)
def test_undo_goes_back_as_far_as_one_likes_and_redo_comes_forward(review, reviewer):
    page = reviewer("Ana", "#focus")
    answered = [press(page, review, key) for key in "yny"]
    for question, row in reversed(answered):
        _, undo = press(page, review, "z")
        assert (undo["verdict"], undo["undoes"]) == ("undone", row["seq"])
        assert asked(page) == question
    assert {state[2] for state in review.states()} <= {"open"}
    for n, (question, row) in enumerate(answered, 7):
        page.keyboard.press("Shift+Z")
        again = wait_decisions(page, review, n)[-1]
        assert (again["image"], again["class"]) == question
        assert again["verdict"] == row["verdict"]
        assert again["client"] != row["client"]
    assert {state[2] for state in review.states()} == {"decided"}


@pytest.mark.point(1)
def test_undo_reaches_behind_a_reload(review, reviewer):
    page = reviewer("Ana", "#focus")
    question, row = press(page, review, "y")
    page.reload()
    asked(page)
    page.keyboard.press("z")
    undo = wait_decisions(page, review, 2)[-1]
    assert (undo["verdict"], undo["undoes"]) == ("undone", row["seq"])
    assert (undo["image"], undo["class"]) == question


@pytest.mark.point(1)
def test_digits_and_arrows_only_move(review, reviewer):
    page = reviewer("Ana", "#focus")
    first = asked(page)
    names = page.locator(".labels button bdi").all_inner_texts()
    assert len(names) == 4
    for n, name in enumerate(names, 1):
        page.keyboard.press(str(n))
        assert asked(page) == (first[0], name)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".frame img")).not_to_have_attribute("alt", first[0])
    asked(page)
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".frame img")).to_have_attribute("alt", first[0])
    assert review.decisions() == []


@pytest.mark.point(1)
def test_space_answers_nothing_and_enter_presses_the_focused_button(review, reviewer):
    page = reviewer("Ana", "#focus")
    asked(page)
    yes = page.get_by_role("button", name="Yes")
    page.keyboard.press("Space")
    yes.focus()
    page.keyboard.press("Space")
    page.wait_for_timeout(200)
    assert review.decisions() == []
    _, row = press(page, review, "Enter")
    assert row["verdict"] == "present"


@pytest.mark.point(1)
@pytest.mark.parametrize(
    ("key", "code", "verdict"), [("н", "KeyY", "present"), ("ν", "KeyN", "absent")]
)
def test_letters_of_other_alphabets_count_by_their_place(review, reviewer, key, code, verdict):
    page = reviewer("Ana", "#focus")
    asked(page)
    page.locator("main").dispatch_event("keydown", {"key": key, "code": code, "bubbles": True})
    assert wait_decisions(page, review, 1)[0]["verdict"] == verdict


@pytest.mark.point(1)
def test_single_keys_can_be_turned_off(review, reviewer):
    page = reviewer("Ana", "#focus")
    asked(page)
    page.keyboard.press("?")
    page.get_by_role("checkbox").uncheck()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    for key in ("y", "1", "z"):
        page.keyboard.press(key)
    page.get_by_role("button", name=re.compile("^No")).click()
    assert [row["verdict"] for row in wait_decisions(page, review, 1)] == ["absent"]
    page.keyboard.press("Control+z")
    assert wait_decisions(page, review, 2)[-1]["verdict"] == "undone"


@pytest.mark.point(2)
@pytest.mark.parametrize("key", ["y", "Enter"])
def test_a_held_key_answers_once(review, reviewer, key):
    page = reviewer("Ana", "#focus")
    asked(page)
    page.get_by_role("button", name="Yes").focus()
    for _ in range(20):  # all but the first are repeats
        page.keyboard.down(key)
        page.wait_for_timeout(20)
    page.keyboard.up(key)
    wait_decisions(page, review, 1)


@pytest.mark.point(2)
def test_a_double_click_answers_once(review, reviewer):
    page = reviewer("Ana", "#focus")
    asked(page)
    page.get_by_role("button", name="Yes").dblclick()
    wait_decisions(page, review, 1)


@pytest.mark.point(3)
def test_nothing_is_answered_before_the_picture_is_seen(review, new_context):
    context, held, hold = new_context(), [], [True]
    context.route(LARGE, lambda route: held.append(route) if hold else route.continue_())
    page = enter(context, review, "Ana", "#focus")
    yes = page.get_by_role("button", name="Yes")
    yes.wait_for()
    for key in "ynuax":
        page.keyboard.press(key)
    yes.click()
    wait_until(page, lambda: held, "the request of a picture")
    page.wait_for_timeout(300)
    assert review.decisions() == []
    hold.clear()
    for route in held:
        route.continue_()
    press(page, review, "y")


@pytest.mark.point(4)
def test_four_findings_can_be_answered_in_any_order(review, reviewer):
    page = reviewer("Ana", "#focus")
    image, _ = asked(page)
    names = page.locator(".labels button bdi").all_inner_texts()
    for n, key in ((3, "y"), (1, "n"), (4, "u"), (2, "y")):
        page.keyboard.press(str(n))
        question, row = press(page, review, key)
        assert question == (image, names[n - 1])
        assert (row["image"], row["class"], row["verdict"]) == (*question, NAMES[key])
    expect(page.locator(".frame img")).not_to_have_attribute("alt", image)  # the last one: go on
    page.locator(".strip .done").first.click()  # and an answer can be changed
    expect(page.locator(".frame img")).to_have_attribute("alt", image)
    page.keyboard.press("3")
    question, row = press(page, review, "n")
    assert (row["class"], row["verdict"]) == (names[2], "absent")
    state = {(s[0], s[1]): s[2:] for s in review.states()}[image, names[2]]
    assert state == ("decided", "absent", 1)


def test_a_picture_that_cannot_be_read_is_set_aside(photos, review, reviewer):
    first = photos.path / "images" / "0000.jpg"
    first.write_bytes(first.read_bytes()[:2000])
    page = reviewer("Ana", "#focus")
    expect(page.get_by_role("alert").filter(has_text="0000.jpg")).to_contain_text(
        "Its 4 findings are set aside."
    )
    page.keyboard.press("y")
    page.get_by_role("button", name="Next").click()
    question, row = press(page, review, "y")
    assert question[0] != "0000.jpg"
    assert (row["image"], row["class"]) == question


def test_the_answer_tells_how_large_the_picture_was_seen(review, reviewer):
    page = reviewer("Ana", "#focus")
    _, row = press(page, review, "n")
    assert (row["width"], row["whole"]) == (480, 1)


def test_zoom_goes_to_the_pixels_and_back(review, reviewer):
    page = reviewer("Ana", "#focus")
    asked(page)

    def width() -> float:
        return page.locator(".frame img").bounding_box()["width"]

    fitted = width()
    for key, larger in (("+", True), ("Escape", False), ("i", True), ("i", False)):
        page.keyboard.press(key)
        assert (width() > 1.2 * fitted) == larger
    page.locator(".frame").hover()
    page.mouse.wheel(0, -300)
    wait_until(page, lambda: width() > 1.2 * fitted, "zoom by the wheel")
    frame, tools = page.locator(".frame").bounding_box(), page.locator(".tools").bounding_box()
    assert frame["x"] + frame["width"] <= tools["x"] + 1  # nothing covers the picture


def test_done_says_what_comes_next(review, reviewer):
    page = reviewer("Ana", "#focus")
    for _ in range(len(review.query("SELECT 1 FROM finding"))):
        press(page, review, "a")
    expect(page.get_by_role("heading", name="Every finding is decided.")).to_be_visible()
    expect(page.locator("main")).to_contain_text("Your label files have not been touched.")
    assert len(review.decisions()) == len(review.query("SELECT 1 FROM finding"))


def test_a_filter_asks_about_one_class(review, reviewer):
    page = reviewer("Ana", "#focus")
    asked(page)
    page.keyboard.press("/")
    page.get_by_placeholder("Find one of 6 classes").fill("rin")
    page.get_by_role("dialog").get_by_role("button", name="ring").click()
    expect(page.locator("h1 bdi")).to_have_text("ring")
    for _ in range(5):
        question, _row = press(page, review, "n")
        assert question[1] == "ring"


def test_a_filter_that_leaves_nothing_says_so(review, reviewer):
    page = reviewer("Ana", "#focus?class=1&kind=unknown")
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing open for “cross”, unknown.")
    page.get_by_role("button", name="Show all classes").click()
    assert asked(page)


def test_pictures_that_others_look_at_are_named(review, new_context):
    ana = enter(new_context(), review, "Ana", "#focus?class=0")
    first = asked(ana)
    ben = enter(new_context(), review, "Ben", "#focus?class=0")
    expect(ben.get_by_role("heading", level=1)).to_contain_text("Ana is looking at the last")
    ben.get_by_role("button", name="Show them anyway").click()
    assert asked(ben) == first


@pytest.mark.point(20)
@pytest.mark.parametrize("where", ["#focus", "#start", "#done"])
@pytest.mark.parametrize("size", [PHONE, (320, 640), (640, 360)])
def test_a_phone_shows_all_without_sideways_scroll(review, reviewer, where, size):
    page = reviewer("Ana", where, size=size)
    if where == "#focus":
        asked(page)
    page.locator("h1").wait_for()
    page.wait_for_timeout(200)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= size[0]
    assert page.evaluate("document.getElementById('main').scrollWidth") <= size[0]
    for control in page.locator("button:visible, nav a:visible").all():
        box = control.bounding_box()
        assert box["width"] >= 44, control.inner_text()
        assert box["height"] >= 44, control.inner_text()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= size[0]
    if where == "#focus" and size == PHONE:
        for button in page.locator(".answers button").all():
            box = button.bounding_box()
            assert box["y"] + box["height"] <= size[1]
            assert box["height"] >= 72


def test_a_class_that_is_too_rare_to_judge_can_be_looked_through(photos, serve, new_context):
    photos.findings = [f for f in photos.findings if f.class_ != "cross"]
    photos.add_snapshot(not_judged=["cross"])
    labelled = [image for image, names in photos.given.items() if "cross" in names]
    review = serve(photos)
    page = enter(new_context(), review, "Ana", f"#focus?class={photos.number('cross')}")
    count = len(labelled)
    expect(page.locator("main")).to_contain_text(
        f"“cross” has {count} labels, too few to judge. The audit says nothing about it"
    )
    page.get_by_role("button", name=f"Look at all {count}").click()
    asked(page)
    expect(page.locator(".ask")).to_contain_text("Labelled.")
    expect(page.locator(".chip[aria-current=true]")).to_have_class("chip ")
    page.keyboard.press("a")  # nothing is suggested
    answers = answer_truly(page, review, photos, count)
    assert sorted(answers) == [(image, "cross") for image in sorted(labelled)]
    assert {row["p"] for row in review.decisions()} == {None}
    expect(page.locator("h1")).to_have_text("Every label of “cross” is answered.")
    page.keyboard.press("z")  # from the end too
    assert asked(page)[1] == "cross"
