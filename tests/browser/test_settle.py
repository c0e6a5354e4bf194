"""Settle in a real browser: blind, all classes in a sample, and the result only at the end."""

import pytest
from playwright.sync_api import Page, Response, expect

from tests.browser.conftest import DESKTOP, PHONE, enter
from tests.browser.drawn import CLASSES, Drawn, draw_set
from tests.browser.serving import PATIENCE, Served, wait_until

SAMPLE = "#settle?order=sample"
SETTLED = """SELECT image.name AS image, sample, settled.undoes AS undoes, palette.classes AS shown
    FROM settled JOIN image ON image.id=image JOIN palette ON palette.id=shown ORDER BY seq"""


def shown(page: Page) -> str:
    """Wait until the picture can be answered, and name it."""
    expect(page.locator("button.go")).to_be_enabled()
    return page.locator(".frame img").get_attribute("alt")


def chip(page: Page, name: str):
    return page.locator(".side .chip", has_text=name)


def wait_settled(page: Page, review: Served, count: int) -> list[dict]:
    wait_until(page, lambda: len(review.query(SETTLED)) >= count)
    rows = review.query(SETTLED)
    assert len(rows) == count
    return rows


def mark_truly(page: Page, drawn: Drawn, image: str) -> None:
    """Click what is not there and what is, as somebody who sees it."""
    for name in drawn.classes:
        if (name in drawn.given[image]) != drawn.is_there(image, name):
            chip(page, name).click()


@pytest.mark.point(22)
def test_a_sample_is_settled_blind_and_measured_at_the_end(tmp_path, serve, new_context):
    drawn = draw_set(tmp_path / "photos", 12)
    drawn.add_snapshot()
    review = serve(drawn)
    page = enter(new_context(), review, "Ana", SAMPLE)
    images = []
    for i in range(9):  # a quarter of the rows tests
        image = shown(page)
        expect(page.locator(".side .small").first).to_have_text(
            f"Random sample · picture {i + 1} of 9 · the audit’s opinion is hidden"
        )
        expect(page.locator(".left")).to_have_text("The result is shown when all are done.")
        given = sorted(drawn.given[image])
        chips = page.locator(".side .chips")
        assert chips.nth(0).locator(".chip").all_inner_texts() == given
        others = sorted(set(CLASSES) - set(given))
        assert chips.nth(1).locator(".chip").all_inner_texts() == others  # every class
        source = page.locator("main").evaluate("(node) => node.outerHTML")
        numbers = [f"{f.probability:.2}" for f in drawn.findings]
        for word in ("%", "measured", "wrong", "missing", *numbers):
            assert word not in source
        mark_truly(page, drawn, image)
        page.keyboard.press("Enter")
        images.append(image)
        wait_settled(page, review, i + 1)
    expect(page.locator("h1")).to_contain_text("9 pictures, measured.", timeout=1000 * PATIENCE)
    expect(page.locator("h1")).to_contain_text("of the given labels are wrong (")
    page.keyboard.press("p")  # which says so too, and offers no other sample before it is looked at
    whole = page.locator(".card", has_text="The whole data set")
    expect(whole).to_contain_text("9 pictures, measured.")
    expect(whole).not_to_contain_text("Not measured yet")
    expect(whole.get_by_role("button")).to_have_text("See the result")
    rows = review.query(SETTLED)
    assert [row["image"] for row in rows] == images
    assert {row["sample"] for row in rows} == {1}
    said = {(image, name): verdict for image, name, _, verdict, sure in review.states() if sure}
    for image in images:
        there = {name for name in CLASSES if said.get((image, name)) == "present"}
        assert there == set(drawn.truth[image])


@pytest.mark.point(22)
def test_nothing_that_settle_is_sent_tells_what_the_audit_thinks(review, reviewer):
    page = reviewer("Ana", "#start")
    bodies: list[str] = []

    def hear(reply: Response) -> None:
        if "/api/settle" in reply.url:
            bodies.append(reply.text())

    page.on("response", hear)
    page.evaluate("hash => { location.hash = hash }", "#settle?order=errors")
    shown(page)
    wait_until(page, lambda: bodies)
    for text in bodies:
        assert '"p"' not in text
        assert "suggested" not in text
        assert "findings" not in text


def test_marks_go_round_search_finds_and_undo_brings_the_picture_back(review, reviewer, photos):
    page = reviewer("Ana", "#settle?order=errors")
    image = shown(page)
    assert image == "0000.jpg"  # four findings
    square, star = chip(page, "square"), chip(page, "star")  # labelled, not labelled
    for look in ("doubted", "unsure", "", "doubted"):
        square.click()
        assert square.get_attribute("class").split()[1:] == look.split()
    page.keyboard.press("/")
    page.keyboard.type("sta")
    expect(page.locator(".side .chips").nth(1).locator(".chip")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(star).to_have_class("chip added")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    rows = wait_settled(page, review, 1)
    assert (rows[0]["image"], rows[0]["sample"]) == (image, None)
    verdicts = {row["class"]: row["verdict"] for row in review.decisions()}
    assert verdicts == {
        "square": "absent", "star": "present", "triangle": "present", "ring": "present"
    }  # fmt: skip
    assert shown(page) != image
    page.keyboard.press("z")
    wait_settled(page, review, 2)
    assert shown(page) == image
    expect(square).to_have_class("chip doubted")  # as it was marked
    assert not any(sure for *_, sure in review.states())
    page.keyboard.press("Shift+Z")
    wait_settled(page, review, 3)
    assert shown(page) != image
    page.keyboard.press("ArrowLeft")
    assert shown(page) == image


def test_a_key_before_the_picture_is_drawn_answers_nothing(review, reviewer):
    page = reviewer("Ana", "#start")
    held = []
    page.route("**/image/**", lambda route: held.append(route))
    page.evaluate("hash => { location.hash = hash }", "#settle?order=errors")
    wait_until(page, lambda: held)
    page.keyboard.press("Enter")
    page.wait_for_timeout(100)
    assert review.query(SETTLED) == []
    expect(page.locator("button.go")).to_be_disabled()


def test_outside_a_sample_only_what_was_in_view_is_verified(tmp_path, serve, new_context):
    classes = [*CLASSES, *(f"thing {i:02}" for i in range(40))]
    drawn = draw_set(tmp_path / "photos", 8, CLASSES)
    drawn.path.joinpath("classes.txt").write_text("\n".join(classes) + "\n")
    drawn.add_snapshot()
    review = serve(drawn)
    page = enter(new_context(), review, "Ana", "#settle?order=random")
    image = shown(page)
    page.keyboard.press("Enter")
    row = wait_settled(page, review, 1)[0]
    assert row["image"] == image
    seen = len(row["shown"].split(","))
    assert len(drawn.given[image]) < seen <= len(drawn.given[image]) + 24
    shown(page)
    page.get_by_label("More classes").click()
    page.wait_for_timeout(200)
    page.keyboard.press("Enter")
    row = wait_settled(page, review, 2)[1]
    assert len(row["shown"].split(",")) > seen


@pytest.fixture
def many_classes(tmp_path) -> Drawn:
    """Draw data with eighty classes, of which six are ever there."""
    drawn = draw_set(tmp_path / "photos", 8)
    classes = [*CLASSES, *(f"{word} {i:02}" for i in range(37) for word in ("cup", "laptop"))]
    drawn.path.joinpath("classes.txt").write_text("\n".join(classes) + "\n")
    drawn.add_snapshot()
    return drawn


def test_on_a_phone_a_sample_is_done_only_once_every_class_was_in_view(
    many_classes, serve, new_context
):
    review = serve(many_classes)
    page = enter(new_context(size=PHONE, has_touch=True), review, "Ana", SAMPLE)
    image, go, seen = shown(page), page.locator("button.go"), []
    for way in ("Enter", "Space", "PageDown", *["Enter"] * 7):
        words = go.inner_text()
        if "not seen" not in words:
            break
        seen.append(int(words.split()[3]))
        page.keyboard.press(way)
        expect(go).not_to_contain_text(words.strip())
    assert len(seen) >= 3  # each way once
    assert seen == sorted(seen, reverse=True)
    assert review.query(SETTLED) == []
    expect(go).to_contain_text("Done, next picture")
    page.keyboard.press("Space")
    assert review.query(SETTLED) == []
    page.keyboard.press("Enter")
    row = wait_settled(page, review, 1)[0]
    assert (row["image"], len(row["shown"].split(","))) == (image, 80)
    shown(page)
    expect(go).to_contain_text("not seen")  # of the next picture
    page.keyboard.press("ArrowLeft")
    assert shown(page) == image
    expect(go).to_contain_text("Done, next picture")  # all were seen beside this one


@pytest.mark.point(20)
def test_on_a_desktop_eighty_classes_are_seen_at_once(many_classes, serve, new_context):
    page = enter(new_context(size=DESKTOP), serve(many_classes), "Ana", SAMPLE)
    shown(page)
    expect(page.locator("button.go")).to_contain_text("Done, next picture")
    expect(page.locator(".side .chip")).to_have_count(80)


@pytest.mark.point(20)
def test_settle_fits_a_phone(review, reviewer):
    page = reviewer("Ana", "#settle?order=errors", size=PHONE, has_touch=True)
    shown(page)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
    box = page.locator("button.go").bounding_box()
    assert box["y"] + box["height"] <= PHONE[1]
    for target in page.locator("button:visible").all():
        box = target.bounding_box()
        assert min(box["width"], box["height"]) >= 44
