"""Sweep in a real browser: marks, one batch, one undo; nothing unseen, nothing removed."""

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import DESKTOP, PHONE, enter
from tests.browser.drawn import CLASSES
from tests.browser.serving import wait_decisions, wait_until

STAR, RING = sorted(CLASSES).index("star"), sorted(CLASSES).index("ring")
MISSING, WRONG = f"#sweep?class={STAR}&kind=missing", f"#sweep?class={RING}&kind=wrong"
PASSED = "SELECT image.name AS image FROM passed JOIN image ON image.id=image"
DRAWN = """() => [...document.querySelectorAll('.tile img')]
    .filter((each) => each.complete && each.naturalWidth).length"""
SCROLLS = """() => [document.documentElement, document.body, document.querySelector('main')]
    .some((each) => each.scrollHeight > each.clientHeight + 1 || each.scrollWidth > innerWidth)"""


def seen(page: Page) -> list[str]:
    """Wait until the page can be answered, and list its pictures."""
    expect(page.locator("button.go")).to_be_enabled()
    return [name.partition(":")[0] for name in labels(page)]


def labels(page: Page) -> list[str]:
    tiles = page.get_by_role("option").all()
    return [tile.get_attribute("aria-label") for tile in tiles]


def columns(page: Page) -> int:
    """Count the columns of tiles."""
    return page.evaluate("getComputedStyle(document.querySelector('.tiles'))"
                         ".gridTemplateColumns.split(' ').length")  # fmt: skip


@pytest.mark.point(5)
def test_a_page_is_one_batch_and_one_undo(review, reviewer):
    page = reviewer("Ana", MISSING)
    images = seen(page)
    assert len(images) == 32
    expect(page.locator("button.go")).to_contain_text("Add “star” to 32")
    tiles = page.get_by_role("option")
    tiles.nth(2).click()  # not here
    tiles.nth(5).click()
    tiles.nth(5).click()  # unsure
    tiles.nth(6).click(click_count=3)  # back
    page.keyboard.press("Home")
    page.keyboard.press("x")
    page.keyboard.press("x")
    page.keyboard.press("x")  # back
    page.keyboard.press("ArrowRight")
    page.keyboard.press("u")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    assert tiles.nth(9).get_attribute("aria-selected") == "true"
    expect(page.locator("button.go")).to_contain_text("Add “star” to 28")
    expect(page.locator(".tally")).to_have_text("2 not here · 2 unsure")
    assert review.decisions() == []  # nothing before Enter
    page.keyboard.press("Enter")
    rows = wait_decisions(page, review, 32)
    expect(page.locator(".note")).to_have_text("Page 1: added “star” to 28, left 4 as they were.")
    verdicts = {row["image"]: row["verdict"] for row in rows}
    marks = {2: "absent", 9: "absent", 1: "unsure", 5: "unsure"}
    assert verdicts == {name: marks.get(i, "present") for i, name in enumerate(images)}
    assert {row["mode"] for row in rows} == {"sweep"}
    assert {row["class"] for row in rows} == {"star"}
    assert len({row["batch"] for row in rows}) == 1
    assert len({row["client"] for row in rows}) == 32
    verified = {image for image, class_, _, verdict, sure in review.states() if sure}
    assert verified == {name for name, verdict in verdicts.items() if verdict == "present"}
    page.keyboard.press("z")
    undone = wait_decisions(page, review, 64)[32:]
    assert {row["verdict"] for row in undone} == {"undone"}
    assert {state for _, _, state, _, _ in review.states()} == {"open"}
    assert seen(page) == images  # the same page, as it was marked
    expect(page.locator(".tally")).to_have_text("2 not here · 2 unsure")
    page.reload()
    assert seen(page) == images
    expect(page.locator(".tally")).to_have_text("0 not here · 0 unsure")


@pytest.mark.point(5)
def test_redo_answers_the_page_again_and_the_next_one_follows(review, reviewer):
    page = reviewer("Ana", MISSING)
    images = seen(page)
    page.keyboard.press("Enter")
    wait_decisions(page, review, 32)
    rest = seen(page)
    assert rest
    assert not set(rest) & set(images)
    page.keyboard.press("z")
    wait_decisions(page, review, 64)
    assert seen(page) == images
    page.keyboard.press("Shift+Z")
    rows = wait_decisions(page, review, 96)
    assert [row["image"] for row in rows[64:]] == images
    assert seen(page) == rest
    page.keyboard.press("Enter")
    rows = wait_decisions(page, review, 96 + len(rest))
    expect(page.locator("h1")).to_have_text("Nothing open for “star”, missing.")
    page.keyboard.press("z")  # from the end too
    wait_decisions(page, review, 96 + 2 * len(rest))
    assert seen(page) == rest


@pytest.mark.point(6)
def test_a_sweep_of_wrong_labels_removes_none(review, reviewer, photos):
    page = reviewer("Ana", WRONG)
    images = seen(page)
    expect(page.locator("button.go")).to_contain_text("Keep “ring” on 0")
    there = [name for name in images if photos.is_there(name, "ring")]
    for i, name in enumerate(images):
        if name in there:
            page.get_by_role("option").nth(i).click()
    expect(page.locator("button.go")).to_contain_text(f"Keep “ring” on {len(there)}")
    rest = [name for name in images if name not in there]
    expect(page.locator(".tally")).to_have_text(f"{len(rest)} go to Focus")
    page.keyboard.press("Enter")
    rows = wait_decisions(page, review, len(there))
    assert {row["verdict"] for row in rows} == {"present"}
    assert sorted(row["image"] for row in rows) == sorted(there)
    assert sorted(row["image"] for row in review.query(PASSED)) == sorted(rest)
    expect(page.locator("h1")).to_have_text("Nothing open for “ring”, wrong.")
    page.get_by_role("button", name="Go on in Focus").click()
    page.locator("main:not(.gated) .frame img").wait_for()  # what was not clicked is asked here
    assert page.locator(".frame img").get_attribute("alt") in rest


def press_enter(page: Page) -> str:
    """Try to answer the page, and read why it is not answered yet."""
    page.keyboard.press("Enter")
    return page.locator(".note").inner_text().strip()


@pytest.mark.point(7)
def test_a_page_is_not_answered_before_every_tile_is_drawn(review, reviewer):
    page = reviewer("Ana", "#start")
    held: list[Route] = []
    is_slow = True
    page.route("**/image/**", lambda route: held.append(route) if is_slow else route.continue_())
    page.evaluate("hash => { location.hash = hash }", MISSING)
    wait_until(page, lambda: len(held) >= 6)  # as many as a browser asks for at once
    expect(page.locator("button.go")).to_be_disabled()
    page.keyboard.press("Enter")
    expect(page.locator(".note")).to_have_text("32 pictures not seen yet.")
    is_slow, last = False, held.pop(0)
    for route in held:
        route.continue_()
    wait_until(page, lambda: press_enter(page) == "1 picture not seen yet.")
    assert review.decisions() == []
    last.continue_()
    seen(page)
    page.keyboard.press("Enter")
    wait_decisions(page, review, 32)


@pytest.mark.point(7)
def test_a_page_is_not_answered_before_every_tile_was_in_view(review, reviewer):
    page = reviewer("Ana", MISSING, size=(320, 300))  # too low for a row of tiles
    page.get_by_role("option").first.wait_for()
    tiles = page.get_by_role("option").count()
    wait_until(page, lambda: page.evaluate(DRAWN) == tiles)
    page.evaluate("scrollTo(0, 0)")
    if page.locator("button.go").is_disabled():
        page.keyboard.press("Enter")
        assert review.decisions() == []
    page.keyboard.press("End")  # scrolls there
    seen(page)
    page.keyboard.press("Enter")
    wait_until(page, lambda: review.decisions())


def test_a_held_enter_answers_one_page(review, reviewer):
    page = reviewer("Ana", MISSING)
    seen(page)
    page.keyboard.down("Enter")
    for _ in range(5):
        page.keyboard.down("Enter")  # as the system repeats it
        page.wait_for_timeout(50)
    page.keyboard.up("Enter")
    wait_decisions(page, review, 32)


def test_a_tile_at_full_size_is_answered_by_itself(review, reviewer):
    page = reviewer("Ana", MISSING)
    images = seen(page)
    page.keyboard.press("i")
    page.locator(".frame img").wait_for()
    expect(page.locator("h1")).to_have_text("Is “star” in this picture?")
    wait_until(page, lambda: page.keyboard.press("n") or review.decisions())
    row = wait_decisions(page, review, 1)[0]
    assert (row["image"], row["verdict"], row["mode"]) == (images[0], "absent", "focus")
    assert row["batch"] is None
    expect(page.locator("button.go")).to_contain_text("Add “star” to 31")
    page.keyboard.press("Enter")
    rows = wait_decisions(page, review, 32)
    assert images[0] not in {row["image"] for row in rows[1:]}


def test_a_picture_that_cannot_be_read_is_set_aside(photos, serve, new_context):
    review = serve(photos)  # which leaves out what it cannot read at the start
    suspect = next(
        f.image for f in photos.findings if f.class_ == "star" and f.problem == "missing"
    )
    file = photos.path / "images" / suspect
    file.write_bytes(file.read_bytes()[:200])
    page = enter(new_context(), review, "Ana", MISSING)
    expect(page.locator(".tile p")).to_have_text(f"{suspect} cannot be read. It is set aside.")
    expect(page.locator("button.go")).to_contain_text("Add “star” to 31")
    expect(page.locator("button.go")).to_be_enabled()
    page.keyboard.press("Enter")
    rows = wait_decisions(page, review, 31)
    assert suspect not in {row["image"] for row in rows}
    rest = seen(page)
    page.keyboard.press("Enter")
    wait_decisions(page, review, 31 + len(rest))
    expect(page.locator("h1")).to_have_text("Nothing open for “star”, missing.")


@pytest.mark.point(20)
@pytest.mark.parametrize("where", [MISSING, WRONG])
def test_a_page_fits_the_window(reviewer, where):
    page = reviewer("Ana", where, size=DESKTOP)
    tiles = len(seen(page))
    assert tiles <= 32
    assert columns(page) == 8 or tiles < 32
    assert not page.evaluate(SCROLLS)


@pytest.mark.point(20)
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_few_tiles_fill_the_page(photos, serve, new_context, size):
    of_star = [f for f in photos.findings if f.class_ == "star" and f.problem == "missing"]
    photos.findings = of_star[:2]
    photos.add_snapshot()
    page = enter(new_context(size=size), serve(photos), "Ana", MISSING)
    assert len(seen(page)) == 2
    for tile in page.get_by_role("option").all():
        box = tile.bounding_box()
        assert min(box["width"], box["height"]) > 0.35 * min(size)
    assert not page.evaluate(SCROLLS)


@pytest.mark.point(20)
@pytest.mark.parametrize("dark", [False, True])
def test_a_page_fits_a_phone(reviewer, dark):
    page = reviewer("Ana", MISSING, size=PHONE, has_touch=True, dark=dark)
    assert (len(seen(page)), columns(page)) == (8, 2)
    assert not page.evaluate(SCROLLS)
    expect(page.locator("h1")).to_contain_text("Tap those that do not show it.")
    for target in [*page.get_by_role("option").all(), *page.locator("button:visible").all()]:
        box = target.bounding_box()
        assert min(box["width"], box["height"]) >= 44
        assert box["y"] + box["height"] <= PHONE[1]
