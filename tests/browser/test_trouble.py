"""Pictures that cannot be shown, and a disk that is full: the page says so and goes on."""

from pathlib import Path

import pytest
from PIL import Image

from tests.browser.asking import asked
from tests.browser.conftest import enter
from tests.browser.serving import wait_decisions, wait_until

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>document.title="svg"</script></svg>'
FULL = "The disk is full: this answer is not saved. It waits in this browser."


def spoil(file: Path, how: str) -> None:
    """Replace a picture by one that must not be shown."""
    whole = file.read_bytes()
    file.unlink()
    if how == "truncated":
        file.write_bytes(whole[: len(whole) // 3])
    elif how == "svg":
        file.write_text(SVG)
    elif how == "text":
        file.write_text("password: 1234")
    elif how == "symlink":
        outside = file.parents[2] / "outside.jpg"
        outside.write_bytes(whole)
        file.symlink_to(outside)
    elif how == "bomb":
        draft = file.with_suffix(".png")
        Image.new("1", (20_000, 20_000)).save(draft)
        draft.replace(file)


@pytest.mark.point(16)
@pytest.mark.parametrize("how", ["truncated", "svg", "text", "symlink", "bomb"])
def test_a_bad_picture_is_set_aside_and_the_page_goes_on(photos, review, reviewer, how):
    first = photos.findings[0]
    spoil(photos.path / "images" / first.image, how)  # what is bad at the start is left out
    only = f"#focus?class={photos.number(first.class_)}&kind={first.problem}"
    page = reviewer("Ana", only)
    page.get_by_text("set aside", exact=False).first.wait_for()
    assert first.image in page.locator("main").inner_text()
    page.keyboard.press("y")  # answers nothing
    page.get_by_role("button", name="Next").click()
    page.get_by_text("Nothing open").wait_for()
    page.goto(f"{review.url}/#focus")
    page.get_by_role("button", name="Next").click()
    image, class_ = asked(page)
    page.keyboard.press("y")
    row = wait_decisions(page, review, 1)[0]
    assert (row["image"], row["class"]) == (image, class_)
    assert image != first.image
    assert page.title() != "svg"


@pytest.mark.point(24)
def test_a_full_disk_is_said_and_nothing_is_lost(photos, serve, new_context):
    review = serve(photos)
    page = enter(new_context(), review, "Ana", "#focus")
    asked(page)
    review.full = True
    review.restart()
    banner = page.locator("#banner")

    def said() -> bool:
        page.keyboard.press("y")
        page.wait_for_timeout(50)
        return FULL in (banner.text_content() or "")

    wait_until(page, said, FULL)
    waiting = int(page.locator("#saved").get_attribute("title").split()[0])
    before = len(review.decisions())
    assert waiting > 0
    review.full = False
    review.restart()
    wait_until(page, lambda: "Saved" in page.locator("#saved").get_attribute("title"), "saved")
    wait_until(page, lambda: len(review.decisions()) >= before + waiting, "all answers")
    assert len({row["client"] for row in review.decisions()}) == len(review.decisions())
    assert banner.is_hidden()
